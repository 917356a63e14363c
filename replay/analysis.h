/* A trace through several detectors, with one worker or many: what `redflag analyze` and `redflag compare` stand on. */
#ifndef RF_REPLAY_ANALYSIS_H
#define RF_REPLAY_ANALYSIS_H

#include "replay/replay.h"
#include "report/report.h"

struct rf_plan {
    const struct rf_detector *const *detectors;
    size_t detector_count;
    struct rf_options options;
    bool all_races;
    unsigned jobs;
    const char *pair[2]; /* litehb: names of the two sites, or NULL */
    enum rf_trace_format format;
    unsigned view; /* enum rf_view */
    void (*progress)(void *context, const struct rf_reader *reader, uint64_t events); /* now and then, or NULL */
    void *progress_context;
};

/* Analyses the trace at `path`. The report is filled as far as the trace is good. On RF_TRACE_ERROR and RF_TRACE_TRUNCATED,
 * *error is one line for the user, to be freed. rf_analysis_end() frees the report in every case. */
enum rf_trace_status rf_analyse(const char *path, const struct rf_plan *plan, struct rf_report *report, char **error);
void rf_analysis_end(struct rf_report *report);

#endif
