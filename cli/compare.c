/* redflag compare: all detectors over one execution; or one detector over all views of it. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/plan.h"
#include "replay/lard.h"

/* The exit status says whether the program has races, as LARD finds them. */
static int compare_views(const struct rf_plan_options *options, FILE *out)
{
    struct rf_lard lard;
    char *error = NULL;
    enum rf_trace_status end = rf_lard(options->traces[0], options->language, &options->plan, &lard, &error);
    if (error)
        fprintf(stderr, "redflag: %s\n", error);
    if (end != RF_TRACE_ERROR) {
        if (!strcmp(options->format, "json"))
            rf_lard_json(out, &lard);
        else if (!strcmp(options->format, "md"))
            rf_lard_markdown(out, &lard);
        else
            rf_lard_text(out, &lard);
    }
    free(error);
    return end == RF_TRACE_ERROR            ? RF_EXIT_USAGE
           : end == RF_TRACE_TRUNCATED      ? RF_EXIT_TRUNCATED
           : lard.rows[0].reported.accesses ? RF_EXIT_RACES
                                            : RF_EXIT_OK;
}

int rf_cli_compare(int argc, char **argv)
{
    struct rf_plan_options options;
    int status = rf_plan_parse(&options, "compare", "text|md|json", argc, argv);
    FILE *out = NULL;
    if (status < 0 && options.trace_count > 1) {
        fprintf(stderr, "redflag compare: one trace at a time, not %zu\n", options.trace_count);
        status = RF_EXIT_USAGE;
    }
    if (status < 0 && options.lard && !strcmp(options.traces[0], "-")) {
        fprintf(stderr, "redflag compare: --lard reads the trace several times; it must be a file, not standard input\n");
        status = RF_EXIT_USAGE;
    }
    if (status < 0 && !(out = rf_plan_open_output(&options)))
        status = RF_EXIT_USAGE;
    if (status >= 0) {
        rf_plan_end(&options);
        return status;
    }
    if (options.lard) {
        status = compare_views(&options, out);
        if (!rf_plan_close_output(&options, out))
            status = RF_EXIT_USAGE;
        rf_plan_end(&options);
        return status;
    }
    struct rf_report report;
    char *error;
    enum rf_trace_status end = rf_plan_run(&options, options.traces[0], &report, &error);
    status = end == RF_TRACE_ERROR ? RF_EXIT_USAGE : end == RF_TRACE_TRUNCATED ? RF_EXIT_TRUNCATED : RF_EXIT_OK;
    for (size_t r = 0; status == RF_EXIT_OK && r < report.result_count; r++)
        if (report.results[r].races.count)
            status = RF_EXIT_RACES;
    if (end != RF_TRACE_ERROR) {
        if (!strcmp(options.format, "json"))
            rf_compare_json(out, &report);
        else if (!strcmp(options.format, "md"))
            rf_compare_markdown(out, &report);
        else
            rf_compare_text(out, &report);
    }
    rf_analysis_end(&report);
    free(error);
    if (!rf_plan_close_output(&options, out))
        status = RF_EXIT_USAGE;
    rf_plan_end(&options);
    return status;
}
