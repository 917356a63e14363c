// expect: none
// runs: 10
// Two atomics in one word, one released, one not, and a plain byte between.
#include "tests/programs/order.h"
#include <stdatomic.h>

static struct { unsigned char a, plain, b; } x;
static int data;

static NOINLINE void *first(void *unused)
{
    data = 1;
    x.plain = 1;
    __atomic_store_n(&x.a, 1, __ATOMIC_RELEASE);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(__atomic_load_n(&x.b, __ATOMIC_RELAXED) == 0);
    __atomic_store_n(&x.b, 1, __ATOMIC_RELAXED);
    MUST(__atomic_load_n(&x.a, __ATOMIC_ACQUIRE) == 1);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
