// expect: none
// runs: 10
// stock: takes it for a write
// A compare-exchange that fails only reads: a plain read beside it is no race.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int x;

static NOINLINE void *first(void *unused)
{
    int one = 1;
    MUST(!__atomic_compare_exchange_n(&x, &one, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(*(volatile int *)&x == 0);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
