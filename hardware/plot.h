/* A plot of several series over the same few places, as SVG that stands alone: no script, no font but the reader's own. */
#ifndef RF_HARDWARE_PLOT_H
#define RF_HARDWARE_PLOT_H

#include <stddef.h>
#include <stdio.h>

struct rf_plot {
    const char *title, *x_label, *y_label;
    const char *const *places; /* what stands below the axis */
    size_t place_count;
    const char *const *names; /* of the series */
    size_t series_count;
    const double *values; /* by series, then by place */
};

/* Lines with marks; the vertical axis begins at 1, a slowdown that is none. */
void rf_plot_lines(const struct rf_plot *plot, FILE *out);
/* Shares of a whole, one bar a place, the series stacked on each other; values are between 0 and 1. */
void rf_plot_shares(const struct rf_plot *plot, FILE *out);

#endif
