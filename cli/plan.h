/* The options that `analyze` and `compare` share, and how they become a plan. */
#ifndef RF_CLI_PLAN_H
#define RF_CLI_PLAN_H

#include "replay/analysis.h"
#include "report/progress.h"

struct rf_plan_options {
    struct rf_plan plan;
    const struct rf_detector **detectors; /* what plan.detectors points to */
    char *pair;                           /* what plan.pair points into */
    const char *format;                   /* of the output */
    const char *output;
    bool statistics;
    bool lard;            /* compare: views of one execution, not detectors */
    const char *language; /* --language */
    const char **traces;
    size_t trace_count;
};

/* Parses the arguments of `command`. Returns -1 if it may go on; otherwise the exit status: help was printed, or a line that says
 * what is wrong. `formats` are the words that --format takes, separated by '|'; the first is the default. */
int rf_plan_parse(struct rf_plan_options *options, const char *command, const char *formats, int argc, char **argv);
void rf_plan_end(struct rf_plan_options *options);

/* Opens --output, standard output without it. NULL: a line was printed. */
FILE *rf_plan_open_output(const struct rf_plan_options *options);
/* false: not everything could be written, and a line was printed. */
bool rf_plan_close_output(const struct rf_plan_options *options, FILE *out);

/* rf_analyse() with a progress bar; what it says is printed. *error is to be freed. */
enum rf_trace_status rf_plan_run(const struct rf_plan_options *options, const char *path, struct rf_report *report,
                                 char **error);

#endif
