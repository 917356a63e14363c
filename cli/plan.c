/* See cli/plan.h. */
#include "cli/plan.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "trace/grow.h"

enum { ALL_RACES = 256, STATS, RATE, SEED, PERIOD, BURST, PAIR, FULL, VOLATILE, TRANSACTIONS, EVENT_LIST, FROM, EAGER, LARD, LANGUAGE };

static const struct option long_options[] = {
    { "detector", required_argument, NULL, 'd' },
    { "format", required_argument, NULL, 'f' },
    { "output", required_argument, NULL, 'o' },
    { "jobs", required_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { "all-races", no_argument, NULL, ALL_RACES },
    { "stats", no_argument, NULL, STATS },
    { "rate", required_argument, NULL, RATE },
    { "seed", required_argument, NULL, SEED },
    { "period", required_argument, NULL, PERIOD },
    { "burst", required_argument, NULL, BURST },
    { "pair", required_argument, NULL, PAIR },
    { "full", no_argument, NULL, FULL },
    { "volatile", required_argument, NULL, VOLATILE },
    { "transactions", required_argument, NULL, TRANSACTIONS },
    { "event-list", required_argument, NULL, EVENT_LIST },
    { "eager", no_argument, NULL, EAGER },
    { "from", required_argument, NULL, FROM },
    { "lard", no_argument, NULL, LARD },
    { "language", required_argument, NULL, LANGUAGE },
    { NULL, 0, NULL, 0 },
};

static const char option_help[] =
    "  -d, --detector NAME,...   which detectors; `all` for every one (default: %s)\n"
    "  -f, --format %-12s form of the output (default: %s)\n"
    "  -o, --output FILE         write it there\n"
    "  -j, --jobs N              share the variables out over N threads; the results are the same\n"
    "      --all-races           every race, not only the first of each variable\n"
    "      --stats               the operations that each detector counted, as the papers print them (text)\n"
    "      --from std|rft        format of the trace (default: by its first bytes)\n"
    "      --transactions WHICH  commits that are ordered: shared (a variable in common), all, writes\n"
    "      --volatile hb|lock    acculock, multilock, hybrid, racetrack: do volatiles order threads? (default: hb)\n"
    "      --rate R              pacer: sample this share of the execution, 0 to 1 (default: between the trace's sbegin and\n"
    "                            send; all of a trace that has none)\n"
    "      --period N            pacer: events that a sampling decision lasts\n"
    "      --burst N             literace: accesses that a burst lasts\n"
    "      --seed N              pacer, literace: for the random choices\n"
    "      --pair SITE1,SITE2    litehb: the ordered pair of sites to check\n"
    "      --full                litehb: FullHB, which tracks from beginning to end\n"
    "      --event-list N        goldilocks: longest list of synchronisation events\n"
    "      --eager               goldilocks: the rules of its Figure 5 as they stand (slow)\n"
    "  -h, --help                this text\n";

static void help(const char *command, const char *formats)
{
    bool compare = !strcmp(command, "compare");
    printf("usage: redflag %s [OPTION...] TRACE%s\n\n%s\n\nA trace is STD text or .rft; \"-\" is standard input.\n\n",
           command, compare ? "" : "...",
           compare ? "Runs all detectors over one execution and shows who reports what."
                   : "Finds the races of recorded executions.");
    printf(option_help, compare ? "all" : "fasttrack", formats, formats[0] == 't' ? "text" : "json");
    if (compare)
        puts("\nWhat a runtime of a language recorded (doc/embedding.md):\n"
             "      --lard                the program's races beside those of a detector that is told less: false and missed ones,\n"
             "                            for each of the five things that a runtime tells; under one detector (default: fasttrack)\n"
             "      --language TRACE      with --lard: the same execution as the language saw it, to measure LARD itself");
    puts("\nDetectors:");
    for (size_t i = 0; i < rf_detector_count; i++)
        printf("  %-11s %s\n", rf_detectors[i]->name, rf_detectors[i]->summary);
    puts(
        "\nExit status: 0 no race, 66 races, 2 bad usage or unreadable input, 3 the trace is damaged and only the good part\n"
        "was analysed.");
}

static int wrong(const char *command, const char *what, const char *value)
{
    fprintf(stderr, "redflag %s: %s '%s'; try 'redflag %s --help'\n", command, what, value, command);
    return RF_EXIT_USAGE;
}

/* A word of a list "a|b|c": its place, -1 if it is not there. */
static int choice(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (int place = 0;; place++) {
        size_t this = strcspn(list, "|");
        if (this == length && !memcmp(list, word, length))
            return place;
        if (!list[this])
            return -1;
        list += this + 1;
    }
}

static bool whole(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || parsed < least || parsed > most)
        return false;
    *value = parsed;
    return true;
}

