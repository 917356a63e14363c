/* Between a race that the detector found and its report. */
#ifndef RF_GUEST_VERDICT_H
#define RF_GUEST_VERDICT_H

#include "guest/self.h"

/* A race, in terms that keep their meaning: notes, slot and time. */
struct rf_found {
    uintptr_t addr; /* of the access, which has not happened yet */
    size_t size;
    unsigned flags;
    uint32_t note;
    uint32_t locks;
    uint32_t moment, earlier, slot, time; /* the earlier access; `earlier` is its note */
    uint32_t earlier_locks;
    unsigned mask;                        /* what it left in the granule */
    bool writes;
    bool predicted; /* it may happen under another schedule (guest/accu.h) */
};

struct rf_step;
struct rf_found rf_found_by(const struct rf_step *step, uintptr_t addr, size_t size, uint32_t note);

/* Nothing is held, the thread is not busy. It may never come back (guest/refusal.h). True: the access happens; false: an
 * atomic operation that is not decided yet. */
bool rf_race_found(struct rf_self *self, const struct rf_found *race);

#endif
