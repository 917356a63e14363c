// expect: none
// runs: 10
// A release fence counts for relaxed updates of a location that the thread has updated many times before.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_llong flag;

static NOINLINE void add(void)
{
    atomic_fetch_add_explicit(&flag, 1, memory_order_relaxed);
}

static NOINLINE void *send(void *unused)
{
    for (int i = 0; i < 100; i++)
        add();
    data = 1;
    atomic_thread_fence(memory_order_release);
    add();
    reach(1);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    MUST(atomic_load_explicit(&flag, memory_order_acquire) == 101);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
