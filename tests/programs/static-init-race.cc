// expect: race
// runs: 10
// race-at: first second
// What is done with the variable after it was made is not ordered.
#include "tests/programs/order.h"

static int &the_value()
{
    static int *it = new int(0);
    return *it;
}

NOINLINE void first()
{
    the_value() = 1;
}

NOINLINE void second()
{
    the_value() = 2;
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

int main()
{
    run_both(one, two);
    return 0;
}
