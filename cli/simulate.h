/* What `redflag simulate` prints. */
#ifndef RF_CLI_SIMULATE_H
#define RF_CLI_SIMULATE_H

#include <stdio.h>

#include "hardware/simulate.h"
#include "hardware/sweep.h"

/* How many sites or variables are shown. */
struct rf_simulate_view {
    const char *trace;
    const struct rf_reader *reader;
    uint32_t top;
};

void rf_simulate_text(FILE *out, const struct rf_simulation *simulation, const struct rf_simulate_view *view);
void rf_simulate_json(FILE *out, const struct rf_simulation *simulation, const struct rf_simulate_view *view);
void rf_sweep_text(FILE *out, const struct rf_sweep *sweep, const struct rf_simulate_view *view);
void rf_sweep_json(FILE *out, const struct rf_sweep *sweep, const struct rf_simulate_view *view);

#endif
