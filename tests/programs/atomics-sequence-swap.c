// expect: none
// runs: 10
// A relaxed compare-exchange that succeeds goes on with the release sequence.
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
    int one = 1;
    MUST(atomic_compare_exchange_strong_explicit(&flag, &one, 2, memory_order_relaxed, memory_order_relaxed));
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
