// expect: race
// runs: 10
// race-at: first second allocate
// A race on a heap block; the report says where it was allocated.
#include "tests/programs/order.h"

int *block;

NOINLINE void allocate(void)
{
    block = malloc(40);
    block[5] = 0;
}

NOINLINE void first(void)
{
    block[5] = 1;
}

NOINLINE void second(void)
{
    block[5] = 2;
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
    allocate();
    run_both(one, two);
    free(block);
    return 0;
}
