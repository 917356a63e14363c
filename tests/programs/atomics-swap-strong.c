// expect: none
// runs: 10
// compare-exchange, strong: success orders by its first order.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static NOINLINE void *send(void *unused)
{
    data = 1;
    int zero = 0;
    while (!atomic_compare_exchange_strong_explicit(&flag, &zero, 1, memory_order_release, memory_order_relaxed))
        MUST(zero == 0);
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    int one = 1;
    while (!atomic_compare_exchange_strong_explicit(&flag, &one, 2, memory_order_acquire, memory_order_relaxed))
        MUST(one == 1);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
