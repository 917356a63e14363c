// expect: race
// runs: 10
// race-at: send receive
// A failed compare-exchange publishes nothing.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static NOINLINE void *send(void *unused)
{
    data = 1;
    int other = 7;
    MUST(!atomic_compare_exchange_strong_explicit(&flag, &other, 2, memory_order_seq_cst, memory_order_seq_cst));
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    MUST(atomic_load_explicit(&flag, memory_order_acquire) == 0);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
