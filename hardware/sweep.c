/* See hardware/sweep.h. */
#include "hardware/sweep.h"

#include <inttypes.h>

#include "hardware/plot.h"
#include "trace/grow.h"

void rf_sweep_defaults(struct rf_sweep *sweep)
{
    *sweep = (struct rf_sweep){ .cores = { 2, 4, 8, 16 },
                                .core_count = 4,
                                .sizes = { 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20 },
                                .size_count = 5 };
}

bool rf_sweep_list(const char *text, uint64_t *list, size_t *count)
{
    *count = 0;
    for (;;) {
        char *end;
        uint64_t number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
        if (!number || number > 1u << 30 || *count == RF_SWEEP_MOST)
            return false;
        unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
        end += shift != 0;
        list[(*count)++] = number << shift;
        if (!*end)
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
}

bool rf_sweep_begin(struct rf_sweep *sweep, const struct rf_config *base, char *message, size_t size)
{
    sweep->simulations = rf_zeroed(sweep->core_count * sweep->size_count, sizeof *sweep->simulations);
    for (int making = 0; making < 2; making++) /* all are checked before the first is made */
        for (size_t c = 0; c < sweep->core_count; c++)
            for (size_t s = 0; s < sweep->size_count; s++) {
                struct rf_config config = *base;
                char setting[64], why[300];
                config.cores = sweep->cores[c];
                config.llc_bytes = sweep->sizes[s];
                snprintf(setting, sizeof setting, "cores=%" PRIu64, sweep->cores[c]);
                if (!rf_config_set(&config, setting, why, sizeof why) || !rf_config_check(&config, why, sizeof why)) {
                    snprintf(message, size, "%" PRIu64 " cores with llc_bytes = %" PRIu64 ": %s", sweep->cores[c], sweep->sizes[s],
                             why);
                    free(sweep->simulations);
                    return false;
                }
                if (making)
                    rf_simulation_init(&sweep->simulations[c * sweep->size_count + s], &config, 0);
            }
    return true;
}

void rf_sweep_end(struct rf_sweep *sweep)
{
    for (size_t i = 0; i < sweep->core_count * sweep->size_count; i++)
        rf_simulation_free(&sweep->simulations[i]);
    free(sweep->simulations);
}

void rf_sweep_size_text(uint64_t bytes, char text[24])
{
    bool mega = bytes % (1 << 20) == 0, kilo = bytes % (1 << 10) == 0;
    snprintf(text, 24, "%" PRIu64 "%s", bytes >> (mega ? 20 : kilo ? 10 : 0), mega ? "M" : kilo ? "K" : "");
}

void rf_sweep_plot(const struct rf_sweep *sweep, const char *title, FILE *out)
{
    char sizes[RF_SWEEP_MOST][24], cores[RF_SWEEP_MOST][24];
    const char *places[RF_SWEEP_MOST], *names[RF_SWEEP_MOST];
    double values[RF_SWEEP_MOST * RF_SWEEP_MOST];
    for (size_t s = 0; s < sweep->size_count; s++) {
        rf_sweep_size_text(sweep->sizes[s], sizes[s]);
        places[s] = sizes[s];
    }
    for (size_t c = 0; c < sweep->core_count; c++) {
        snprintf(cores[c], sizeof cores[c], "%" PRIu64 " core%s", sweep->cores[c], sweep->cores[c] == 1 ? "" : "s");
        names[c] = cores[c];
    }
    for (size_t i = 0; i < sweep->core_count * sweep->size_count; i++)
        values[i] = rf_simulation_slowdown(&sweep->simulations[i]);
    struct rf_plot plot = { .title = title,
                            .x_label = "last-level cache, bytes",
                            .y_label = "slowdown with RADISH",
                            .places = places,
                            .place_count = sweep->size_count,
                            .names = names,
                            .series_count = sweep->core_count,
                            .values = values };
    rf_plot_lines(&plot, out);
}
