// expect: none
// runs: 10
// An atomic load and a plain read.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int x;

static NOINLINE void *first(void *unused)
{
    MUST(__atomic_load_n(&x, __ATOMIC_RELAXED) == 0);
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