static int add_detectors(struct rf_plan_options *options, const char *command, const char *names)
{
    for (const char *name = names; *name;) {
        size_t length = strcspn(name, ",");
        const struct rf_detector *found = rf_detector_find(name, length);
        bool all = length == 3 && !memcmp(name, "all", 3);
        if (!found && !all) {
            fprintf(stderr, "redflag %s: unknown detector '%.*s'; try 'redflag %s --help'\n", command, (int)length, name,
                    command);
            return RF_EXIT_USAGE;
        }
        for (size_t i = 0; i < rf_detector_count; i++) {
            bool there = false;
            for (size_t j = 0; j < options->plan.detector_count; j++)
                there |= options->detectors[j] == rf_detectors[i];
            if ((all || found == rf_detectors[i]) && !there)
                options->detectors[options->plan.detector_count++] = rf_detectors[i];
        }
        name += length + (name[length] == ',');
    }
    return options->plan.detector_count ? -1 : wrong(command, "no detector is named in", names);
}

static int parse_one(struct rf_plan_options *options, const char *command, const char *formats, int option,
                     const char *value)
{
    struct rf_options *detector = &options->plan.options;
    uint64_t number = 0;
    int place;
    char *end;
    switch (option) {
    case 'd':
        return add_detectors(options, command, value);
    case 'f':
        options->format = value;
        return choice(formats, value) >= 0 ? -1 : wrong(command, "unknown format", value);
    case 'o':
        options->output = value;
        return -1;
    case 'j':
        if (!whole(value, 1, 1024, &number))
            return wrong(command, "--jobs takes a number from 1 to 1024, not", value);
        options->plan.jobs = (unsigned)number;
        return -1;
    case ALL_RACES:
        options->plan.all_races = true;
        return -1;
    case STATS:
        options->statistics = true;
        return -1;
    case FULL:
        detector->full = true;
        return -1;
    case EAGER:
        detector->eager = true;
        return -1;
    case RATE:
        detector->rate = strtod(value, &end);
        return end != value && !*end && detector->rate >= 0 && detector->rate <= 1
                   ? -1
                   : wrong(command, "--rate takes a number from 0 to 1, not", value);
    case SEED:
        return whole(value, 0, UINT64_MAX, &detector->seed) ? -1 : wrong(command, "--seed takes a whole number, not", value);
    case PERIOD:
    case BURST:
    case EVENT_LIST:
        if (!whole(value, 1, 1u << 30, &number))
            return wrong(command, "a number from 1 to 2^30 is needed, not", value);
        *(option == PERIOD  ? &detector->period
          : option == BURST ? &detector->burst
                            : &detector->event_list) = (uint32_t)number;
        return -1;
    case PAIR:
        free(options->pair);
        options->pair = strdup(value);
        end = options->pair ? strchr(options->pair, ',') : NULL;
        if (!end || end == options->pair || !end[1])
            return wrong(command, "--pair takes two sites, SITE1,SITE2, not", value);
        *end = 0;
        options->plan.pair[0] = options->pair;
        options->plan.pair[1] = end + 1;
        return -1;
    case VOLATILE:
        place = choice("hb|lock", value);
        detector->volatile_as_lock = place == 1;
        return place >= 0 ? -1 : wrong(command, "--volatile takes hb or lock, not", value);
    case TRANSACTIONS:
        place = choice("shared|all|writes", value);
        detector->transactions = (enum rf_transactions)place;
        return place >= 0 ? -1 : wrong(command, "--transactions takes shared, all or writes, not", value);
    case LARD:
    case LANGUAGE:
        if (strcmp(command, "compare") != 0)
            return wrong(command, "unknown option", option == LARD ? "--lard" : "--language");
        options->lard |= option == LARD;
        options->language = option == LANGUAGE ? value : options->language;
        return -1;
    case FROM:
        place = choice("std|rft", value);
        options->plan.format = place ? RF_FORMAT_RFT : RF_FORMAT_STD;
        return place >= 0 ? -1 : wrong(command, "--from takes std or rft, not", value);
    default:
        return RF_EXIT_USAGE;
    }
}

