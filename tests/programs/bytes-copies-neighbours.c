// expect: none
// runs: 10
// Ranges that end where others begin.
#include <string.h>

#include "tests/programs/order.h"

char shared[1000], from[1000];
static volatile int limit = 501;

NOINLINE void first(void)
{
    memset(shared, 1, (size_t)limit);
}

NOINLINE void second(void)
{
    memcpy(shared + limit, from, (size_t)(1000 - limit));
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
