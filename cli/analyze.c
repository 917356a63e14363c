/* redflag analyze: the races of recorded executions. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/plan.h"

/* Bad input outweighs damage, damage outweighs races: whoever reads only the status must not take a part for the whole. */
static int worse(int a, int b)
{
    static const int order[] = { RF_EXIT_USAGE, RF_EXIT_TRUNCATED, RF_EXIT_RACES };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return RF_EXIT_OK;
}

int rf_cli_analyze(int argc, char **argv)
{
    struct rf_plan_options options;
    int status = rf_plan_parse(&options, "analyze", "text|json", argc, argv);
    FILE *out = NULL;
    if (status < 0 && !(out = rf_plan_open_output(&options)))
        status = RF_EXIT_USAGE;
    if (status >= 0) {
        rf_plan_end(&options);
        return status;
    }
    bool json = !strcmp(options.format, "json"), several = options.trace_count > 1;
    size_t written = 0;
    status = RF_EXIT_OK;
    if (json && several)
        fputs("[\n", out);
    for (size_t i = 0; i < options.trace_count; i++) {
        struct rf_report report;
        char *error;
        enum rf_trace_status end = rf_plan_run(&options, options.traces[i], &report, &error);
        if (end == RF_TRACE_ERROR)
            status = worse(status, RF_EXIT_USAGE);
        else if (end == RF_TRACE_TRUNCATED)
            status = worse(status, RF_EXIT_TRUNCATED);
        for (size_t r = 0; r < report.result_count; r++)
            if (report.results[r].races.count)
                status = worse(status, RF_EXIT_RACES);
        if (end != RF_TRACE_ERROR) {
            if (json && written++)
                fputs(",\n", out);
            if (json)
                rf_report_json(out, &report);
            else
                rf_report_text(out, &report, options.statistics);
        }
        rf_analysis_end(&report);
        free(error);
    }
    if (json && several)
        fputs("]\n", out);
    if (!rf_plan_close_output(&options, out))
        status = RF_EXIT_USAGE;
    rf_plan_end(&options);
    return status;
}
