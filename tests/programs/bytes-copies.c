// expect: race
// runs: 10
// race-at: first second
// memset and memcpy race with single accesses to one of their bytes.
#include <string.h>

#include "tests/programs/order.h"

char shared[1000], from[1000];
static volatile int limit = 1000;

NOINLINE void first(void)
{
    shared[567] = 1;
}

NOINLINE void second(void)
{
    memcpy(shared, from, (size_t)limit);
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
