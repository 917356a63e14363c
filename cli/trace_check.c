/* redflag trace check */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/trace.h"
#include "report/progress.h"
#include "trace/check.h"

struct listing {
    const struct rf_reader *reader;
    const char *path;
    uint64_t left; /* to be printed */
};

static void print_violation(void *context, uint64_t number, const struct rf_event *event, const char *reason)
{
    struct listing *listing = context;
    if (listing->left == 0)
        return;
    listing->left--;
    char line[400];
    rf_reader_print(listing->reader, event, line, sizeof line);
    bool text = rf_reader_format(listing->reader) == RF_FORMAT_STD;
    printf(text ? "%s:%" PRIu64 ": %s: %s\n" : "%s: event %" PRIu64 ": %s: %s\n", listing->path, number, line, reason);
}

int rf_trace_check(int argc, char **argv)
{
    static const struct option options[] = { { "max", required_argument, 0, 'm' },
                                             { "help", no_argument, 0, 'h' },
                                             { 0, 0, 0, 0 } };
    uint64_t most = 20;
    optind = 0;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        switch (option) {
        case 'm':
            if (!rf_trace_number(optarg, &most))
                return rf_trace_complain("trace check: not a number: '%s'", optarg);
            break;
        case 'h':
            puts("usage: redflag trace check [--max N] TRACE\n\n"
                 "Prints what no execution could have done, one line for each event: a lock that two threads hold, a thread "
                 "that\n"
                 "acts after it was joined, an access to freed memory. After N lines, 20 unless it is given, only counts.\n"
                 "Exit status: 0 nothing found, 1 something found, 2 unreadable, 3 truncated.");
            return RF_EXIT_OK;
        default:
            return rf_trace_bad_option("check", argv, option == ':');
        }
    }
    struct rf_reader *reader = rf_trace_open("check", argc, argv, RF_FORMAT_AUTO);
    if (!reader)
        return RF_EXIT_USAGE;
    struct listing listing = { reader, argv[optind], most };
    struct rf_check *check = rf_check_new(print_violation, &listing);
    struct rf_chunk *chunk = rf_chunk_new();
    struct rf_batch batch;
    struct rf_progress progress;
    enum rf_trace_status status;
    uint64_t events = 0;
    rf_progress_begin(&progress, "checking");
    while ((status = rf_trace_raw(reader, chunk, &batch)) == RF_TRACE_MORE) {
        rf_check_batch(check, &batch);
        events += batch.count;
        rf_progress_update(&progress, rf_reader_position(reader), rf_reader_size(reader), events);
    }
    rf_progress_end(&progress);
    uint64_t found = rf_check_violations(check);
    if (found > most)
        printf("%s: %" PRIu64 " violations, of which %" PRIu64 " are shown\n", argv[optind], found, most);
    int result = rf_trace_end(reader, status);
    if (result == RF_EXIT_OK && found)
        result = RF_EXIT_FOUND;
    rf_check_free(check);
    rf_chunk_free(chunk);
    rf_reader_close(reader);
    return result;
}
