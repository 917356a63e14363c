/* AccuLock's steps on the units of a granule where they lie: the rules of detect/acculock.inc, on one cell after the other.
 *
 * 1. Bytes that have no set are in lanes (guest/lanes.h), others in a record (guest/units.h). In lanes a step is done unless a read would
 *    be one of two that stay; in a record, if the access is to the bytes of whole slices, and some slice has a set afterwards. So the word
 *    stays what it is, but for lanes whose cells are all equal afterwards. What is not done here is left to rf_step_locked().
 * 2. Such a step may race, as any other.
 */
#ifndef RF_GUEST_ACCU_UNITS_H
#define RF_GUEST_ACCU_UNITS_H

#include "guest/lanes.h"

/* A plain access of step->now to a granule whose word was this one, and had lanes or a record. What it races with, if it does, is in the
 * step. false: nothing was done. */
bool rf_accu_units_step(uint64_t *place, uint64_t word, unsigned mask, struct rf_step *step);

/* An access of now to bytes that lie together, of a granule whose word was this one, and had lanes: in the most frequent cases. false: nothing
 * was done. It tells of no race. */
bool rf_accu_lanes_step(struct rf_self *self, uint64_t *place, uint64_t word, unsigned mask, uint32_t now, unsigned flags);

/* A read of now, to a granule whose word was this one, and had a record: in the most frequent cases, slice by slice; bytes that are read apart
 * from others of their slice become one of their own. *known: this epoch has read them all. false: it was not done, or for some slices, which
 * know it when it is done again. It tells of no race. */
bool rf_accu_reads_record(struct rf_self *self, uint64_t *place, uint64_t word, unsigned mask, uint32_t now, bool *known);

/* A read map of two takes the place of the read of a word: that read, and one of now to the same bytes. `passes` is what the map says of locks.
 * false: the word was another one by then. */
bool rf_accu_begins_map(uint64_t *place, uint64_t word, uint32_t now, uint32_t passes);

#endif
