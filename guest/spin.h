/* A lock for a few instructions. Who holds it must be busy (guest/self.h), so that no signal handler runs in between on the same
 * thread and fork() never copies it locked. */
#ifndef RF_GUEST_SPIN_H
#define RF_GUEST_SPIN_H

#include <stdint.h>

#include "guest/system.h"

static inline void rf_spin_lock(uint32_t *lock)
{
    for (unsigned turns = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); turns++)
        while (__atomic_load_n(lock, __ATOMIC_RELAXED)) {
            /* With fewer cores than threads the owner may not be running. */
            if (turns++ > 64)
                rf_yield();
            else
                __builtin_ia32_pause();
        }
}

static inline void rf_spin_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
