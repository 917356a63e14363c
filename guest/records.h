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

#endif
