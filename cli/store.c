/* redflag store: what the runs of a fleet know together. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/store_actions.h"

static const char usage[] =
    "usage: redflag store [OPTION...] ACTION [ARGUMENT...]\n\n"
    "What the runs of one machine or of a fleet know together: pairs of sites that may race, runs, races, builds.\n\n"
    "  status               how much there is of each, and what is being looked at now\n"
    "  races                the races, the most recent first; how often each was seen, and how sure the runs so far are of it\n"
    "  pairs                the pairs, in the order in which they are leased; those confirmed last\n"
    "  import FILE...       take in reports (`redflag run --format=jsonl`), pairs (lines 'SITE1 SITE2 [PRIORITY]'), or an export\n"
    "  merge [FILE...]      take in other stores (SQLite files), exports and spool files; without a FILE, this user's spool\n"
    "  export               everything, as JSON Lines\n"
    "  lease RUN [SECONDS]  the next pair for the run of this name, for so long (600); prints its sites, or nothing\n\n"
    "  -s, --store WHERE    a file (SQLite), or postgresql://...; default: $REDFLAG_STORE, then redflag/store.db in the user's data\n"
    "  -f, --format FORM    of status, races, pairs: text or json\n"
    "  -o, --output FILE    write it there\n"
    "      --occurs P       of races: the share of runs in which a race occurs, where it is known (0 to 1)\n"
    "      --patience SEC   how long a store that is out of reach is tried for (5)\n"
    "  -h, --help           this text\n\n"
    "Exit status: 0 done; 2 bad usage, or a store or file that cannot be used.";

enum { OCCURS = 256, PATIENCE };

static const struct option long_options[] = {
    { "store", required_argument, NULL, 's' },
    { "format", required_argument, NULL, 'f' },
    { "output", required_argument, NULL, 'o' },
    { "occurs", required_argument, NULL, OCCURS },
    { "patience", required_argument, NULL, PATIENCE },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

int rf_store_wrong(const char *what, const char *value)
{
    fprintf(stderr, RF_STORE_WHO ": %s '%s'; try '" RF_STORE_WHO " --help'\n", what, value);
    return RF_EXIT_USAGE;
}

int rf_store_failed(const struct rf_store *store)
{
    fprintf(stderr, RF_STORE_WHO ": %s\n", rf_store_error(store));
    return RF_EXIT_USAGE;
}

static int lease(struct rf_store *store, const struct rf_store_options *options)
{
    struct rf_leased pair;
    double seconds = 600;
    if (options->count < 1 || options->count > 2)
        return rf_store_wrong("not RUN [SECONDS] after", "lease");
    if (options->count == 2 && !rf_cli_number(options->arguments[1], 0, 1e9, &seconds))
        return rf_store_wrong("not a number of seconds:", options->arguments[1]);
    enum rf_store_answer answer = rf_store_lease(store, options->arguments[0], NULL, seconds, &pair);
    if (answer == RF_STORE_DONE)
        fprintf(options->out, "%s %s\n", pair.first, pair.second);
    return answer == RF_STORE_DONE || answer == RF_STORE_NOTHING ? RF_EXIT_OK : rf_store_failed(store);
}

static int export(struct rf_store *store, const struct rf_store_options *options)
{
    return rf_store_export(store, options->out) == RF_STORE_DONE ? RF_EXIT_OK : rf_store_failed(store);
}

/* ---- */

static const struct {
    const char *name;
    int (*act)(struct rf_store *store, const struct rf_store_options *options);
    bool files;
} actions[] = {
    { "status", rf_store_status, false }, { "races", rf_store_races, false }, { "pairs", rf_store_pairs, false },
    { "import", rf_store_import, true },  { "merge", rf_store_merge, true },  { "export", export, false },
    { "lease", lease, true },
};

static int act(struct rf_store_options *options, unsigned action)
{
    char error[512];
    enum rf_store_answer answer;
    char *where = rf_store_place(options->where);
    struct rf_store *store = rf_store_open(where, options->patience, &answer, error);
    free(where);
    if (!store) {
        fprintf(stderr, RF_STORE_WHO ": %s\n", error);
        return RF_EXIT_USAGE;
    }
    options->out = options->output ? fopen(options->output, "we") : stdout;
    int status = RF_EXIT_USAGE;
    if (!options->out)
        fprintf(stderr, RF_STORE_WHO ": %s: %s\n", options->output, strerror(errno));
    else
        status = actions[action].act(store, options);
    if (options->out && options->out != stdout && fclose(options->out) != 0 && !status) {
        fprintf(stderr, RF_STORE_WHO ": %s: %s\n", options->output, strerror(errno));
        status = RF_EXIT_USAGE;
    }
    rf_store_close(store);
    return status;
}

int rf_cli_store(int argc, char **argv)
{
    struct rf_store_options options = { .occurs = -1, .patience = 5 };
    int option;
    while ((option = getopt_long(argc, argv, "s:f:o:h", long_options, NULL)) != -1) {
        switch (option) {
        case 's':
            options.where = optarg;
            break;
        case 'o':
            options.output = optarg;
            break;
        case 'f':
            options.json = strcmp(optarg, "json") == 0;
            if (!options.json && strcmp(optarg, "text") != 0)
                return rf_store_wrong("unknown format", optarg);
            break;
        case OCCURS:
            if (!rf_cli_number(optarg, 0, 1, &options.occurs))
                return rf_store_wrong("not a share from 0 to 1:", optarg);
            break;
        case PATIENCE:
            if (!rf_cli_number(optarg, 0, 1e6, &options.patience))
                return rf_store_wrong("not a number of seconds:", optarg);
            break;
        case 'h':
            puts(usage);
            return RF_EXIT_OK;
        default:
            return RF_EXIT_USAGE;
        }
    }
    if (optind == argc) {
        fputs(RF_STORE_WHO ": no action; try '" RF_STORE_WHO " --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    options.arguments = argv + optind + 1;
    options.count = argc - optind - 1;
    for (unsigned i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(argv[optind], actions[i].name) == 0)
            return options.count && !actions[i].files ? rf_store_wrong("what is this:", options.arguments[0]) : act(&options, i);
    return rf_store_wrong("unknown action", argv[optind]);
}
