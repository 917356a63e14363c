/* A line on the terminal that says how far a long job is.
 *
 * 1. Nothing is printed unless standard error is a terminal and the job has lasted for a second.
 * 2. The line is erased at the end: what is left on the screen is the job's own output.
 */
#ifndef RF_REPORT_PROGRESS_H
#define RF_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct rf_progress {
    const char *what;
    uint64_t started, next; /* milliseconds */
    bool terminal, shown;
};

void rf_progress_begin(struct rf_progress *progress, const char *what);
/* `total` may be 0, unknown; events are shown if not 0. Cheap enough for every batch. */
void rf_progress_update(struct rf_progress *progress, uint64_t done, uint64_t total, uint64_t events);
void rf_progress_end(struct rf_progress *progress);

#endif
