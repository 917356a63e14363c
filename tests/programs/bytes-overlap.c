// expect: race
// runs: 10
// race-at: first second
// One byte of a word races with the whole word.
#include "tests/programs/order.h"

union {
    long whole;
    char byte[8];
} shared;

NOINLINE void first(void)
{
    shared.byte[5] = 1;
}

NOINLINE void second(void)
{
    shared.whole = 2;
}

static void *one(void *unused)
{
    first();
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    second();
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
