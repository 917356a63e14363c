#!/bin/sh
# The stack of an earlier access, which the runtime keeps: functions on the way that accessed nothing themselves, and others that did, are all
# there, in more ways to one place than are known at once.
set -eu
redflag=${REDFLAG:?}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
    echo "stacks.sh: $*" >&2
    exit 1
}
cat >ways.c <<'C'
#include <pthread.h>
#include <stdio.h>
#define HIDDEN __attribute__((noinline, no_sanitize("thread")))
#define WAYS 4096 /* of up to twelve steps, to one of two functions; some access something before they go on */
static long places[WAYS], own[2][WAYS];
static int done;
static void f(int way, int step);
static void g(int way, int step);
HIDDEN static int next(int way, int step) { return step > 4 + way % 8 ? 2 : way >> step & 1; }
HIDDEN static int touches(int way, int step) { return (way * 7 + step) % 5 == 0; }
#define GO_ON(mine) \
    { \
        if (touches(way, step)) \
            own[mine][way]++; \
        switch (next(way, step)) { \
        case 0: f(way, step + 1); break; \
        case 1: g(way, step + 1); break; \
        default: places[way] = 1; \
        } \
    }
static __attribute__((noinline)) void f(int way, int step) GO_ON(0)
static __attribute__((noinline)) void g(int way, int step) GO_ON(1)
static __attribute__((noinline)) long look(int way) { return places[way]; }
HIDDEN static void *go(void *unused)
{
    for (int way = WAYS; way-- > 0;)
        f(way, 0);
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    return unused;
}
HIDDEN int main(void)
{
    pthread_t thread;
    for (int way = 0; way < WAYS; way++) {
        printf("%p ", (void *)&places[way]);
        char stack[16] = "f";
        int length = 1;
        for (int step = 0; next(way, step) < 2; step++)
            stack[length++] = "fg"[next(way, step)];
        while (length > 0)
            putchar(stack[--length]);
        putchar('\n');
    }
    fflush(stdout);
    pthread_create(&thread, 0, go, 0);
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
    }
    long sum = 0;
    for (int way = 0; way < WAYS; way++)
        sum += look(way);
    return pthread_join(thread, 0) != 0 || sum != WAYS;
}
C
"$redflag" cc -g -O1 -fno-optimize-sibling-calls -pthread ways.c -o ways
"$redflag" run --exitcode=0 -- ./ways >expected 2>err || fail "$(tail -3 err)"
awk '/Previous write/ { at = $7; stack = "" }
     at && $1 ~ /^#/ && ($2 == "f" || $2 == "g") { stack = stack $2 }
     at && /^$/ { print at, stack; at = "" }' err | sort >found
sort expected >sorted
[ "$(wc -l <found)" -ge 1000 ] || fail "$(wc -l <found) stacks only: $(tail -20 err)" # ways that look alike are told once
wrong=$(comm -23 found sorted | head -3)
[ -z "$wrong" ] || fail "other stacks than those that were: $wrong"
