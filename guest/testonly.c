/* What ThreadSanitizer's own tests ask of a runtime: a barrier that brings threads to an order of execution without ordering them, and
 * the depth of the stack of frames.
 *
 * 1. A barrier is one word: threads (10 bits) | arrivals modulo twice that number (22 bits). Which of the two rounds runs is told by
 *    the arrivals; the next but one cannot begin before all have left this one, so a waiter never mistakes the rounds.
 * 2. Nothing here touches a clock or a history: threads that meet here are as unordered as before.
 */
#include "guest/intercept.h"
#include "guest/system.h"

#define ARRIVALS 22u
#define ARRIVALS_MASK ((1u << ARRIVALS) - 1)

RF_EXPORT void __tsan_testonly_barrier_init(uint32_t *barrier, uint32_t threads);
RF_EXPORT void __tsan_testonly_barrier_wait(uint32_t *barrier);
RF_EXPORT unsigned long __tsan_testonly_shadow_stack_current_size(void);

void __tsan_testonly_barrier_init(uint32_t *barrier, uint32_t threads)
{
    if (!threads || threads >= 1u << (32 - ARRIVALS))
        rf_die("a test's barrier is for 1 to 1023 threads, not for %u", threads);
    __atomic_store_n(barrier, threads << ARRIVALS, __ATOMIC_SEQ_CST);
}

void __tsan_testonly_barrier_wait(uint32_t *barrier)
{
    uint32_t old = __atomic_load_n(barrier, __ATOMIC_RELAXED), new, threads, round;
    do {
        threads = old >> ARRIVALS;
        if (!threads)
            rf_die("a test's barrier is used before __tsan_testonly_barrier_init");
        round = (old & ARRIVALS_MASK) / threads;
        new = threads << ARRIVALS | ((old & ARRIVALS_MASK) + 1) % (2 * threads);
    } while (!__atomic_compare_exchange_n(barrier, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    if ((new & ARRIVALS_MASK) / threads != round) {
        rf_futex_wake(barrier);
        return;
    }
    for (;;) {
        uint32_t now = __atomic_load_n(barrier, __ATOMIC_SEQ_CST);
        if ((now & ARRIVALS_MASK) / threads != round)
            return;
        rf_futex_wait(barrier, now);
    }
}

unsigned long __tsan_testonly_shadow_stack_current_size(void)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    return self ? (unsigned long)(rf_hot.top - self->frames) : 0;
}
