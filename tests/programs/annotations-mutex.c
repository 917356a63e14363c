// expect: none
// runs: 10
// A spin lock of the program's own.
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

static struct spin spin;
static long count;

static void *work(void *unused)
{
    for (int i = 0; i < 5000; i++) {
        lock(&spin);
        count++;
        unlock(&spin);
    }
    return unused;
}

int main(void)
{
    __tsan_mutex_create(&spin, __tsan_mutex_not_static);
    run_both(work, work);
    MUST(count == 10000);
    __tsan_mutex_destroy(&spin, __tsan_mutex_not_static);
    return 0;
}
