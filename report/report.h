/* What was found, in a form that knows nothing of how: every writer of reports starts from a struct rf_report. */
#ifndef RF_REPORT_REPORT_H
#define RF_REPORT_REPORT_H

#include <stdio.h>

#include "core/race.h"

/* Numbers to names. The buffers are used for what has no name. */
struct rf_namer {
    const void *context;
    const char *(*thread)(const void *context, uint32_t thread);
    const char *(*site)(const void *context, uint32_t site);
    const char *(*variable)(const void *context, uint64_t addr, char buffer[32]);
    const char *(*object)(const void *context, uint64_t addr, char buffer[32]);
};

struct rf_statistic {
    const char *name;
    uint64_t value;
};

struct rf_result {
    const char *detector;
    struct rf_races races;
    struct rf_statistic *statistics;
    size_t statistic_count;
    double seconds;          /* of processor time in the detector */
    uint64_t bytes;          /* of metadata */
    uint64_t variable_bytes; /* without that of threads, synchronisation objects, and the way to cells */
    uint64_t variables;      /* with a history at the end */
};

struct rf_report {
    const char *path, *format;
    const char *truncated; /* where and why, NULL if the trace is whole */
    uint64_t events;
    uint32_t threads, sites;
    double seconds; /* on the wall, all detectors and reading included */
    struct rf_namer names;
    struct rf_result *results;
    size_t result_count;
};

/* "write-read": what the first access did, then the second. "unprotected-write" if there is no first. */
const char *rf_race_kind(const struct rf_race *race);

void rf_report_text(FILE *out, const struct rf_report *report, bool statistics);
void rf_report_json(FILE *out, const struct rf_report *report);

/* `redflag compare`: a table of detectors and a matrix of who reports what. */
void rf_compare_text(FILE *out, const struct rf_report *report);
void rf_compare_markdown(FILE *out, const struct rf_report *report);
void rf_compare_json(FILE *out, const struct rf_report *report);

#endif
