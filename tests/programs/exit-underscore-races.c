// expect: race
// exit: 66
// stock: does not look at _exit
// _exit after a report, too.
#include <unistd.h>

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
    _exit(0);
}
