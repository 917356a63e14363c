#!/bin/sh
# Data-race exceptions: the server of examples/ftp.c survives with every precise detector and crashes without; no race-free execution
# raises one, and one that raised none had no race, as its recording shows.
set -eu
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS REDFLAG_CC

fail() {
    echo "exceptions.sh: $*" >&2
    exit 1
}

# expect STATUS COMMAND...: the output is in ./output
expect() {
    wanted=$1 status=0
    shift
    timeout -k 5 100 "$@" >output 2>&1 </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || fail "'$*' ended with $status instead of $wanted: $(cat output)"
}

"$redflag" cc -g -pthread "$root/examples/ftp.c" -o ftp
for detector in fasttrack generic goldilocks; do
    expect 0 "$redflag" run -d "$detector" --on-race=exception ./ftp
    grep -q 'sleepy: connection closed!' output || fail "$detector: no exception: $(cat output)"
    grep -q '1 of 3 connections' output || fail "$detector: $(cat output)"
done
expect 139 "$redflag" run ./ftp # the race is real
grep -q 'data race' output || fail "the race is not reported: $(cat output)"
gcc -I "$root/include" -g -pthread "$root/examples/ftp.c" -o plain # redflag.h needs no runtime

expect 2 "$redflag" run --on-race=perhaps ./ftp
expect 67 "$redflag" run --on-race=exception --sync=none ./ftp
grep -q 'needs sync=spin, cas or fib' output || fail "sync=none: $(cat output)"

# A program whose threads each do random reads and writes of shared variables, with and without a lock. It tells how many exceptions
# there were; its last argument says how many of its accesses are careless. The lock may order all of those if the threads happen to
# run one after another; so each careless thread begins with one, before it has taken anything that could order it after another's.
cat >random.c <<'C'
#include <pthread.h>
#include <redflag.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int variables[64], careless, raised[4];

static void access_one(unsigned random)
{
    if (random & 1)
        variables[random >> 1 & 63]++;
    else
        variables[random >> 1 & 63] &= 0xffff;
}

static void access_guarded(unsigned random, long thread)
{
    redflag_try {
        access_one(random);
    } redflag_catch (race) {
        raised[thread]++;
    }
}

static void *work(void *argument)
{
    unsigned random = (unsigned)(long)argument * 77u + 1;
    if (careless)
        access_guarded(1, (long)argument);
    for (int i = 0; i < 2000; i++) {
        random = random * 1103515245u + 12345u;
        int free = (int)(random >> 16) % 1000 < careless;
        if (!free)
            pthread_mutex_lock(&lock);
        access_guarded(random >> 20, (long)argument);
        if (!free)
            pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    careless = argc > 1 ? atoi(argv[1]) : 0;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("raised %d\n", raised[0] + raised[1] + raised[2] + raised[3]);
    return 0;
}
C
"$redflag" cc -g -O1 -pthread random.c -o random
for detector in fasttrack generic goldilocks; do
    for _ in 1 2 3; do
        expect 0 "$redflag" run -d "$detector" --on-race=exception ./random 0
        grep -q '^raised 0$' output || fail "$detector raises on a race-free execution: $(cat output)"
    done
    expect 0 "$redflag" run -d "$detector" --on-race=exception ./random 200
    grep -q '^raised [1-9]' output || fail "$detector raises nothing: $(cat output)"
done
# What a run without exceptions did has no race, whoever looks; and what has one does not run without.
expect 0 "$redflag" record -q -o clean.rft -- ./random 0
expect 0 "$redflag" analyze -d generic clean.rft
expect 0 "$redflag" record -q -o racy.rft -- ./random 200
expect 66 "$redflag" analyze -d generic racy.rft
# Programs whose races are known: each is raised, in one of its two threads, and nothing else is.
for options in sync=cas sync=fib detector=generic detector=goldilocks; do
    OPTIONS=$options:on_race=exception "$root/tests/soak/run" 401 403 20 >output 2>&1 || fail "soak with $options: $(cat output)"
done

# Every thread but the main one may end by a race that nobody catches, in C++ as well; then status and report are those of a race.
cat >uncaught.cc <<'C'
#include <pthread.h>
#include <cstdio>
#include <string>
static int x;
static void *work(void *)
{
    std::string text = "an object to be destroyed";
    x = (int)text.size();
    return nullptr;
}
int main()
{
    pthread_t a, b;
    pthread_create(&a, nullptr, work, nullptr);
    pthread_create(&b, nullptr, work, nullptr);
    pthread_join(a, nullptr);
    pthread_join(b, nullptr);
    std::puts("the program goes on");
}
C
"$redflag" c++ -g -pthread uncaught.cc -o uncaught
expect 66 "$redflag" run --on-race=exception ./uncaught
grep -q 'the program goes on' output || fail "C++: $(cat output)"
grep -q 'nobody has caught its data race' output || fail "C++: $(cat output)"
