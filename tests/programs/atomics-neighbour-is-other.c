// expect: race
// runs: 10
// race-at: first second
// What one atomic released, its neighbour in the same word did not.
#include "tests/programs/order.h"
#include <stdatomic.h>

static struct { unsigned char a, b; } x;
static int data;

static NOINLINE void *first(void *unused)
{
    *(volatile int *)&data = 1;
    __atomic_store_n(&x.a, 1, __ATOMIC_RELEASE);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(__atomic_load_n(&x.b, __ATOMIC_ACQUIRE) == 0);
    MUST(*(volatile int *)&data == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
