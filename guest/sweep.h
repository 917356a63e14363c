/* Finding moments, and slots of ended threads, that no history names any more. */
#ifndef RF_GUEST_SWEEP_H
#define RF_GUEST_SWEEP_H

#include "guest/self.h"

void rf_sweep(struct rf_self *self); /* not busy */

#endif
