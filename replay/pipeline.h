/* Drives batches of a trace through replays, with one worker or several. */
#ifndef RF_REPLAY_PIPELINE_H
#define RF_REPLAY_PIPELINE_H

#include "replay/analysis.h"
#include "replay/sites.h"

struct rf_pipeline {
    const struct rf_plan *plan;
    struct rf_reader *reader;
    struct rf_sites *sites;
    /* detector_count * jobs of them, those of a detector side by side; a detector that cannot be sharded has one, the first. */
    struct rf_replay *replays;
};

/* RF_TRACE_MORE: the trace moves histories between variables (COPY), which several workers cannot; nothing is lost, since the
 * caller starts over with one. Otherwise how the trace ended. */
enum rf_trace_status rf_pipeline_run(struct rf_pipeline *pipeline);

#endif
