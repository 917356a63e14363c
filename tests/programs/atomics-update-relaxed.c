// expect: race
// runs: 10
// race-at: send receive
// A relaxed read-modify-write publishes nothing.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static NOINLINE void *send(void *unused)
{
    data = 1;
    atomic_fetch_add_explicit(&flag, 1, memory_order_relaxed);
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    MUST(atomic_fetch_add_explicit(&flag, 1, memory_order_acq_rel) == 1);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
