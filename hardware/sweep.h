/* The same trace on machines of several sizes: each number of cores with each size of the last level. */
#ifndef RF_HARDWARE_SWEEP_H
#define RF_HARDWARE_SWEEP_H

#include "hardware/simulate.h"

#define RF_SWEEP_MOST 16u

struct rf_sweep {
    uint64_t cores[RF_SWEEP_MOST], sizes[RF_SWEEP_MOST];
    size_t core_count, size_count;
    struct rf_simulation *simulations; /* by cores, then by sizes */
};

/* 2, 4, 8, 16 cores; 1 to 16 MB. */
void rf_sweep_defaults(struct rf_sweep *sweep);
/* "1M,4M,16M" into a list. false: it is none. */
bool rf_sweep_list(const char *text, uint64_t *list, size_t *count);
/* Makes the machines from `base`. false: message says which one cannot be. */
bool rf_sweep_begin(struct rf_sweep *sweep, const struct rf_config *base, char *message, size_t size);
void rf_sweep_end(struct rf_sweep *sweep);
void rf_sweep_plot(const struct rf_sweep *sweep, const char *title, FILE *out);
/* "16M" */
void rf_sweep_size_text(uint64_t bytes, char text[24]);

#endif
