/* The beginning and the end of the guest. */
#ifndef RF_GUEST_START_H
#define RF_GUEST_START_H

#include <stdint.h>

/* Makes everything ready, once; any hook may be the first to ask. Returns 1 when the guest runs. */
int rf_start(void);
void rf_world_begin(void);
void rf_depot_begin(void);
void rf_moments_begin(void);

#endif
