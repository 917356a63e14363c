/* redflag store: what the runs of a fleet know together. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "fleet/chance.h"
#include "fleet/results.h"
#include "fleet/spool.h"
#include "fleet/store.h"
#include "trace/grow.h"

#define WHO "redflag store"

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

struct options {
    const char *where, *output;
    bool json;
    double occurs, patience;
    char **arguments;
    int count;
    FILE *out;
};

static int wrong(const char *what, const char *value)
{
    fprintf(stderr, WHO ": %s '%s'; try '" WHO " --help'\n", what, value);
    return RF_EXIT_USAGE;
}

static int failed(const struct rf_store *store)
{
    fprintf(stderr, WHO ": %s\n", rf_store_error(store));
    return RF_EXIT_USAGE;
}

static const char *column(const json_t *row, unsigned index)
{
    const char *text = json_string_value(json_array_get(row, index));
    return text ? text : "";
}

static double number(const json_t *row, unsigned index)
{
    return strtod(column(row, index), NULL);
}

static const char *date(const char *seconds, char text[32])
{
    time_t when = (time_t)strtoll(seconds, NULL, 10);
    struct tm parts;
    strftime(text, 32, "%Y-%m-%d %H:%M", gmtime_r(&when, &parts));
    return text;
}

/* ---- status ---- */

static const struct {
    const char *name, *question;
} counts[] = {
    { "builds", "SELECT count(*) FROM builds" },
    { "sites", "SELECT count(*) FROM sites" },
    { "pairs", "SELECT count(*) FROM pairs" },
    { "pairs_dynamic", "SELECT count(*) FROM pairs WHERE stage = 'dynamic'" },
    { "pairs_confirmed", "SELECT count(*) FROM pairs WHERE race IS NOT NULL" },
    { "pairs_leased", "SELECT count(*) FROM pairs WHERE leased_until > @now" },
    { "runs", "SELECT count(*) FROM runs" },
    { "hosts", "SELECT count(DISTINCT host) FROM runs" },
    { "races", "SELECT count(*) FROM races" },
};

static int status(struct rf_store *store, const struct options *options)
{
    json_t *answer = json_object();
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_t *rows;
        if (rf_store_ask(store, counts[i].question, 0, NULL, &rows) != RF_STORE_DONE)
            return failed(store);
        json_object_set_new(answer, counts[i].name, json_integer((json_int_t)number(json_array_get(rows, 0), 0)));
        json_decref(rows);
    }
#define COUNT(name) json_integer_value(json_object_get(answer, name))
    if (options->json) {
        json_dumpf(answer, options->out, JSON_INDENT(1));
        fputc('\n', options->out);
    } else {
        fprintf(options->out, "races   %lld\n", COUNT("races"));
        fprintf(options->out, "runs    %lld on %lld machines\n", COUNT("runs"), COUNT("hosts"));
        fprintf(options->out, "pairs   %lld: %lld seen to escape, %lld confirmed, %lld being looked at\n", COUNT("pairs"),
                COUNT("pairs_dynamic"), COUNT("pairs_confirmed"), COUNT("pairs_leased"));
        fprintf(options->out, "sites   %lld in %lld builds\n", COUNT("sites"), COUNT("builds"));
    }
    json_decref(answer);
    return RF_EXIT_OK;
}

/* ---- races ---- */

/* How the runs so far could have found a race, by mode: all of full runs, PACER's at their rate, those that chased its pair. */
struct evidence {
    uint64_t full, full_hits, sampled, sampled_hits, chased, chased_hits;
    double rate; /* the mean of the sampled ones */
};

