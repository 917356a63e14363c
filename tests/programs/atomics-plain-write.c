// expect: race
// runs: 10
// race-at: first second
// An atomic load and a plain write.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int x;

static NOINLINE void *first(void *unused)
{
    MUST(__atomic_load_n(&x, __ATOMIC_ACQUIRE) == 0);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    *(volatile int *)&x = 1;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
