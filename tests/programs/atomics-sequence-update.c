// expect: none
// runs: 10
// Another thread's relaxed read-modify-write goes on with the release sequence.
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
    atomic_fetch_add_explicit(&flag, 1, memory_order_relaxed);
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
