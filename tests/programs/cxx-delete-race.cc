// expect: race
// runs: 10
// race-at: first second
// delete races with an access that nothing orders before it.
#include "tests/programs/order.h"

static int *block = new int(1);

NOINLINE void first()
{
    *block = 2;
}

NOINLINE void second()
{
    delete block;
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