int rf_plan_parse(struct rf_plan_options *options, const char *command, const char *formats, int argc, char **argv)
{
    static char first_format[16];
    snprintf(first_format, sizeof first_format, "%.*s", (int)strcspn(formats, "|"), formats);
    *options = (struct rf_plan_options){ .format = first_format, .plan = { .jobs = 1, .options = { .rate = -1 } } };
    options->detectors = rf_zeroed(rf_detector_count, sizeof *options->detectors);
    opterr = 0;
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, ":d:f:o:j:h", long_options, NULL)) != -1;) {
        if (option == 'h') {
            help(command, formats);
            return RF_EXIT_OK;
        }
        if (option == ':' || option == '?')
            return wrong(command, option == ':' ? "a value is missing for" : "unknown option", argv[optind - 1]);
        int status = parse_one(options, command, formats, option, optarg);
        if (status >= 0)
            return status;
    }
    if (!options->plan.detector_count)
        add_detectors(options, command, !strcmp(command, "compare") && !options->lard ? "all" : "fasttrack");
    if (options->language && !options->lard) {
        fprintf(stderr, "redflag %s: --language goes with --lard\n", command);
        return RF_EXIT_USAGE;
    }
    if (options->lard && options->plan.detector_count > 1) {
        fprintf(stderr, "redflag %s: --lard compares views under one detector, not %zu\n", command, options->plan.detector_count);
        return RF_EXIT_USAGE;
    }
    bool only_litehb =
        options->plan.detector_count == 1 && options->detectors[0] == rf_detector_find("litehb", strlen("litehb"));
    if (only_litehb && !options->plan.pair[0]) {
        fprintf(stderr, "redflag %s: litehb checks one pair of sites: --pair SITE1,SITE2\n", command);
        return RF_EXIT_USAGE;
    }
    options->plan.detectors = options->detectors;
    options->traces = (const char **)argv + optind;
    options->trace_count = (size_t)(argc - optind);
    if (!options->trace_count) {
        fprintf(stderr, "redflag %s: no trace is named; try 'redflag %s --help'\n", command, command);
        return RF_EXIT_USAGE;
    }
    return -1;
}

void rf_plan_end(struct rf_plan_options *options)
{
    free(options->detectors);
    free(options->pair);
}

FILE *rf_plan_open_output(const struct rf_plan_options *options)
{
    if (!options->output || !strcmp(options->output, "-"))
        return stdout;
    for (size_t i = 0; i < options->trace_count; i++) {
        if (rf_cli_same_file(options->traces[i], options->output)) {
            fprintf(stderr, "redflag: %s: is both input and output\n", options->traces[i]);
            return NULL;
        }
    }
    FILE *out = fopen(options->output, "w");
    if (!out)
        fprintf(stderr, "redflag: %s: %s\n", options->output, strerror(errno));
    return out;
}

bool rf_plan_close_output(const struct rf_plan_options *options, FILE *out)
{
    bool failed = ferror(out) != 0;
    if ((out == stdout ? fflush(out) : fclose(out)) != 0 || failed) {
        fprintf(stderr, "redflag: %s: cannot write the report: %s\n", out == stdout ? "standard output" : options->output,
                strerror(errno));
        return false;
    }
    return true;
}

static void show_progress(void *context, const struct rf_reader *reader, uint64_t events)
{
    rf_progress_update(context, rf_reader_position(reader), rf_reader_size(reader), events);
}

enum rf_trace_status rf_plan_run(const struct rf_plan_options *options, const char *path, struct rf_report *report,
                                 char **error)
{
    struct rf_progress progress;
    struct rf_plan plan = options->plan;
    plan.progress = show_progress;
    plan.progress_context = &progress;
    rf_progress_begin(&progress, path);
    enum rf_trace_status status = rf_analyse(path, &plan, report, error);
    rf_progress_end(&progress);
    if (*error)
        fprintf(stderr, "redflag: %s\n", *error);
    return status;
}
