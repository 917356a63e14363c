// expect: race
// runs: 10
// race-at: first second
// options: halt_on_error=1
// no-text: went on
// The first report ends the program.
#include "tests/programs/order.h"

int shared;

NOINLINE void first(void)
{
    shared = 1;
}

NOINLINE void second(void)
{
    shared = 2;
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
    puts("went on");
    return 0;
}