static enum rf_store_answer gather(struct rf_store *store, const json_t *race, struct evidence *evidence)
{
    /* A chase may have spelled the pair otherwise than the report does: what it confirmed tells. */
    static const char runs[] =
        "SELECT mode, count(*), coalesce(avg(rate), 1),"
        " sum(CASE WHEN id IN (SELECT run FROM sightings WHERE fingerprint = $1) THEN 1 ELSE 0 END) FROM runs"
        " WHERE mode <> 'chase' OR EXISTS (SELECT 1 FROM pairs p WHERE p.race = $1 AND p.first = runs.first AND p.second = runs.second)"
        " GROUP BY mode";
    const char *values[] = { column(race, 0) };
    json_t *rows, *row;
    size_t i;
    memset(evidence, 0, sizeof *evidence);
    enum rf_store_answer answer = rf_store_ask(store, runs, 1, values, &rows);
    json_array_foreach(rows, i, row)
    {
        uint64_t all = (uint64_t)number(row, 1), hits = (uint64_t)number(row, 3);
        if (strcmp(column(row, 0), "chase") == 0) {
            evidence->chased += all;
            evidence->chased_hits += hits;
        } else if (strcmp(column(row, 0), "pacer") == 0) {
            evidence->sampled += all;
            evidence->sampled_hits += hits;
            evidence->rate = number(row, 2);
        } else if (strcmp(column(row, 0), "run") == 0) {
            evidence->full += all;
            evidence->full_hits += hits;
        }
    }
    json_decref(rows);
    return answer;
}

/* doc/fleet.md, "How sure". The share of runs in which it occurs is given, or what full runs have seen of it; if there were none, what
 * each mode has found of it is all that is known. */
static double sureness(const struct evidence *evidence, double given)
{
    double chased = rf_chance_share(evidence->chased_hits, evidence->chased).middle;
    double sampled = rf_chance_share(evidence->sampled_hits, evidence->sampled).middle;
    double occurs = given >= 0 ? given : rf_chance_share(evidence->full_hits, evidence->full).middle;
    if (given >= 0 || evidence->full) {
        chased = occurs > 0 ? fmin(occurs, chased) : 0;
        sampled = occurs * evidence->rate;
    }
    return 1 - (1 - rf_chance_found(occurs, 1, evidence->full)) * (1 - rf_chance_found(sampled, 1, evidence->sampled)) *
                   (1 - rf_chance_found(chased, 1, evidence->chased));
}

static int races(struct rf_store *store, const struct options *options)
{
    json_t *rows, *row, *all = json_array();
    size_t i;
    if (rf_store_ask(
            store,
            "SELECT r.fingerprint, r.kind, r.summary, r.first_seen, r.last_seen, r.first, r.second,"
            " (SELECT count(*) FROM sightings s WHERE s.fingerprint = r.fingerprint),"
            " (SELECT coalesce(sum(s.times), 0) FROM sightings s WHERE s.fingerprint = r.fingerprint),"
            " (SELECT count(DISTINCT u.host) FROM sightings s JOIN runs u ON u.id = s.run WHERE s.fingerprint = r.fingerprint),"
            " (SELECT count(DISTINCT u.build) FROM sightings s JOIN runs u ON u.id = s.run WHERE s.fingerprint = r.fingerprint)"
            " FROM races r ORDER BY r.last_seen DESC, r.fingerprint",
            0, NULL, &rows) != RF_STORE_DONE)
        return failed(store);
    json_array_foreach(rows, i, row)
    {
        struct evidence evidence;
        if (gather(store, row, &evidence) != RF_STORE_DONE)
            return failed(store);
        struct rf_interval chased = rf_chance_share(evidence.chased_hits, evidence.chased);
        double sure = sureness(&evidence, options->occurs);
        char from[32], to[32];
        if (options->json) {
            json_array_append_new(
                all,
                json_pack(
                    "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:[s, s], s:{s:I, s:I, s:I, s:I, s:f, s:I, s:I}, s:f}",
                    "fingerprint", column(row, 0), "kind", column(row, 1), "summary", column(row, 2), "first_seen",
                    (json_int_t)number(row, 3), "last_seen", (json_int_t)number(row, 4), "runs", (json_int_t)number(row, 7),
                    "times", (json_int_t)number(row, 8), "hosts", (json_int_t)number(row, 9), "builds",
                    (json_int_t)number(row, 10), "pair", column(row, 5), column(row, 6), "evidence", "full",
                    (json_int_t)evidence.full, "full_hits", (json_int_t)evidence.full_hits, "sampled",
                    (json_int_t)evidence.sampled, "sampled_hits", (json_int_t)evidence.sampled_hits, "rate", evidence.rate,
                    "chased", (json_int_t)evidence.chased, "chased_hits", (json_int_t)evidence.chased_hits,
                    "detection_probability", sure));
            continue;
        }
        fprintf(options->out, "%s  %s\n", column(row, 0), column(row, 2));
        fprintf(options->out, "    in %s runs, %s times, on %s machines; %s to %s\n", column(row, 7), column(row, 8),
                column(row, 9), date(column(row, 3), from), date(column(row, 4), to));
        if (evidence.full || evidence.sampled)
            fprintf(options->out, "    found by %llu of %llu full runs, %llu of %llu at a rate of %.3g\n",
                    (unsigned long long)evidence.full_hits, (unsigned long long)evidence.full,
                    (unsigned long long)evidence.sampled_hits, (unsigned long long)evidence.sampled, evidence.rate);
        if (evidence.chased)
            fprintf(options->out, "    found by %llu of %llu runs that chased it: %.0f%% (%.0f to %.0f)\n",
                    (unsigned long long)evidence.chased_hits, (unsigned long long)evidence.chased, 100 * chased.middle,
                    100 * chased.low, 100 * chased.high);
        fprintf(options->out, "    chance that these runs find it: %.1f%%\n", 100 * sure);
    }
    if (options->json) {
        json_dumpf(all, options->out, JSON_INDENT(1));
        fputc('\n', options->out);
    } else if (!json_array_size(rows)) {
        fputs("no races\n", options->out);
    }
    json_decref(all);
    json_decref(rows);
    return RF_EXIT_OK;
}

