/* redflag store status, races, pairs: what is known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/store_actions.h"
#include "fleet/chance.h"

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
    { "runs_unfinished", "SELECT count(*) FROM runs WHERE heard IS NOT NULL" },
    { "hosts", "SELECT count(DISTINCT host) FROM runs" },
    { "races", "SELECT count(*) FROM races" },
};

int rf_store_status(struct rf_store *store, const struct rf_store_options *options)
{
    json_t *answer = json_object();
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_t *rows;
        if (rf_store_ask(store, counts[i].question, 0, NULL, &rows) != RF_STORE_DONE)
            return rf_store_failed(store);
        json_object_set_new(answer, counts[i].name, json_integer((json_int_t)number(json_array_get(rows, 0), 0)));
        json_decref(rows);
    }
#define COUNT(name) json_integer_value(json_object_get(answer, name))
    if (options->json) {
        json_dumpf(answer, options->out, JSON_INDENT(1));
        fputc('\n', options->out);
    } else {
        fprintf(options->out, "races   %lld\n", COUNT("races"));
        fprintf(options->out, "runs    %lld on %lld machines, %lld not over, or killed\n", COUNT("runs"), COUNT("hosts"),
                COUNT("runs_unfinished"));
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
        " WHERE heard IS NULL AND (mode <> 'chase' OR EXISTS (SELECT 1 FROM pairs p WHERE p.race = $1 AND p.first = runs.first AND p.second = runs.second))"
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

int rf_store_races(struct rf_store *store, const struct rf_store_options *options)
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
        return rf_store_failed(store);
    json_array_foreach(rows, i, row)
    {
        struct evidence evidence;
        if (gather(store, row, &evidence) != RF_STORE_DONE)
            return rf_store_failed(store);
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

int rf_store_pairs(struct rf_store *store, const struct rf_store_options *options)
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
        return rf_store_failed(store);
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
