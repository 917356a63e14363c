// expect: race
// runs: 10
// race-at: send receive
// What comes after the release is not published by it.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static NOINLINE void *send(void *unused)
{
    atomic_store_explicit(&flag, 1, memory_order_release);
    data = 1;
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    MUST(atomic_load_explicit(&flag, memory_order_acquire) == 1);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
