#!/bin/sh
# redflag run --sync and --escape: what is accepted, what --stats prints, and that all policies agree on random programs with known races.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
redflag=${REDFLAG:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
unset REDFLAG_OPTIONS TSAN_OPTIONS

fail() {
    echo "sync.sh: $*" >&2
    exit 1
}

cat >"$work/program.c" <<'PROGRAM'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long shared, table[100];
static void *run(void *unused)
{
    long *mine = malloc(100 * sizeof *mine), sum = 0;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++)
        sum += table[i]; /* by both, in no order */
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        shared++;
        pthread_mutex_unlock(&lock);
        mine[i] = table[i];
        sum += mine[i] + table[i];
    }
    free(mine);
    pthread_barrier_wait(&barrier);
    return (void *)sum;
}
int main(void)
{
    pthread_t a, b;
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_create(&a, NULL, run, NULL);
    pthread_create(&b, NULL, run, NULL);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++)
        table[i] = i;
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%ld\n", shared);
    return 0;
}
PROGRAM
"$redflag" cc -g -O1 -pthread "$work/program.c" -o "$work/program"

# What is wrong is one line, and not the status of races.
status=0
"$redflag" run --sync=tas -- "$work/program" >"$work/out" 2>&1 || status=$?
case $status-$(wc -l <"$work/out") in 0-* | 66-*) fail "--sync=tas: $(cat "$work/out")" ;; *-1) ;; *) fail "--sync=tas: $(cat "$work/out")" ;; esac
status=0
"$redflag" run --sync=fib -d goldilocks -- "$work/program" >"$work/out" 2>&1 || status=$?
[ "$status" -eq 67 ] || fail "--sync=fib -d goldilocks ends with $status"
grep -q 'sync=fib is for' "$work/out" || fail "--sync=fib -d goldilocks: $(cat "$work/out")"

# count NAME: of what --stats printed
count() {
    sed -n "s/^redflag: statistics: $1: \([0-9]*\) [0-9.]*%\$/\1/p" "$work/out"
}

for policy in none spin cas fib; do
    for escape in --no-escape --escape; do
        "$redflag" run --sync=$policy $escape -- "$work/program" >"$work/out" 2>&1 || fail "$policy $escape: $(cat "$work/out")"
        [ "$(cat "$work/out")" = 200 ] || fail "$policy $escape: $(cat "$work/out")"
        "$redflag" run --sync=$policy $escape --stats -- "$work/program" >"$work/out" 2>&1 || fail "$policy --stats: $(cat "$work/out")"
        all=$(sed -n 's/^redflag: statistics: \([0-9]*\) looks.*/\1/p' "$work/out")
        sum=$(sed -n 's/^redflag: statistics: [a-zA-Z, ()]*: \([0-9]*\) [0-9.]*%$/\1/p' "$work/out" | awk '{ sum += $1 } END { print sum }')
        [ "$all" -gt 900 ] || fail "$policy $escape: $(cat "$work/out")"
        [ "$sum" = "$all" ] || fail "$policy $escape: $sum of $all: $(cat "$work/out")"
        [ "$(sed -n 's/^redflag: statistics: [a-zA-Z, ()]*: [0-9]* \([0-9.]*\)%$/\1/p' "$work/out" |
            awk '{ sum += $1 } END { print (sum > 99.9999 && sum < 100.0001) }')" = 1 ] || fail "shares: $(cat "$work/out")"
        [ $policy != none ] || continue
        if [ $escape = --escape ]; then
            [ "$(count 'not escaped')" -ge 200 ] || fail "$policy: not escaped: $(cat "$work/out")"
        else
            [ "$(count 'not escaped')" -eq 0 ] || fail "$policy: not escaped: $(cat "$work/out")"
        fi
        [ "$(count 'multiple conflict')" -ge 90 ] || fail "$policy: the table was read by two and is written: $(cat "$work/out")"
        [ "$(count 'first (CAS)')" -ge 90 ] || fail "$policy: first: $(cat "$work/out")"
    done
done
grep -q 'conflicts: [0-9]* answered by the owner, [0-9]* by the asker' "$work/out" || fail "fib: $(cat "$work/out")"

# Random programs: no race is missed, none is made up.
for options in sync=spin sync=fib sync=fib:escape=1 sync=cas:escape=1; do
    OPTIONS=$options "$here/../soak/run" 201 202 6 >"$work/out" 2>&1 || fail "soak with $options: $(cat "$work/out")"
done
echo "sync.sh: ok"
