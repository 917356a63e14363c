// expect: none
// runs: 10
// Order is handed on by a thread in between.
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

static void *between(void *unused)
{
    await(1);
    MUST(atomic_load_explicit(&flag, memory_order_acquire) == 1);
    atomic_store_explicit(&flag, 2, memory_order_release);
    reach(2);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(2);
    MUST(atomic_load_explicit(&flag, memory_order_acquire) == 2);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    pthread_t other;
    MUST(pthread_create(&other, NULL, between, NULL) == 0);
    run_both(send, receive);
    MUST(pthread_join(other, NULL) == 0);
    return 0;
}
