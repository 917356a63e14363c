// expect: race
// runs: 10
// race-at: first second
// reports: 1
// A write after a read of another thread.
#include "tests/programs/order.h"

int shared, copy;
NOINLINE void first(void)
{
    copy = shared;
}

NOINLINE void second(void)
{
    shared = 1;
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
