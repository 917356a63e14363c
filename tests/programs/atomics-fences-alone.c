// expect: race
// runs: 10
// race-at: send receive
// Two seq_cst fences are in one total order; without an atomic between them that orders no accesses.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static NOINLINE void *send(void *unused)
{
    data = 1;
    atomic_thread_fence(memory_order_seq_cst);
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    atomic_thread_fence(memory_order_seq_cst);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
