// expect: race
// race-at: work
// A spin lock that is given back by a relaxed store protects nothing.
#include "tests/programs/order.h"
#include <stdatomic.h>

static atomic_int lock;
static long count;

static NOINLINE void *work(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
            hidden_yield();
        count++;
        atomic_store_explicit(&lock, 0, memory_order_relaxed);
        hidden_yield();
    }
    return unused;
}

int main(void)
{
    run_both(work, work);
    return 0;
}
