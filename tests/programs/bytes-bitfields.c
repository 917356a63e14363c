// expect: race
// runs: 10
// race-at: first second
// Bit-fields of one unit are one memory location.
#include "tests/programs/order.h"

struct {
    int a : 4, b : 4;
} shared;

NOINLINE void first(void)
{
    shared.a = 1;
}

NOINLINE void second(void)
{
    shared.b = 2;
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
