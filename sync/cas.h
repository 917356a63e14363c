/* Compare-and-swap (Wood's Cas): a step that changes nothing needs no synchronisation, one that does is repeated until the word that
 * it saw is the word that it replaces.
 *
 * Progress: a step fails only because another one succeeded.
 */
#ifndef RF_SYNC_CAS_H
#define RF_SYNC_CAS_H

#include "sync/step.h"

static inline __attribute__((always_inline)) void rf_cas_step(uint64_t *place, rf_step_fn *step, void *access)
{
    uint64_t old = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    while ((next = step(access, old)) != old &&
           !__atomic_compare_exchange_n(place, &old, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
}

#endif
