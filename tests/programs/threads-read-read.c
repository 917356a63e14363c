// expect: none
// runs: 10
// Two reads never race.
#include "tests/programs/order.h"

int shared;
NOINLINE void first(void)
{
    MUST(shared == 0);
}

NOINLINE void second(void)
{
    MUST(shared == 0);
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
