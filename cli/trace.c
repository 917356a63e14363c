/* redflag trace: what its parts share, and `convert` and `head`. */
#include "cli/trace.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "report/progress.h"

static const struct part {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} parts[] = {
    { "convert", rf_trace_convert, "rewrite a trace in another format" },
    { "info", rf_trace_info, "count what is in a trace" },
    { "head", rf_trace_head, "print the first events as text" },
    { "generate", rf_trace_generate, "make a trace from a seed" },
    { "check", rf_trace_check, "find what no real execution could have done" },
};

int rf_cli_trace(int argc, char **argv)
{
    if (argc < 2)
        return rf_trace_complain("trace: no command; try 'redflag trace --help'");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        puts("usage: redflag trace COMMAND [OPTION...] [ARGUMENT]\n\nCommands:");
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            printf("  %-10s %s\n", parts[i].name, parts[i].summary);
        puts("\n`redflag trace COMMAND --help` tells more. A trace is STD text or .rft; \"-\" is standard input or output.");
        return RF_EXIT_OK;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(argv[1], parts[i].name) == 0)
            return parts[i].run(argc - 1, argv + 1);
    return rf_trace_complain("trace: unknown command '%s'; try 'redflag trace --help'", argv[1]);
}

int rf_trace_complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("redflag: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return RF_EXIT_USAGE;
}

int rf_trace_bad_option(const char *command, char **argv, bool lacks_value)
{
    /* A refused short option is in optopt; a long one is the argument before optind. */
    const char *given = argv[optind - 1];
    char letter[3] = { '-', (char)optopt, 0 };
    if (optopt > 0 && optopt < 128 && (given[0] != '-' || given[1] != '-'))
        given = letter;
    return rf_trace_complain("trace %s: %s '%s'; try 'redflag trace %s --help'", command,
                             lacks_value ? "a value is missing after" : "bad option", given, command);
}

bool rf_trace_format(const char *text, enum rf_trace_format *format)
{
    if (strcmp(text, "std") != 0 && strcmp(text, "rft") != 0)
        return false;
    *format = text[0] == 's' ? RF_FORMAT_STD : RF_FORMAT_RFT;
    return true;
}

bool rf_trace_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return false;
    *number = value;
    return true;
}

struct rf_reader *rf_trace_open(const char *command, int argc, char **argv, enum rf_trace_format format)
{
    if (argc - optind != 1) {
        rf_trace_complain("trace %s: give one trace, not %d; try 'redflag trace %s --help'", command, argc - optind,
                          command);
        return NULL;
    }
    char *error = NULL;
    struct rf_reader *reader = rf_reader_open(argv[optind], format, &error);
    if (!reader)
        rf_trace_complain("%s", error);
    free(error);
    return reader;
}

int rf_trace_end(const struct rf_reader *reader, enum rf_trace_status status)
{
    if (status == RF_TRACE_END)
        return RF_EXIT_OK;
    rf_trace_complain("%s", rf_reader_error(reader));
    return status == RF_TRACE_TRUNCATED ? RF_EXIT_TRUNCATED : RF_EXIT_USAGE;
}

enum rf_trace_status rf_trace_raw(struct rf_reader *reader, struct rf_chunk *chunk, struct rf_batch *batch)
{
    *batch = (struct rf_batch){ 0 };
    enum rf_trace_status status = rf_reader_fetch(reader, chunk);
    if (status == RF_TRACE_MORE && !rf_chunk_decode(reader, chunk, batch))
        return rf_reader_damaged(reader, chunk);
    return status;
}

/* The input was bad from some place on; says what of it is in the output, if that is worth saying: `path` is not NULL. */
static int end_early(const struct rf_reader *reader, enum rf_trace_status status, const char *path, uint64_t events)
{
    if (!path)
        return rf_trace_end(reader, status);
    rf_trace_complain("%s; %s has the %" PRIu64 " events before it", rf_reader_error(reader),
                      strcmp(path, "-") ? path : "standard output", events);
    return status == RF_TRACE_TRUNCATED ? RF_EXIT_TRUNCATED : RF_EXIT_USAGE;
}

