// expect: none
// runs: 10
// Neighbouring bytes of one word are different variables.
#include "tests/programs/order.h"

char shared[8];

NOINLINE void first(void)
{
    for (int i = 0; i < 8; i += 2)
        shared[i] = 1;
}

NOINLINE void second(void)
{
    for (int i = 1; i < 8; i += 2)
        shared[i] = 2;
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
