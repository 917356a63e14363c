// expect: none
// runs: 10
// exchange with acq_rel on both sides.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static NOINLINE void *send(void *unused)
{
    data = 1;
    atomic_exchange_explicit(&flag, 1, memory_order_acq_rel);
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    MUST(atomic_exchange_explicit(&flag, 2, memory_order_acq_rel) == 1);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
