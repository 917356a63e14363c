// expect: race
// runs: 10
// race-at: send receive
// Nobody releases.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static NOINLINE void *send(void *unused)
{
    data = 1;
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    MUST(atomic_load_explicit(&flag, memory_order_relaxed) == 1);
    atomic_thread_fence(memory_order_acquire);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
