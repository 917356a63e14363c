/* The last step from each of a few places: what struct rf_last_step (guest/self.h) says of it. The calling thread is busy. */
#ifndef RF_GUEST_LAST_STEPS_H
#define RF_GUEST_LAST_STEPS_H

#include "guest/access.h"
#include "guest/self.h"

static inline uint32_t rf_how_of(uintptr_t addr, unsigned size, unsigned flags)
{
    return (unsigned)(addr % RF_GRANULE) << 16 | flags << 8 | size;
}

static inline struct rf_last_step *rf_last_step_of(struct rf_self *self, uintptr_t pc)
{
    return &self->last_steps[((uint32_t)pc * UINT32_C(0x9e3779b9)) >> (32 - RF_LAST_STEPS_BITS)];
}

/* The frame is known. */
static inline void rf_keep_step(struct rf_self *self, uint64_t old, uint64_t next, uintptr_t pc, uintptr_t addr, unsigned size,
                                unsigned flags, uint32_t race)
{
    *rf_last_step_of(self, pc) = (struct rf_last_step){ .old = old, .next = next, .pc = pc, .top = rf_hot.top, .node = rf_hot.top[-1].node,
                                                        .locks = self->locks, .how = rf_how_of(addr, size, flags),
                                                        .first = (uint32_t)rf_hot.first, .race = race };
}

#endif
