// expect: race
// runs: 10
// race-at: first second
// A relaxed update that a release sequence only passes through is ordered before nobody.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int x;


static NOINLINE void *first(void *unused)
{
    __atomic_fetch_add(&x, 1, __ATOMIC_RELAXED);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(__atomic_load_n(&x, __ATOMIC_ACQUIRE) == 1);
    *(volatile int *)&x = 5;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
