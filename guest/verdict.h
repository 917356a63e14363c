/* Between a race that the detector found and its report. */
#ifndef RF_GUEST_VERDICT_H
#define RF_GUEST_VERDICT_H

#include "guest/self.h"

/* An access (moment `now`) races with an earlier one, of which the mask tells what it left in the granule. Nothing is held, the thread is not busy, the access has not happened yet. */
void rf_race_found(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uint32_t now, uint32_t earlier,
                   unsigned earlier_mask, bool earlier_writes);

#endif