/* ---- pairs ---- */

static void put_site(FILE *out, const json_t *row, unsigned at)
{
    if (column(row, at + 1)[0])
        fprintf(out, "%s:%s", column(row, at + 1), column(row, at + 2));
    else
        fputs(column(row, at), out);
}

static int pairs(struct rf_store *store, const struct options *options)
{
    json_t *rows, *row, *all = json_array();
    size_t i;
    if (rf_store_ask(
            store,
            "SELECT p.first, a.file, a.line, p.second, b.file, b.line, p.origin, p.stage, p.priority, p.runs, p.race,"
            " CASE WHEN p.leased_until > @now THEN p.leased_by ELSE NULL END FROM pairs p"
            " LEFT JOIN sites a ON a.name = p.first LEFT JOIN sites b ON b.name = p.second"
            " ORDER BY CASE WHEN p.race IS NULL THEN 0 ELSE 1 END, p.priority DESC, p.runs, p.id",
            0, NULL, &rows) != RF_STORE_DONE)
        return failed(store);
    json_array_foreach(rows, i, row)
    {
        uint64_t runs = (uint64_t)number(row, 9);
        bool confirmed = column(row, 10)[0];
        if (options->json) {
            json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:O, s:O, s:f}", "first", column(row, 0),
                                                 "second", column(row, 3), "origin", column(row, 6), "stage", column(row, 7),
                                                 "priority", (json_int_t)number(row, 8), "runs", (json_int_t)runs, "race",
                                                 json_array_get(row, 10), "leased_by", json_array_get(row, 11),
                                                 "unseen_chance_below", confirmed ? 1 : rf_chance_unseen(runs)));
            continue;
        }
        put_site(options->out, row, 0);
        fputs("  ", options->out);
        put_site(options->out, row, 3);
        fprintf(options->out, "  %s, %s, priority %s, %s runs", column(row, 6), column(row, 7), column(row, 8),
                column(row, 9));
        if (confirmed)
            fprintf(options->out, ", race %s", column(row, 10));
        else if (runs)
            fprintf(options->out, ", nothing seen: below %.0f%% a run", 100 * rf_chance_unseen(runs));
        if (column(row, 11)[0])
            fprintf(options->out, ", with %s", column(row, 11));
        fputc('\n', options->out);
    }
    if (options->json) {
        json_dumpf(all, options->out, JSON_INDENT(1));
        fputc('\n', options->out);
    }
    json_decref(all);
    json_decref(rows);
    return RF_EXIT_OK;
}

/* ---- taking in ---- */

