// expect: race
// runs: 10
// race-at: first second
// Two locks of the program's own.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>

/* Its atomics are relaxed on purpose: only the annotations order. */
struct spin {
    int taken;
};

static NOINLINE void lock(struct spin *spin)
{
    __tsan_mutex_pre_lock(spin, 0);
    while (__atomic_exchange_n(&spin->taken, 1, __ATOMIC_RELAXED))
        hidden_yield();
    __tsan_mutex_post_lock(spin, 0, 0);
}

static NOINLINE void unlock(struct spin *spin)
{
    __tsan_mutex_pre_unlock(spin, 0);
    __atomic_store_n(&spin->taken, 0, __ATOMIC_RELAXED);
    __tsan_mutex_post_unlock(spin, 0);
}

static struct spin one, other;
static volatile int data;

static NOINLINE void *first(void *unused)
{
    lock(&one);
    data = 1;
    unlock(&one);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    lock(&other);
    data = 2;
    unlock(&other);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
