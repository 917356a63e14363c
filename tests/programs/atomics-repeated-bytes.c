// expect: race
// race-at: add_first look
// reports: 1
// runs: 10
// Atomics of one word have histories of their own: what is done to one again and again does not take the place of the other's.
#include "tests/programs/order.h"
#include <stdatomic.h>

static struct {
    _Atomic unsigned char first, second;
    _Atomic unsigned short third;
    _Atomic unsigned fourth;
} x __attribute__((aligned(8)));

static NOINLINE void add_first(void)
{
    for (int i = 0; i < 10; i++)
        atomic_fetch_add_explicit(&x.first, 1, memory_order_relaxed);
}

static NOINLINE void add_others(void)
{
    for (int i = 0; i < 10; i++) {
        atomic_fetch_add_explicit(&x.second, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&x.third, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&x.fourth, 1, memory_order_relaxed);
    }
}

static NOINLINE int look(void)
{
    return *(volatile unsigned char *)&x.first;
}

static NOINLINE void *first(void *unused)
{
    add_first();
    add_others();
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(look() == 10);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
