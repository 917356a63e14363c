/* redflag trace generate */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/trace.h"
#include "report/progress.h"
#include "trace/generate.h"

#define MAX_THREADS 100000u
#define MAX_VARIABLES (1u << 30)

static const char usage[] =
    "usage: redflag trace generate [--shape program|random] [OPTION...] [-o OUT]\n\n"
    "Makes a trace from a seed: the same options, the same trace. It goes to standard output as STD text; a name that\n"
    "ends in .rft makes it binary.\n\n"
    "  --shape SHAPE       program: like a program at work (default); random: small and nasty\n"
    "  --seed N            what the trace is made from (1)\n"
    "  --length N          events (1000000; random 100)\n"
    "  --threads N         threads (8; 4)\n"
    "  --locks N           locks (64; 2)\n"
    "  --variables N       variables of 8 bytes (1048576; 4)\n"
    "  --sites N           program locations (400; 8)\n"
    "  --numeric-sites     name them 1, 2, 3, ..., as RAPID wants them, not f0.c:10\n"
    "  --locality P        program: chance to go on near the last place (0.9)\n"
    "  --reuse P           program: chance that an access goes back to one of the last words (0.7)\n"
    "  --sharing P         program: chance that a stretch of accesses reads shared data (0.03)\n"
    "  --race-rate P       program: chance that shared data is used without its lock (0)\n"
    "  --write-share P     program: writes among the accesses that may write (0.25)\n"
    "  --sync-share P      program: acquires and releases among the events (0.01)\n"
    "  --weight OP=N,...   random: how often an operation comes up, 0 never; 'all' stands for every one\n"
    "  --bytes             random: accesses of 1 to 8 bytes at addresses, not names\n"
    "  --to std|rft        format of the output\n"
    "  -o, --output OUT    file to write";

enum {
    SHAPE = 256,
    SEED,
    LENGTH,
    THREADS,
    LOCKS,
    VARIABLES,
    SITES,
    LOCALITY,
    REUSE,
    SHARING,
    RACES,
    WRITES,
    SYNCS,
    WEIGHT,
    BYTES,
    NUMERIC_SITES
};

static const struct option options[] = { { "shape", required_argument, 0, SHAPE },
                                         { "seed", required_argument, 0, SEED },
                                         { "length", required_argument, 0, LENGTH },
                                         { "threads", required_argument, 0, THREADS },
                                         { "locks", required_argument, 0, LOCKS },
                                         { "variables", required_argument, 0, VARIABLES },
                                         { "sites", required_argument, 0, SITES },
                                         { "numeric-sites", no_argument, 0, NUMERIC_SITES },
                                         { "locality", required_argument, 0, LOCALITY },
                                         { "reuse", required_argument, 0, REUSE },
                                         { "sharing", required_argument, 0, SHARING },
                                         { "race-rate", required_argument, 0, RACES },
                                         { "write-share", required_argument, 0, WRITES },
                                         { "sync-share", required_argument, 0, SYNCS },
                                         { "weight", required_argument, 0, WEIGHT },
                                         { "bytes", no_argument, 0, BYTES },
                                         { "to", required_argument, 0, 't' },
                                         { "output", required_argument, 0, 'o' },
                                         { "help", no_argument, 0, 'h' },
                                         { 0, 0, 0, 0 } };

static bool parse_count(const char *text, uint32_t most, uint32_t *count)
{
    uint64_t number;
    if (!rf_trace_number(text, &number) || number > most)
        return false;
    *count = (uint32_t)number;
    return true;
}

/* OP=N,OP=N,... */
static bool parse_weights(const char *text, unsigned weights[RF_OP_COUNT])
{
    while (*text) {
        size_t name = strcspn(text, "="), item = strcspn(text, ",");
        char number[16];
        uint32_t weight;
        if (name >= item || item - name - 1 >= sizeof number)
            return false;
        memcpy(number, text + name + 1, item - name - 1);
        number[item - name - 1] = 0;
        if (!parse_count(number, 1000000, &weight))
            return false;
        bool all = name == 3 && memcmp(text, "all", 3) == 0, known = false;
        for (int op = 0; op < RF_OP_COUNT; op++) {
            const char *word = rf_op_text((enum rf_op)op);
            if (!*word || (!all && (strlen(word) != name || memcmp(word, text, name) != 0)))
                continue;
            weights[op] = weight;
            known = true;
        }
        if (!known)
            return false;
        text += item;
        text += *text == ',';
    }
    return true;
}