/* Copies to `path` the events of the first `limit` numbers: of so many lines, if they come from a text. */
static int copy(struct rf_reader *reader, const char *path, enum rf_trace_format to, uint64_t limit)
{
    char *error = NULL;
    struct rf_writer *writer = rf_writer_open(path, to, &error);
    if (!writer) {
        rf_trace_complain("%s", error);
        free(error);
        return RF_EXIT_USAGE;
    }
    struct rf_chunk *chunk = rf_chunk_new();
    struct rf_batch batch;
    struct rf_progress progress;
    enum rf_trace_status status = RF_TRACE_END;
    uint64_t taken = 0, events = 0, last = 0;
    rf_progress_begin(&progress, "converting");
    while (taken < limit && !rf_writer_failed(writer) && (status = rf_trace_raw(reader, chunk, &batch)) == RF_TRACE_MORE) {
        rf_writer_names(writer, reader);
        for (size_t i = 0; i < batch.count; i++) {
            uint64_t number = rf_event_number(&batch, &batch.events[i]);
            if ((events++ == 0 || number != last) && taken++ == limit) {
                taken = limit;
                break;
            }
            last = number;
            rf_writer_event(writer, number, &batch.events[i]);
        }
        rf_progress_update(&progress, rf_reader_position(reader), rf_reader_size(reader), events);
    }
    rf_progress_end(&progress);
    rf_chunk_free(chunk);
    bool closed = rf_writer_close(writer, &error),
         early = taken < limit && status != RF_TRACE_MORE && status != RF_TRACE_END;
    int result = early ? end_early(reader, status, closed && limit == UINT64_MAX ? path : NULL, events) : RF_EXIT_OK;
    if (!closed) {
        result = rf_trace_complain("%s", error);
        free(error);
    }
    return result;
}

int rf_trace_convert(int argc, char **argv)
{
    static const struct option options[] = { { "from", required_argument, 0, 'f' },
                                             { "to", required_argument, 0, 't' },
                                             { "output", required_argument, 0, 'o' },
                                             { "help", no_argument, 0, 'h' },
                                             { 0, 0, 0, 0 } };
    enum rf_trace_format from = RF_FORMAT_AUTO, to = RF_FORMAT_AUTO;
    const char *output = "-";
    optind = 0;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":o:h", options, NULL)) != -1;) {
        switch (option) {
        case 'f':
        case 't':
            if (!rf_trace_format(optarg, option == 'f' ? &from : &to))
                return rf_trace_complain("trace convert: a format is std or rft, not '%s'", optarg);
            break;
        case 'o':
            output = optarg;
            break;
        case 'h':
            puts("usage: redflag trace convert [--from std|rft] [--to std|rft] [-o OUT] IN\n\n"
                 "Rewrites the trace IN. OUT is standard output unless it is given. The format of IN is what its first "
                 "bytes\n"
                 "say, that of OUT what its name ends in (.rft, else std), unless it is given.");
            return RF_EXIT_OK;
        default:
            return rf_trace_bad_option("convert", argv, option == ':');
        }
    }
    struct rf_reader *reader = rf_trace_open("convert", argc, argv, from);
    if (!reader)
        return RF_EXIT_USAGE;
    int result;
    if (rf_cli_same_file(argv[optind], output))
        result = rf_trace_complain("%s: is both input and output", argv[optind]);
    else
        result = copy(reader, output, to, UINT64_MAX);
    rf_reader_close(reader);
    return result;
}

int rf_trace_head(int argc, char **argv)
{
    static const struct option options[] = { { "lines", required_argument, 0, 'n' },
                                             { "help", no_argument, 0, 'h' },
                                             { 0, 0, 0, 0 } };
    uint64_t limit = 10;
    optind = 0;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":n:h", options, NULL)) != -1;) {
        switch (option) {
        case 'n':
            if (!rf_trace_number(optarg, &limit))
                return rf_trace_complain("trace head: not a number: '%s'", optarg);
            break;
        case 'h':
            puts("usage: redflag trace head [-n N] TRACE\n\nPrints the first N events, 10 unless N is given, as STD text.");
            return RF_EXIT_OK;
        default:
            return rf_trace_bad_option("head", argv, option == ':');
        }
    }
    struct rf_reader *reader = rf_trace_open("head", argc, argv, RF_FORMAT_AUTO);
    if (!reader)
        return RF_EXIT_USAGE;
    int result = copy(reader, "-", RF_FORMAT_STD, limit);
    rf_reader_close(reader);
    return result;
}
