// expect: race
// runs: 10
// race-at: put receive
// An access after the release fence that repeats one before it is not published by the fence.
#include "tests/programs/order.h"
#include <stdatomic.h>

static volatile int data;
static atomic_int flag;

static NOINLINE void put(int value)
{
    data = value;
}

static void *send(void *unused)
{
    for (int i = 1; i <= 2; i++) {
        put(i);
        if (i == 1)
            atomic_thread_fence(memory_order_release);
    }
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    MUST(atomic_load_explicit(&flag, memory_order_acquire) == 1);
    MUST(data == 2);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
