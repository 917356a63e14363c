// expect: none
// runs: 10
// stock: checks the load before it acquires
// What was written plainly before it was published by the same variable is ordered for the load that reads it.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int x;

static NOINLINE void *first(void *unused)
{
    x = 1;
    __atomic_store_n(&x, 2, __ATOMIC_RELEASE);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(__atomic_load_n(&x, __ATOMIC_ACQUIRE) == 2);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
