/* redflag simulate: what a recorded execution would cost on hardware with RADISH. */
#include "cli/simulate.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "report/progress.h"

enum { CORES = 256, BY, TOP, SWEEP, SWEEP_CORES, SWEEP_SIZES, PRINT_CONFIG, FROM };

static const struct option long_options[] = {
    { "config", required_argument, NULL, 'c' },
    { "set", required_argument, NULL, 's' },
    { "format", required_argument, NULL, 'f' },
    { "output", required_argument, NULL, 'o' },
    { "help", no_argument, NULL, 'h' },
    { "cores", required_argument, NULL, CORES },
    { "by", required_argument, NULL, BY },
    { "top", required_argument, NULL, TOP },
    { "sweep", no_argument, NULL, SWEEP },
    { "sweep-cores", required_argument, NULL, SWEEP_CORES },
    { "sweep-sizes", required_argument, NULL, SWEEP_SIZES },
    { "print-config", no_argument, NULL, PRINT_CONFIG },
    { "from", required_argument, NULL, FROM },
    { NULL, 0, NULL, 0 },
};

static const char usage[] =
    "usage: redflag simulate [OPTION...] TRACE\n\n"
    "What a recorded execution would cost on hardware with RADISH, and which of its checks would stay in hardware.\n"
    "A trace is STD text or .rft; \"-\" is standard input.\n\n"
    "  -c, --config FILE         settings of the machine, a line each: NAME = VALUE\n"
    "  -s, --set NAME=VALUE      one of them\n"
    "      --cores N             the same as --set cores=N\n"
    "      --print-config        print all settings, with what they mean, and stop\n"
    "  -f, --format text|json    form of the output (default: text; with --sweep: svg, text or json, default svg)\n"
    "  -o, --output FILE         write it there\n"
    "      --by site|variable    also what each site, or each variable, cost\n"
    "      --top N               how many of them (10)\n"
    "      --sweep               the slowdown over sizes of the last-level cache, for several numbers of cores: a plot\n"
    "      --sweep-cores N,...   these numbers of cores (2,4,8,16)\n"
    "      --sweep-sizes N,...   these sizes (1M,2M,4M,8M,16M)\n"
    "      --from std|rft        format of the trace (default: by its first bytes)\n"
    "  -h, --help                this text\n\n"
    "Exit status: 0 done, races or none; 2 bad usage or unreadable input; 3 the trace is damaged, and the numbers are those of\n"
    "its good part.";

struct options {
    struct rf_config config;
    struct rf_sweep sweep;
    const char *format, *output, *trace;
    enum rf_trace_format from;
    uint32_t top;
    bool sweeping, by_site, by_variable, print_config;
};

static int wrong(const char *what, const char *value)
{
    fprintf(stderr, "redflag simulate: %s '%s'; try 'redflag simulate --help'\n", what, value);
    return RF_EXIT_USAGE;
}

static int setting(struct options *options, const char *text, bool file)
{
    char message[600];
    if (file ? rf_config_read(&options->config, text, message, sizeof message)
             : rf_config_set(&options->config, text, message, sizeof message))
        return -1;
    fprintf(stderr, "redflag simulate: %s\n", message);
    return RF_EXIT_USAGE;
}

/* -1: go on; otherwise the exit status. */
static int parse_one(struct options *options, int option, const char *value)
{
    char text[64], *end;
    switch (option) {
    case 'c':
    case 's':
        return setting(options, value, option == 'c');
    case CORES:
        snprintf(text, sizeof text, "cores=%s", value);
        return setting(options, text, false);
    case 'f':
        options->format = value;
        return -1;
    case 'o':
        options->output = value;
        return -1;
    case BY:
        options->by_site |= !strcmp(value, "site");
        options->by_variable |= !strcmp(value, "variable");
        return !strcmp(value, "site") || !strcmp(value, "variable") ? -1 : wrong("--by takes site or variable, not", value);
    case TOP:
        errno = 0;
        options->top = (uint32_t)strtoul(value, &end, 10);
        return *value >= '0' && *value <= '9' && !*end && !errno ? -1 : wrong("--top takes a number, not", value);
    case SWEEP:
        options->sweeping = true;
        return -1;
    case SWEEP_CORES:
        options->sweeping = true;
        return rf_sweep_list(value, options->sweep.cores, &options->sweep.core_count)
                   ? -1
                   : wrong("--sweep-cores takes up to 16 numbers, N,..., not", value);
    case SWEEP_SIZES:
        options->sweeping = true;
        return rf_sweep_list(value, options->sweep.sizes, &options->sweep.size_count)
                   ? -1
                   : wrong("--sweep-sizes takes up to 16 sizes, N,..., not", value);
    case PRINT_CONFIG:
        options->print_config = true;
        return -1;
    case FROM:
        options->from = !strcmp(value, "std") ? RF_FORMAT_STD : RF_FORMAT_RFT;
        return !strcmp(value, "std") || !strcmp(value, "rft") ? -1 : wrong("--from takes std or rft, not", value);
    default:
        return RF_EXIT_USAGE;
    }
}

