/* redflag trace info */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/trace.h"
#include "report/progress.h"
#include "trace/map.h"

struct census {
    uint64_t events, numbers, system; /* system: those with the mark of the runtime system */
    uint64_t ops[RF_OP_COUNT];
    uint64_t last;
    struct rf_map variables, locks, others; /* granules; locks; volatiles, conditions, barriers */
    uint64_t bytes;
};

/* What an operation without a word in texts is called here. */
static const char *word_of(enum rf_op op)
{
    switch (op) {
    case RF_COMMIT_READ:
        return "commit-read";
    case RF_COMMIT_WRITE:
        return "commit-write";
    case RF_COPY_TO:
        return "copy-to";
    case RF_FORGET:
        return "forget";
    default:
        return rf_op_text(op);
    }
}

static void count_event(struct census *census, const struct rf_event *event)
{
    census->ops[event->op]++;
    switch (event->op) {
    case RF_READ:
    case RF_WRITE:
    case RF_COMMIT_READ:
    case RF_COMMIT_WRITE:
        rf_map_add(&census->variables, event->addr / RF_GRANULE);
        break;
    case RF_ACQUIRE:
    case RF_RELEASE:
    case RF_READ_ACQUIRE:
    case RF_READ_RELEASE:
        rf_map_add(&census->locks, event->addr);
        break;
    case RF_VOLATILE_READ:
    case RF_VOLATILE_WRITE:
    case RF_SIGNAL:
    case RF_WAIT:
    case RF_BARRIER:
        rf_map_add(&census->others, event->addr);
        break;
    default:
        break;
    }
}

static void print_text(const struct census *census, const struct rf_reader *reader, const char *path)
{
    double per_event = census->events ? (double)census->bytes / (double)census->events : 0;
    printf("trace      %s\n", path);
    printf("format     %s\n", rf_reader_format(reader) == RF_FORMAT_STD ? "std" : "rft");
    printf("bytes      %" PRIu64 " (%.2f per event, %.1f times smaller than in memory)\n", census->bytes, per_event,
           per_event > 0 ? (double)sizeof(struct rf_event) / per_event : 0);
    printf("events     %" PRIu64 ", with %" PRIu64 " numbers, the last %" PRIu64 "\n", census->events, census->numbers,
           census->last);
    if (census->system)
        printf("           %" PRIu64 " of them are the runtime system's\n", census->system);
    printf("threads    %" PRIu32 "\n", rf_reader_threads(reader));
    printf("variables  %zu\n", census->variables.count);
    printf("locks      %zu\n", census->locks.count);
    printf("objects    %zu\n", census->others.count);
    printf("sites      %" PRIu32 "\n", rf_reader_sites(reader) - 1);
    for (int op = 0; op < RF_OP_COUNT; op++)
        if (census->ops[op])
            printf("  %-12s %12" PRIu64 " %5.1f%%\n", word_of((enum rf_op)op), census->ops[op],
                   100.0 * (double)census->ops[op] / (double)census->events);
}

static void print_json_string(const char *text)
{
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if (*c < 0x20)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    }
    putchar('"');
}

static void print_json(const struct census *census, const struct rf_reader *reader, const char *path, bool truncated)
{
    printf("{\"trace\":");
    print_json_string(path);
    printf(",\"format\":\"%s\",\"bytes\":%" PRIu64 ",\"truncated\":%s,\"events\":%" PRIu64 ",\"system_events\":%" PRIu64
           ",\"numbers\":%" PRIu64 ",\"last_number\":%" PRIu64 ",\"threads\":%" PRIu32
           ",\"variables\":%zu,\"locks\":%zu,\"objects\":%zu,"
           "\"sites\":%" PRIu32 ",\"operations\":{",
           rf_reader_format(reader) == RF_FORMAT_STD ? "std" : "rft", census->bytes, truncated ? "true" : "false",
           census->events, census->system, census->numbers, census->last, rf_reader_threads(reader), census->variables.count,
           census->locks.count, census->others.count, rf_reader_sites(reader) - 1);
    const char *separator = "";
    for (int op = 0; op < RF_OP_COUNT; op++) {
        if (!census->ops[op])
            continue;
        printf("%s\"%s\":%" PRIu64, separator, word_of((enum rf_op)op), census->ops[op]);
        separator = ",";
    }
    puts("}}");
}

int rf_trace_info(int argc, char **argv)
{
    static const struct option options[] = { { "format", required_argument, 0, 'f' },
                                             { "help", no_argument, 0, 'h' },
                                             { 0, 0, 0, 0 } };
    bool json = false;
    optind = 0;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        switch (option) {
        case 'f':
            json = strcmp(optarg, "json") == 0;
            if (!json && strcmp(optarg, "text") != 0)
                return rf_trace_complain("trace info: --format is text or json, not '%s'", optarg);
            break;
        case 'h':
            puts("usage: redflag trace info [--format text|json] TRACE\n\n"
                 "Counts a trace's events by kind, its threads, variables (granules of 8 bytes), locks, other objects and "
                 "sites.");
            return RF_EXIT_OK;
        default:
            return rf_trace_bad_option("info", argv, option == ':');
        }
    }
    struct rf_reader *reader = rf_trace_open("info", argc, argv, RF_FORMAT_AUTO);
    if (!reader)
        return RF_EXIT_USAGE;
    struct census census = { 0 };
    struct rf_chunk *chunk = rf_chunk_new();
    struct rf_batch batch;
    struct rf_progress progress;
    enum rf_trace_status status;
    rf_progress_begin(&progress, "counting");
    while ((status = rf_trace_raw(reader, chunk, &batch)) == RF_TRACE_MORE) {
        for (size_t i = 0; i < batch.count; i++) {
            uint64_t number = rf_event_number(&batch, &batch.events[i]);
            census.numbers += census.events++ == 0 || number != census.last;
            census.last = number;
            census.system += batch.events[i].system;
            count_event(&census, &batch.events[i]);
        }
        rf_progress_update(&progress, rf_reader_position(reader), rf_reader_size(reader), census.events);
    }
    rf_progress_end(&progress);
    census.bytes = rf_reader_position(reader);
    if (status != RF_TRACE_ERROR) {
        if (json)
            print_json(&census, reader, argv[optind], status == RF_TRACE_TRUNCATED);
        else
            print_text(&census, reader, argv[optind]);
    }
    int result = rf_trace_end(reader, status);
    rf_map_free(&census.variables);
    rf_map_free(&census.locks);
    rf_map_free(&census.others);
    rf_chunk_free(chunk);
    rf_reader_close(reader);
    return result;
}
