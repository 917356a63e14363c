// expect: none
// runs: 10
// A spin lock of two atomics, contended; its relaxed waiting loop orders nothing and need not.
#include "tests/programs/order.h"
#include <stdatomic.h>

static atomic_int lock;
static long count;

static void *work(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
            while (atomic_load_explicit(&lock, memory_order_relaxed))
                hidden_yield();
        count++;
        atomic_store_explicit(&lock, 0, memory_order_release);
    }
    return unused;
}

int main(void)
{
    run_both(work, work);
    MUST(count == 40000);
    return 0;
}
