// expect: race
// runs: 10
// race-at: first second
// reports: 1
// stock: keeps four accesses of a word
// Only one byte of two ranges is shared.
#include "tests/programs/order.h"

char shared[8];

NOINLINE void first(void)
{
    shared[0] = shared[1] = shared[2] = shared[3] = 1;
}

NOINLINE void second(void)
{
    shared[3] = shared[4] = shared[5] = 2;
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
