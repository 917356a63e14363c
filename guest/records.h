/* Steps that change one part of a granule's units (guest/units.h) where it lies.
 *
 * 1. The access is to the bytes of whole slices of a record, if it writes of one, or to those that a read map is of, and all that it meets
 *    happens before it: [FT' READ EXCL], [FT' READ SHARED], [FT' WRITE EXCL] on each slice. The word stays what it is.
 * 2. What would make the units smaller, as a word that can do without them, or slices that become equal, is left to rf_step_locked().
 */
#ifndef RF_GUEST_RECORDS_H
#define RF_GUEST_RECORDS_H

#include "guest/granule.h"

/* A plain access of the calling thread, which is busy, to a granule whose word was this one, and has units. false: nothing was done. */
bool rf_units_access(struct rf_self *self, uint64_t *place, uint64_t word, unsigned mask, uintptr_t pc, unsigned size,
                     unsigned flags);

/* The two halves of a read that a set of few takes in, with the stripe's lock. It has one of the present epoch already, */
static inline __attribute__((always_inline)) bool rf_set_has_now(const struct rf_readers *readers)
{
    for (uint32_t i = 0; i < readers->count; i++)
        if (rf_moment_is_hot(readers->few[i]))
            return true;
    return false;
}

/* ... or the step's moment takes the place of those that happen before it (rf_step_put), of which there must be one. Who looks without the lock
 * finds one of its own that was there, or that is (guest/units.h, 2 and 3). */
static inline __attribute__((always_inline)) bool rf_set_replace(uint32_t set, const struct rf_step *step)
{
    struct rf_readers *readers = rf_readers_at(set);
    uint32_t *list = readers->few, place = RF_FEW;
    for (uint32_t i = readers->count; i-- > 0;) {
        if (!rf_step_ordered(step, list[i]))
            continue;
        if (__builtin_expect(place < RF_FEW, 0))
            rf_readers_remove(set, place); /* the last one of the list comes here, and has been looked at */
        place = i;
    }
    if (place == RF_FEW)
        return false;
    __atomic_store_n(&list[place], step->now, __ATOMIC_RELAXED);
    return true;
}

#endif