static int parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){ .from = RF_FORMAT_AUTO, .top = 10 };
    rf_config_defaults(&options->config);
    rf_sweep_defaults(&options->sweep);
    opterr = 0;
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, ":c:s:f:o:h", long_options, NULL)) != -1;) {
        if (option == 'h') {
            puts(usage);
            return RF_EXIT_OK;
        }
        if (option == ':' || option == '?')
            return wrong(option == ':' ? "a value is missing for" : "unknown option", argv[optind - 1]);
        int status = parse_one(options, option, optarg);
        if (status >= 0)
            return status;
    }
    char message[600];
    if (!rf_config_check(&options->config, message, sizeof message)) {
        fprintf(stderr, "redflag simulate: %s\n", message);
        return RF_EXIT_USAGE;
    }
    if (options->print_config)
        return -1;
    if (!options->format)
        options->format = options->sweeping ? "svg" : "text";
    bool known = !strcmp(options->format, "text") || !strcmp(options->format, "json");
    if (!known && !(options->sweeping && !strcmp(options->format, "svg")))
        return wrong("unknown format", options->format);
    if (optind == argc) {
        fputs("redflag simulate: no trace is named; try 'redflag simulate --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (optind + 1 < argc)
        return wrong("one trace at a time; what is", argv[optind + 1]);
    options->trace = argv[optind];
    return -1;
}

static FILE *open_output(const struct options *options)
{
    if (!options->output || !strcmp(options->output, "-"))
        return stdout;
    if (options->trace && rf_cli_same_file(options->trace, options->output)) {
        fprintf(stderr, "redflag: %s: is both input and output\n", options->trace);
        return NULL;
    }
    FILE *out = fopen(options->output, "w");
    if (!out)
        fprintf(stderr, "redflag: %s: %s\n", options->output, strerror(errno));
    return out;
}

static bool close_output(const struct options *options, FILE *out)
{
    bool failed = ferror(out) != 0;
    if ((out == stdout ? fflush(out) : fclose(out)) == 0 && !failed)
        return true;
    fprintf(stderr, "redflag: %s: cannot write the report: %s\n", out == stdout ? "standard output" : options->output,
            strerror(errno));
    return false;
}

static void show_progress(void *context, const struct rf_reader *reader)
{
    rf_progress_update(context, rf_reader_position(reader), rf_reader_size(reader), rf_reader_events(reader));
}

static const char *site_name(const void *names, uint32_t site)
{
    return rf_reader_site(names, site);
}

static void print(FILE *out, const struct options *options, const struct rf_simulation *simulation,
                  const struct rf_simulate_view *view)
{
    bool json = !strcmp(options->format, "json");
    if (!options->sweeping && json)
        rf_simulate_json(out, simulation, view);
    else if (!options->sweeping)
        rf_simulate_text(out, simulation, view);
    else if (json)
        rf_sweep_json(out, &options->sweep, view);
    else if (!strcmp(options->format, "text"))
        rf_sweep_text(out, &options->sweep, view);
    else
        rf_sweep_plot(&options->sweep, options->trace, out);
}

/* The trace through one machine, or through all of a sweep. */
static int run(struct options *options, struct rf_simulation *simulations, size_t count)
{
    char *error = NULL;
    struct rf_reader *reader = rf_reader_open(options->trace, options->from, &error);
    if (!reader) {
        fprintf(stderr, "redflag: %s\n", error);
        free(error);
        return RF_EXIT_USAGE;
    }
    for (size_t i = 0; i < count; i++) {
        simulations[i].site_name = site_name;
        simulations[i].names = reader;
        simulations[i].tally_sites = options->by_site;
        simulations[i].tally_variables = options->by_variable;
    }
    struct rf_progress progress;
    rf_progress_begin(&progress, options->trace);
    enum rf_trace_status end = rf_simulate(reader, simulations, count, show_progress, &progress);
    rf_progress_end(&progress);
    int status = end == RF_TRACE_END ? RF_EXIT_OK : end == RF_TRACE_TRUNCATED ? RF_EXIT_TRUNCATED : RF_EXIT_USAGE;
    if (end != RF_TRACE_END)
        fprintf(stderr, "redflag: %s\n", rf_reader_error(reader));
    FILE *out = status == RF_EXIT_USAGE ? NULL : open_output(options);
    if (out) {
        struct rf_simulate_view view = { .trace = options->trace, .reader = reader, .top = options->top };
        print(out, options, &simulations[0], &view);
        if (!close_output(options, out))
            status = RF_EXIT_USAGE;
    } else {
        status = RF_EXIT_USAGE;
    }
    rf_reader_close(reader);
    return status;
}

static int print_config(const struct options *options)
{
    FILE *out = open_output(options);
    if (!out)
        return RF_EXIT_USAGE;
    rf_config_print(&options->config, out);
    return close_output(options, out) ? RF_EXIT_OK : RF_EXIT_USAGE;
}

int rf_cli_simulate(int argc, char **argv)
{
    static struct options options;
    char message[600];
    int status = parse(&options, argc, argv);
    if (status < 0 && options.print_config) {
        status = print_config(&options);
    } else if (status < 0 && options.sweeping) {
        if (rf_sweep_begin(&options.sweep, &options.config, message, sizeof message)) {
            status = run(&options, options.sweep.simulations, options.sweep.core_count * options.sweep.size_count);
            rf_sweep_end(&options.sweep);
        } else {
            fprintf(stderr, "redflag simulate: %s\n", message);
            status = RF_EXIT_USAGE;
        }
    } else if (status < 0) {
        static struct rf_simulation simulation;
        rf_simulation_init(&simulation, &options.config, 0);
        status = run(&options, &simulation, 1);
        rf_simulation_free(&simulation);
    }
    rf_config_free(&options.config);
    return status;
}
