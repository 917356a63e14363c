// expect: race
// runs: 10
// race-at: first second
// realloc reads the old block and frees it.
#include "tests/programs/order.h"

static int *volatile block;

__attribute__((constructor)) static void start(void)
{
    block = malloc(40);
}

NOINLINE void first(void)
{
    block[2] = 1;
}

NOINLINE void second(void)
{
    free(realloc(block, 100000));
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
