// expect: none
// runs: 10
// Atomic accesses do not race with each other, whatever their orders.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int x;

static NOINLINE void *first(void *unused)
{
    __atomic_store_n(&x, 1, __ATOMIC_RELAXED);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(__atomic_load_n(&x, __ATOMIC_RELAXED) == 1);
    __atomic_store_n(&x, 2, __ATOMIC_RELAXED);
    MUST(__atomic_fetch_or(&x, 4, __ATOMIC_RELAXED) == 2);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
