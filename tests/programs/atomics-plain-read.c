// expect: race
// runs: 10
// race-at: first second
// An atomic store and a plain read.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int x;

static NOINLINE void *first(void *unused)
{
    __atomic_store_n(&x, 1, __ATOMIC_RELEASE);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(*(volatile int *)&x == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
