// expect: race
// runs: 10
// kind: heap-use-after-free
// race-at: first second
// A write after a free that nothing orders before it.
#include "tests/programs/order.h"

static int *volatile block;

__attribute__((constructor)) static void start(void)
{
    block = malloc(40);
}

NOINLINE void first(void)
{
    free(block);
}

NOINLINE void second(void)
{
    block[2] = 1;
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
