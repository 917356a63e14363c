/* No synchronisation (Wood's Unsync): of two steps at once one may be lost, and with it a race (his Figure 5.1). What a step costs
 * beyond this is the price of atomicity.
 */
#ifndef RF_SYNC_NONE_H
#define RF_SYNC_NONE_H

#include "sync/step.h"

static inline __attribute__((always_inline)) void rf_none_step(uint64_t *place, rf_step_fn *step, void *access)
{
    uint64_t old = __atomic_load_n(place, __ATOMIC_ACQUIRE), next = step(access, old);
    if (next != old)
        __atomic_store_n(place, next, __ATOMIC_RELEASE);
}

#endif
