// expect: none
// runs: 10
// A ring of one producer and one consumer in C++, with acquire and release.
#include "tests/programs/order.h"
#include <atomic>

static int ring[8];
static std::atomic<unsigned> written{0}, taken{0};

static void *produce(void *unused)
{
    for (unsigned i = 0; i < 5000; i++) {
        while (i - taken.load(std::memory_order_acquire) == 8)
            hidden_yield();
        ring[i % 8] = (int)i;
        written.store(i + 1, std::memory_order_release);
    }
    return unused;
}

static void *consume(void *unused)
{
    for (unsigned i = 0; i < 5000; i++) {
        while (written.load(std::memory_order_acquire) == i)
            hidden_yield();
        MUST(ring[i % 8] == (int)i);
        taken.store(i + 1, std::memory_order_release);
    }
    return unused;
}

int main()
{
    run_both(produce, consume);
    return 0;
}
