/* A lock for a few instructions. Who holds it must be busy (guest/self.h), so that no signal handler runs in between on the same
 * thread and fork() never copies it locked. */
#ifndef RF_GUEST_SPIN_H
#define RF_GUEST_SPIN_H

#include <stdint.h>

#include "guest/system.h"

/* Each look takes the line of the cache away from the owner, who is likely to need it for what he does: so looks become rarer. */
static inline void rf_spin_wait(uint32_t *lock)
{
    for (unsigned turns = 0; __atomic_load_n(lock, __ATOMIC_RELAXED); turns++) {
        for (unsigned i = 0; turns < 7 && i < 1u << turns; i++)
            __builtin_ia32_pause();
        if (turns >= 7) /* with fewer cores than threads the owner may not be running */
            rf_yield();
    }
}

static inline void rf_spin_lock(uint32_t *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        rf_spin_wait(lock);
}

static inline void rf_spin_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
