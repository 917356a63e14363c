/* A spin lock in the word (Wood's SpinLock): every step, also one that changes nothing, first puts a value into the word that no
 * history has, and then the result.
 *
 * 1. Between take and put the word is the thread's. Others wait, or leave it alone: the value says nothing to them.
 * 2. Who has taken a word takes no other and waits for nobody who might want it.
 */
#ifndef RF_SYNC_SPIN_H
#define RF_SYNC_SPIN_H

#include "sync/step.h"

#define RF_SPINS 64u /* looks, before the core is left to others: with fewer cores than threads the holder may not be running */

/* Returns the word that was there. */
static inline uint64_t rf_spin_take(uint64_t *place, uint64_t taken, void (*yield)(void))
{
    for (unsigned turns = 0;; turns++) {
        uint64_t old = __atomic_load_n(place, __ATOMIC_RELAXED);
        if (old != taken && __atomic_compare_exchange_n(place, &old, taken, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return old;
        if (turns < RF_SPINS)
            __builtin_ia32_pause();
        else
            yield();
    }
}

static inline void rf_spin_put(uint64_t *place, uint64_t word)
{
    __atomic_store_n(place, word, __ATOMIC_RELEASE);
}

static inline __attribute__((always_inline)) void rf_spin_step(uint64_t *place, rf_step_fn *step, void *access, uint64_t taken,
                                                               void (*yield)(void))
{
    uint64_t old = rf_spin_take(place, taken, yield);
    rf_spin_put(place, step(access, old));
}

#endif
