/* Stopping the world: nobody changes histories or clocks while a sweep or a fork looks at them.
 *
 * 1. A thread that is about to change any sets self->busy and then looks at `stopping`; a stopper sets `stopping` and then looks at
 *    every busy. One of the two sees the other: the stopper pays for the fence between (membarrier makes every running thread of
 *    the process execute one), so that busy costs two plain stores and a load.
 * 2. Without membarrier (an old kernel, seccomp) the busy side has the fence.
 * 3. There is one stopper at a time. It is not busy itself while it waits.
 */
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "guest/self.h"
#include "guest/spin.h"
#include "guest/start.h"
#include "guest/threads.h"

static uint32_t stopping;
static uint32_t stopper; /* a lock */
static bool fences;      /* invariant 2; written once, before there is a second thread */

void rf_world_begin(void)
{
    long known = RF_SYSCALL(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    fences = known < 0;
}

static __attribute__((noinline)) void wait_for_go(struct rf_self *self)
{
    do {
        __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
        while (__atomic_load_n(&stopping, __ATOMIC_ACQUIRE))
            rf_futex_wait(&stopping, 1);
        __atomic_store_n(&self->busy, 1, __ATOMIC_SEQ_CST);
    } while (__atomic_load_n(&stopping, __ATOMIC_SEQ_CST));
}

void rf_busy_begin(struct rf_self *self)
{
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED);
    if (fences)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the compiler keeps the order; rf_world_stop sees to the processor */
    if (__builtin_expect(__atomic_load_n(&stopping, __ATOMIC_RELAXED), 0))
        wait_for_go(self);
}

/* guest/signals.c: a signal came while the thread was busy; it is delivered now. */
extern void rf_signals_deliver(void);

void rf_busy_end(struct rf_self *self)
{
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(self->pending_signals, 0))
        rf_signals_deliver();
}

static void wait_for(struct rf_self *other, void *self)
{
    if (other == self)
        return;
    for (unsigned turns = 0; __atomic_load_n(&other->busy, __ATOMIC_ACQUIRE); turns++)
        if (turns > 64)
            rf_yield();
}

void rf_world_stop(struct rf_self *self)
{
    rf_spin_lock(&stopper);
    __atomic_store_n(&stopping, 1, __ATOMIC_SEQ_CST);
    if (!fences)
        RF_SYSCALL(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    rf_threads_each(wait_for, self);
}

void rf_world_go(struct rf_self *self)
{
    (void)self;
    __atomic_store_n(&stopping, 0, __ATOMIC_SEQ_CST);
    rf_futex_wake(&stopping);
    rf_spin_unlock(&stopper);
}
