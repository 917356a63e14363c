/* Stopping the world: nobody changes histories or clocks while a sweep or a fork looks at them.
 *
 * 1. A thread that is about to change any sets self->busy and then looks at `stopping`; a stopper sets `stopping` and then looks at
 *    every busy. One of the two sees the other: the stopper pays for the fence between (membarrier makes every running thread of
 *    the process execute one), so that busy costs two plain stores and a load.
 * 2. Without membarrier (an old kernel, seccomp) the busy side has the fence. If it is taken away later, by a filter that the program
 *    sets up, the busy side has it from then on. Who was about to become busy without it in that instant has done so, for all to
 *    see, a few instructions later: the stopper waits for a thousand times that.
 * 3. There is one stopper at a time. It is not busy itself while it waits.
 */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>

#include "guest/self.h"
#include "guest/spin.h"
#include "guest/start.h"
#include "guest/threads.h"

RF_MODE uint32_t rf_world_stopping;
static uint32_t stopper; /* a lock */
RF_MODE bool rf_world_fences; /* invariant 2; becomes true at most once */

void rf_world_begin(void)
{
    long known = RF_SYSCALL(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    rf_world_fences = known < 0;
}

void rf_world_wait(struct rf_self *self)
{
    do {
        __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
        while (__atomic_load_n(&rf_world_stopping, __ATOMIC_ACQUIRE))
            rf_futex_wait(&rf_world_stopping, 1);
        __atomic_store_n(&self->busy, 1, __ATOMIC_SEQ_CST);
    } while (__atomic_load_n(&rf_world_stopping, __ATOMIC_SEQ_CST));
}

static void wait_for(struct rf_self *other, void *self)
{
    if (other == self)
        return;
    for (unsigned turns = 0; __atomic_load_n(&other->busy, __ATOMIC_ACQUIRE); turns++)
        if (turns > 64)
            rf_yield();
}

void rf_world_fence(void)
{
    if (!rf_world_fences && RF_SYSCALL(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) < 0) {
        const struct timespec while_longer = { 0, 10000000 };
        __atomic_store_n(&rf_world_fences, true, __ATOMIC_SEQ_CST);
        RF_SYSCALL(SYS_nanosleep, &while_longer, NULL);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void rf_world_stop(struct rf_self *self)
{
    rf_spin_lock(&stopper);
    __atomic_store_n(&rf_world_stopping, 1, __ATOMIC_SEQ_CST);
    rf_world_fence();
    rf_threads_each(wait_for, self);
}

void rf_world_go(struct rf_self *self)
{
    (void)self;
    __atomic_store_n(&rf_world_stopping, 0, __ATOMIC_SEQ_CST);
    rf_futex_wake(&rf_world_stopping);
    rf_spin_unlock(&stopper);
}