static char *whole_file(const char *path, size_t *length)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *text = NULL;
    size_t capacity = 0, used = 0;
    if (!file)
        return NULL;
    do {
        text = rf_reserve(text, &capacity, used + 65536 + 1, 1);
        size_t got = fread(text + used, 1, 65536, file);
        used += got;
        if (!got)
            break;
    } while (true);
    int cause = ferror(file) ? errno : 0;
    if (file != stdin)
        fclose(file);
    if (cause) {
        free(text);
        errno = cause;
        return NULL;
    }
    text[used] = 0;
    *length = used;
    return text;
}

/* Lines 'SITE1 SITE2 [PRIORITY]'; # begins a comment. */
static json_t *pairs_of_text(char *text, char error[160])
{
    json_t *all = json_array();
    unsigned line = 0;
    for (char *next, *at = text; at && *at; at = next) {
        char first[256], second[256], extra[2];
        long long priority = 0;
        next = strchr(at, '\n');
        if (next)
            *next++ = 0;
        line++;
        at[strcspn(at, "#")] = 0;
        if (!at[strspn(at, " \t\r")])
            continue;
        int words = sscanf(at, "%255s %255s %lld %1s", first, second, &priority, extra);
        if (words != 2 && words != 3) {
            snprintf(error, 160, "line %u: not 'SITE1 SITE2 [PRIORITY]'", line);
            json_decref(all);
            return NULL;
        }
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s, s:I}", "redflag", "pair", "first", first, "second",
                                             second, "origin", "given", "priority", (json_int_t)priority));
    }
    return all;
}

static int other_store(struct rf_store *store, const char *path)
{
    char error[512], *text = NULL;
    size_t size = 0;
    enum rf_store_answer answer;
    struct rf_store *other = rf_store_open(path, 0, &answer, error);
    if (!other) {
        fprintf(stderr, WHO ": %s\n", error);
        return RF_EXIT_USAGE;
    }
    FILE *memory = open_memstream(&text, &size);
    rf_check_memory(memory, 1);
    answer = rf_store_export(other, memory);
    fclose(memory);
    if (answer != RF_STORE_DONE)
        fprintf(stderr, WHO ": %s\n", rf_store_error(other));
    rf_store_close(other);
    json_t *all = json_array();
    for (char *next, *at = text; answer == RF_STORE_DONE && *at; at = next + 1) {
        next = strchr(at, '\n');
        json_array_append_new(all, json_loadb(at, (size_t)(next - at), 0, NULL));
    }
    free(text);
    int status = answer != RF_STORE_DONE                       ? RF_EXIT_USAGE
                 : rf_store_apply(store, all) == RF_STORE_DONE ? RF_EXIT_OK
                                                               : failed(store);
    json_decref(all);
    return status;
}

static int results_file(struct rf_store *store, const char *path, bool keep)
{
    struct rf_spooled count;
    char error[512];
    if (rf_spool_merge(store, path, keep, &count, error) != RF_STORE_DONE) {
        fprintf(stderr, WHO ": %s\n", error);
        return RF_EXIT_USAGE;
    }
    if (count.damaged)
        fprintf(stderr, WHO ": %s: %llu damaged lines were passed over\n", path, (unsigned long long)count.damaged);
    if (count.refused)
        fprintf(stderr, WHO ": %s: %llu results were refused and are in %s.refused\n", path,
                (unsigned long long)count.refused, path);
    return RF_EXIT_OK;
}

/* What a file holds shows at its beginning: a database, results, reports, or pairs. */
static int import_one(struct rf_store *store, const char *path)
{
    char error[160] = "";
    size_t length;
    char *text = whole_file(path, &length);
    if (!text) {
        fprintf(stderr, WHO ": %s: %s\n", path, strerror(errno));
        return RF_EXIT_USAGE;
    }
    if (length >= 16 && memcmp(text, "SQLite format 3", 16) == 0) {
        free(text);
        return other_store(store, path);
    }
    json_t *what = NULL;
    if (text[strspn(text, " \n")] == '{') {
        json_t *first = json_loadb(text, strcspn(text, "\n"), 0, NULL);
        bool results = json_object_get(first, "redflag") != NULL;
        json_decref(first);
        if (results) {
            free(text);
            return results_file(store, path, true);
        }
        what = rf_result_of_reports(text, length, error);
    } else {
        what = pairs_of_text(text, error);
    }
    free(text);
    if (!what) {
        fprintf(stderr, WHO ": %s: %s\n", path, error);
        return RF_EXIT_USAGE;
    }
    int status = rf_store_apply(store, what) == RF_STORE_DONE ? RF_EXIT_OK : failed(store);
    json_decref(what);
    return status;
}

