// expect: race
// runs: 10
// race-at: first second
// A plain write and an atomic update.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int x;

static NOINLINE void *first(void *unused)
{
    *(volatile int *)&x = 1;
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(__atomic_fetch_add(&x, 1, __ATOMIC_SEQ_CST) == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
