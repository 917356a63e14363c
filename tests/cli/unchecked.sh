#!/bin/sh
# redflag run --unchecked: what a list names is not looked at, by function, line or offset, and nothing else is left out; what the list
# saves is instructions. A wrong list is said.
set -eu
redflag=${REDFLAG:?}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS REDFLAG_CC

fail() {
    echo "unchecked.sh: $*" >&2
    exit 1
}

expect() {
    wanted=$1 status=0
    shift
    timeout -k 5 100 "$@" >output 2>&1 </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || fail "'$*' ended with $status instead of $wanted: $(cat output)"
}

cat >racy.c <<'C'
#include <pthread.h>
#include <stdlib.h>
static struct { int value, far[15]; } one, other;
static __attribute__((noinline)) void first(int i) { one.value = i; }
static __attribute__((noinline)) void second(int i) { other.value = i; }
static void *work(void *argument)
{
    first((int)(long)argument);
    second((int)(long)argument);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t threads[2];
    (void)argv;
    if (argc > 1) /* another program of ours inherits the environment, and not the list */
        exit(system("./racy") == 66 << 8 ? 0 : 1);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return one.value + other.value > 2;
}
C
"$redflag" cc -g -O1 -pthread racy.c -o racy

expect 66 "$redflag" run ./racy
[ "$(grep -c '^WARNING' output)" -eq 2 ] || fail "two races are expected: $(cat output)"

printf '# shown by hand\n\nfirst  # a function\n' >list
expect 66 "$redflag" run --stats --unchecked=list ./racy
[ "$(grep -c '^WARNING' output)" -eq 1 ] || fail "first() is looked at: $(cat output)"
grep -q ' in second' output || fail "second() is not: $(cat output)"
grep -q 'unchecked: 1 of ' output || fail "no statistics: $(cat output)"

printf 'racy.c:4\nracy.c:5:67\n@second\n' >list
expect 0 "$redflag" run --unchecked=list ./racy

"$redflag" sites --at @first --at @second ./racy | sed 's/.*\t//' >list
[ "$(wc -l <list)" -eq 2 ] || fail "sites: $(cat list)"
expect 0 "$redflag" run --unchecked=list ./racy

expect 0 "$redflag" run --unchecked=list ./racy again

printf 'first\nno_such_function\n' >list
expect 66 "$redflag" run --unchecked=list ./racy
grep -q '1 of the 2 names in list mean no site of ./racy' output || fail "the unknown name: $(cat output)"

expect 2 "$redflag" run --unchecked=missing ./racy
expect 67 env REDFLAG_OPTIONS=unchecked=list ./racy
grep -q 'names become one by' output || fail "a list of names in REDFLAG_OPTIONS: $(cat output)"