static int take_in(struct rf_store *store, const struct options *options)
{
    for (int i = 0; i < options->count; i++) {
        int status = import_one(store, options->arguments[i]);
        if (status)
            return status;
    }
    return RF_EXIT_OK;
}

static int import(struct rf_store *store, const struct options *options)
{
    return options->count ? take_in(store, options) : wrong("no file for", "import");
}

static int merge(struct rf_store *store, const struct options *options)
{
    if (options->count)
        return take_in(store, options);
    char *spool = rf_spool_place();
    int status = results_file(store, spool, false);
    free(spool);
    return status;
}

static int lease(struct rf_store *store, const struct options *options)
{
    struct rf_leased pair;
    double seconds = 600;
    if (options->count < 1 || options->count > 2)
        return wrong("not RUN [SECONDS] after", "lease");
    if (options->count == 2 && !rf_cli_number(options->arguments[1], 0, 1e9, &seconds))
        return wrong("not a number of seconds:", options->arguments[1]);
    enum rf_store_answer answer = rf_store_lease(store, options->arguments[0], NULL, seconds, &pair);
    if (answer == RF_STORE_DONE)
        fprintf(options->out, "%s %s\n", pair.first, pair.second);
    return answer == RF_STORE_DONE || answer == RF_STORE_NOTHING ? RF_EXIT_OK : failed(store);
}

static int export(struct rf_store *store, const struct options *options)
{
    return rf_store_export(store, options->out) == RF_STORE_DONE ? RF_EXIT_OK : failed(store);
}

/* ---- */

static const struct {
    const char *name;
    int (*act)(struct rf_store *store, const struct options *options);
    bool files;
} actions[] = {
    { "status", status, false }, { "races", races, false },   { "pairs", pairs, false }, { "import", import, true },
    { "merge", merge, true },    { "export", export, false }, { "lease", lease, true },
};

static int act(struct options *options, unsigned action)
{
    char error[512];
    enum rf_store_answer answer;
    char *where = rf_store_place(options->where);
    struct rf_store *store = rf_store_open(where, options->patience, &answer, error);
    free(where);
    if (!store) {
        fprintf(stderr, WHO ": %s\n", error);
        return RF_EXIT_USAGE;
    }
    options->out = options->output ? fopen(options->output, "we") : stdout;
    int status = RF_EXIT_USAGE;
    if (!options->out)
        fprintf(stderr, WHO ": %s: %s\n", options->output, strerror(errno));
    else
        status = actions[action].act(store, options);
    if (options->out && options->out != stdout && fclose(options->out) != 0 && !status) {
        fprintf(stderr, WHO ": %s: %s\n", options->output, strerror(errno));
        status = RF_EXIT_USAGE;
    }
    rf_store_close(store);
    return status;
}

int rf_cli_store(int argc, char **argv)
{
    struct options options = { .occurs = -1, .patience = 5 };
    int option;
    while ((option = getopt_long(argc, argv, "+s:f:o:h", long_options, NULL)) != -1) {
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
                return wrong("unknown format", optarg);
            break;
        case OCCURS:
            if (!rf_cli_number(optarg, 0, 1, &options.occurs))
                return wrong("not a share from 0 to 1:", optarg);
            break;
        case PATIENCE:
            if (!rf_cli_number(optarg, 0, 1e6, &options.patience))
                return wrong("not a number of seconds:", optarg);
            break;
        case 'h':
            puts(usage);
            return RF_EXIT_OK;
        default:
            return RF_EXIT_USAGE;
        }
    }
    if (optind == argc) {
        fputs(WHO ": no action; try '" WHO " --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    options.arguments = argv + optind + 1;
    options.count = argc - optind - 1;
    for (unsigned i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(argv[optind], actions[i].name) == 0)
            return options.count && !actions[i].files ? wrong("what is this:", options.arguments[0]) : act(&options, i);
    return wrong("unknown action", argv[optind]);
}
