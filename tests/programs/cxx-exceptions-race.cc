// expect: race
// runs: 10
// race-at: first second
// no-text: thrower
// After an exception the stack of the catcher is its own again.
#include "tests/programs/order.h"

int shared;

NOINLINE void thrower(int n)
{
    if (n)
        thrower(n - 1);
    throw n;
}

NOINLINE void first()
{
    shared = 1;
}

NOINLINE void second()
{
    shared = 2;
}

static void catches()
{
    try {
        thrower(10);
    } catch (int) {
    }
}

static void *one(void *unused)
{
    catches();
    first();
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    catches();
    second();
    return unused;
}

int main()
{
    run_both(one, two);
    return 0;
}
