// expect: none
// runs: 10
// A failed compare-exchange is a load of its failure order: acquire.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static NOINLINE void *send(void *unused)
{
    data = 1;
    atomic_store_explicit(&flag, 1, memory_order_release);
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    int other = 7;
    MUST(!atomic_compare_exchange_strong_explicit(&flag, &other, 2, memory_order_acquire, memory_order_acquire));
    MUST(other == 1 && data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
