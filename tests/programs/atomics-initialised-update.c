// expect: none
// runs: 10
// stock: checks the update before it acquires
// The same for a read-modify-write that publishes, too.
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
    MUST(__atomic_fetch_add(&x, 1, __ATOMIC_ACQ_REL) == 2);
    int three = 3;
    MUST(__atomic_compare_exchange_n(&x, &three, 4, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