struct output {
    struct rf_writer *writer;
    struct rf_progress progress;
    uint64_t length;
};

static bool write_event(void *context, uint64_t number, const struct rf_event *event)
{
    struct output *output = context;
    rf_writer_event(output->writer, number, event);
    if ((number & 0xffff) == 0)
        rf_progress_update(&output->progress, number, output->length, number);
    return !rf_writer_failed(output->writer);
}

/* The shape decides the other options' defaults, so it is looked for first. */
static enum rf_shape find_shape(int argc, char **argv)
{
    enum rf_shape shape = RF_SHAPE_PROGRAM;
    optind = 0;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":o:h", options, NULL)) != -1;)
        if (option == SHAPE)
            shape = strcmp(optarg, "random") == 0 ? RF_SHAPE_RANDOM : RF_SHAPE_PROGRAM;
    return shape;
}

int rf_trace_generate(int argc, char **argv)
{
    struct rf_generate_options generate;
    rf_generate_defaults(&generate, find_shape(argc, argv));
    enum rf_trace_format to = RF_FORMAT_AUTO;
    const char *path = "-";
    optind = 0;
    for (int option, index = 0; (option = getopt_long(argc, argv, ":o:h", options, &index)) != -1;) {
        bool good = true;
        switch (option) {
        case SHAPE:
            good = strcmp(optarg, "program") == 0 || strcmp(optarg, "random") == 0;
            break;
        case SEED:
            good = rf_trace_number(optarg, &generate.seed);
            break;
        case LENGTH:
            good = rf_trace_number(optarg, &generate.length);
            break;
        case THREADS:
            good = parse_count(optarg, MAX_THREADS, &generate.threads) && generate.threads;
            break;
        case LOCKS:
            good = parse_count(optarg, MAX_VARIABLES, &generate.locks);
            break;
        case VARIABLES:
            good = parse_count(optarg, MAX_VARIABLES, &generate.variables);
            break;
        case SITES:
            good = parse_count(optarg, MAX_VARIABLES, &generate.sites);
            break;
        case LOCALITY:
            good = rf_cli_number(optarg, 0, 1, &generate.locality);
            break;
        case REUSE:
            good = rf_cli_number(optarg, 0, 1, &generate.reuse);
            break;
        case SHARING:
            good = rf_cli_number(optarg, 0, 1, &generate.sharing);
            break;
        case RACES:
            good = rf_cli_number(optarg, 0, 1, &generate.race_rate);
            break;
        case WRITES:
            good = rf_cli_number(optarg, 0, 1, &generate.write_share);
            break;
        case SYNCS:
            good = rf_cli_number(optarg, 0, 1, &generate.sync_share);
            break;
        case WEIGHT:
            good = parse_weights(optarg, generate.weights);
            break;
        case BYTES:
            generate.bytes = true;
            break;
        case NUMERIC_SITES:
            generate.numeric_sites = true;
            break;
        case 't':
            good = rf_trace_format(optarg, &to);
            break;
        case 'o':
            path = optarg;
            break;
        case 'h':
            puts(usage);
            return RF_EXIT_OK;
        default:
            return rf_trace_bad_option("generate", argv, option == ':');
        }
        if (!good)
            return rf_trace_complain("trace generate: --%s cannot be '%s'", options[index].name, optarg);
    }
    if (optind != argc)
        return rf_trace_complain("trace generate: unexpected '%s'; try 'redflag trace generate --help'", argv[optind]);

    char *error = NULL;
    struct output output = { .writer = rf_writer_open(path, to, &error), .length = generate.length };
    if (!output.writer) {
        rf_trace_complain("%s", error);
        free(error);
        return RF_EXIT_USAGE;
    }
    rf_generate_declare(&generate, output.writer);
    rf_progress_begin(&output.progress, "generating");
    rf_generate(&generate, write_event, &output);
    rf_progress_end(&output.progress);
    int result = RF_EXIT_OK;
    if (!rf_writer_close(output.writer, &error)) {
        result = rf_trace_complain("%s", error);
        free(error);
    }
    return result;
}
