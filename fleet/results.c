/* See fleet/results.h. */
#include "fleet/results.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* A member as text, in `buffer` if it is a number; NULL if it is not there. */
static const char *member(const json_t *object, const char *name, char buffer[64])
{
    const json_t *value = json_object_get(object, name);
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        snprintf(buffer, 64, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(buffer, 64, "%.17g", json_real_value(value));
    else
        return NULL;
    return buffer;
}

static const char *text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static enum rf_sql_answer lacks(struct rf_sql *sql, const char *kind, const char *what)
{
    snprintf(sql->error, sizeof sql->error, "a result of the kind '%s' has no good '%s'", kind, what);
    return RF_SQL_WRONG;
}

static const char *site_of_pair(const json_t *object, unsigned which)
{
    return json_string_value(json_array_get(json_object_get(object, "pair"), which));
}

/* ---- builds, sites, pairs ---- */

static enum rf_sql_answer put_build(struct rf_sql *sql, const char *id, const char *path)
{
    return RF_SQL(sql, "INSERT INTO builds (id, path) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING", NULL, NULL, id,
                  path ? path : "");
}

static enum rf_sql_answer put_site(struct rf_sql *sql, const json_t *site)
{
    char line[64], column[64];
    const char *name = text(site, "name");
    if (!name)
        return lacks(sql, "site", "name");
    return RF_SQL(sql,
                  "INSERT INTO sites (name, build, function, file, line, col) VALUES ($1, $2, $3, $4, $5, $6)"
                  " ON CONFLICT (name) DO UPDATE SET function = coalesce(excluded.function, sites.function),"
                  " file = coalesce(excluded.file, sites.file), line = coalesce(excluded.line, sites.line),"
                  " col = coalesce(excluded.col, sites.col)",
                  NULL, NULL, name, text(site, "build") ? text(site, "build") : "", text(site, "function"),
                  text(site, "file"), member(site, "line", line), member(site, "column", column));
}

/* A site's name begins with its build, up to the last '+'; one of the form FILE:LINE has none. */
static void build_of(const char *site, char build[128])
{
    const char *plus = strrchr(site, '+');
    snprintf(build, 128, "%.*s", plus ? (int)(plus - site) : 0, site);
}

static enum rf_sql_answer put_pair(struct rf_sql *sql, const json_t *pair)
{
    char buffer[64], build[128];
    const char *first = text(pair, "first"), *second = text(pair, "second"), *origin = text(pair, "origin");
    const char *stage = text(pair, "stage"), *priority = member(pair, "priority", buffer);
    if (!first || !*first)
        return lacks(sql, "pair", "first");
    if (!second || !*second)
        return lacks(sql, "pair", "second");
    if (stage && strcmp(stage, "static") != 0 && strcmp(stage, "dynamic") != 0)
        return lacks(sql, "pair", "stage");
    build_of(first, build);
    return RF_SQL(sql,
                  "INSERT INTO pairs (build, first, second, origin, stage, priority, runs, leased_until, race)"
                  " VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7) ON CONFLICT (first, second) DO UPDATE SET"
                  " race = coalesce(pairs.race, excluded.race),"
                  " stage = CASE WHEN excluded.stage = 'dynamic' THEN excluded.stage ELSE pairs.stage END,"
                  " priority = CASE WHEN excluded.priority > pairs.priority THEN excluded.priority ELSE pairs.priority END",
                  NULL, NULL, build, first, second, origin ? origin : "given", stage ? stage : "static",
                  priority ? priority : "0", text(pair, "race"));
}

/* ---- races ---- */

/* The site of an access as a report says it: where its innermost frame that is not inlined is. */
static const json_t *frame_of(const json_t *access, char name[256])
{
    const json_t *frames = json_object_get(access, "stack"), *shown = json_array_get(frames, 0);
    const char *build = text(shown, "build_id"), *offset = text(shown, "offset");
    if (!build || !offset)
        return NULL;
    snprintf(name, 256, "%.128s+%.64s", build, offset);
    return shown;
}

static enum rf_sql_answer put_frame(struct rf_sql *sql, const json_t *access, char name[256])
{
    const json_t *frame = frame_of(access, name);
    if (!frame) {
        name[0] = 0;
        return RF_SQL_OK;
    }
    json_t *site = json_pack("{s:s, s:O, s:O?, s:O?, s:O?, s:O?}", "name", name, "build", json_object_get(frame, "build_id"),
                             "function", json_object_get(frame, "function"), "file", json_object_get(frame, "file"), "line",
                             json_object_get(frame, "line"), "column", json_object_get(frame, "column"));
    enum rf_sql_answer answer = put_site(sql, site);
    json_decref(site);
    return answer == RF_SQL_OK ? put_build(sql, text(frame, "build_id"), text(frame, "module")) : answer;
}

static void summarise(const json_t *report, char out[512])
{
    const json_t *access = json_array_get(json_object_get(report, "accesses"), 0);
    const json_t *frame = json_array_get(json_object_get(access, "stack"), 0);
    const char *title = text(report, "title"), *file = text(frame, "file"), *function = text(frame, "function");
    int used = snprintf(out, 512, "%.64s", title ? title : "report");
    if (file)
        snprintf(out + used, 512 - (size_t)used, " %.200s:%" JSON_INTEGER_FORMAT, file,
                 json_integer_value(json_object_get(frame, "line")));
    if (function)
        snprintf(out + strlen(out), 512 - strlen(out), " in %.150s", function);
}

static enum rf_sql_answer put_race(struct rf_sql *sql, const char *fingerprint, const char *kind, const char *summary,
                                   const char *first, const char *second, const char *from, const char *to,
                                   const char *report)
{
    enum rf_sql_answer answer = RF_SQL(
        sql,
        "INSERT INTO races (fingerprint, kind, summary, first, second, first_seen, last_seen, report)"
        " VALUES ($1, $2, $3, $4, $5, coalesce($6, @now), coalesce($7, @now), $8) ON CONFLICT (fingerprint) DO UPDATE SET"
        " first_seen = CASE WHEN excluded.first_seen < races.first_seen THEN excluded.first_seen ELSE races.first_seen END,"
        " last_seen = CASE WHEN excluded.last_seen > races.last_seen THEN excluded.last_seen ELSE races.last_seen END",
        NULL, NULL, fingerprint, kind, summary, first, second, from, to, report);
    if (answer != RF_SQL_OK || !first || !second)
        return answer;
    /* Whoever found it, the pair is confirmed. */
    return RF_SQL(
        sql,
        "UPDATE pairs SET race = $1 WHERE race IS NULL AND ((first = $2 AND second = $3) OR (first = $3 AND second = $2))",
        NULL, NULL, fingerprint, first, second);
}

static enum rf_sql_answer put_report(struct rf_sql *sql, const json_t *report, const char *when)
{
    char first[256], second[256], summary[512];
    const json_t *accesses = json_object_get(report, "accesses");
    const char *fingerprint = text(report, "fingerprint"), *kind = text(report, "kind");
    if (!fingerprint || !kind)
        return lacks(sql, "report", "fingerprint");
    enum rf_sql_answer answer = put_frame(sql, json_array_get(accesses, 0), first);
    if (answer == RF_SQL_OK)
        answer = put_frame(sql, json_array_get(accesses, 1), second);
    if (answer != RF_SQL_OK)
        return answer;
    summarise(report, summary);
    char *whole = json_dumps(report, JSON_COMPACT);
    answer =
        put_race(sql, fingerprint, kind, summary, first[0] ? first : NULL, second[0] ? second : NULL, when, when, whole);
    free(whole);
    return answer;
}

static enum rf_sql_answer put_known_race(struct rf_sql *sql, const json_t *race)
{
    char from[64], to[64];
    const char *fingerprint = text(race, "fingerprint"), *kind = text(race, "kind"), *summary = text(race, "summary");
    if (!fingerprint || !kind || !summary)
        return lacks(sql, "race", "fingerprint, kind or summary");
    char *report = json_dumps(json_object_get(race, "report"), JSON_COMPACT);
    enum rf_sql_answer answer = put_race(sql, fingerprint, kind, summary, site_of_pair(race, 0), site_of_pair(race, 1),
                                         member(race, "first_seen", from), member(race, "last_seen", to), report);
    free(report);
    return answer;
}

/* ---- runs ---- */

static void is_new(void *context, const char *const *columns)
{
    (void)columns;
    *(bool *)context = true;
}

/* How often each race was reported in the run. */
static json_t *counted(const json_t *run)
{
    json_t *counts = json_object(), *one;
    size_t i;
    json_array_foreach(json_object_get(run, "reports"), i, one)
    {
        const char *fingerprint = text(one, "fingerprint");
        if (fingerprint)
            json_object_set_new(counts, fingerprint,
                                json_integer(json_integer_value(json_object_get(counts, fingerprint)) + 1));
    }
    json_array_foreach(json_object_get(run, "sightings"), i, one) if (text(one, "fingerprint"))
        json_object_set(counts, text(one, "fingerprint"), json_object_get(one, "times"));
    return counts;
}

static enum rf_sql_answer put_sightings(struct rf_sql *sql, const json_t *run, const char *id)
{
    json_t *counts = counted(run), *times;
    const char *fingerprint;
    enum rf_sql_answer answer = RF_SQL_OK;
    json_object_foreach(counts, fingerprint, times)
    {
        char number[64];
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(times));
        if (answer == RF_SQL_OK)
            answer = RF_SQL(sql,
                            "INSERT INTO sightings (fingerprint, run, times) VALUES ($1, $2, $3)"
                            " ON CONFLICT (fingerprint, run) DO NOTHING",
                            NULL, NULL, fingerprint, id, number);
    }
    json_decref(counts);
    return answer;
}

/* A pair that a run chased and reported is confirmed by it, however its sites are spelled in the report. */
static enum rf_sql_answer confirm(struct rf_sql *sql, const json_t *run, const char *first, const char *second)
{
    const json_t *report;
    size_t i;
    json_array_foreach(
        json_object_get(run, "reports"), i,
        report) if (text(report, "fingerprint") && text(report, "kind") &&
                    strcmp(text(report, "kind"), "data-race") ==
                        0) return RF_SQL(sql, "UPDATE pairs SET race = $1 WHERE race IS NULL AND first = $2 AND second = $3",
                                         NULL, NULL, text(report, "fingerprint"), first, second);
    return RF_SQL_OK;
}

/* A sign of life: the run counts from its first on, and is not over. What comes after its end says nothing any more. */
static enum rf_sql_answer put_unfinished(struct rf_sql *sql, const json_t *run, const char *id, const char *mode)
{
    char started[64], waited[64], rate[64], heard[64];
    return RF_SQL(sql,
                  "INSERT INTO runs (id, mode, first, second, host, build, started, waited, rate, heard)"
                  " VALUES ($1, $2, $3, $4, $5, $6, coalesce($7, @now), $8, $9, coalesce($10, @now)) ON CONFLICT (id) DO UPDATE SET"
                  " mode = excluded.mode, first = excluded.first, second = excluded.second, rate = excluded.rate,"
                  " waited = coalesce(excluded.waited, runs.waited),"
                  " heard = CASE WHEN excluded.heard > runs.heard THEN excluded.heard ELSE runs.heard END"
                  " WHERE runs.heard IS NOT NULL",
                  NULL, NULL, id, mode, site_of_pair(run, 0), site_of_pair(run, 1), text(run, "host"), text(run, "build"),
                  member(run, "started", started), member(run, "waited", waited), member(run, "rate", rate),
                  member(run, "heard", heard));
}

static enum rf_sql_answer put_run(struct rf_sql *sql, const json_t *run)
{
    char started[64], seconds[64], waited[64], rate[64], status[64];
    const char *id = text(run, "id"), *mode = text(run, "mode"), *first = site_of_pair(run, 0),
               *second = site_of_pair(run, 1);
    const json_t *report;
    size_t i;
    bool fresh = false;
    if (!id || !*id)
        return lacks(sql, "run", "id");
    if (!mode)
        return lacks(sql, "run", "mode");
    if (json_is_true(json_object_get(run, "unfinished")))
        return put_unfinished(sql, run, id, mode);
    enum rf_sql_answer answer = RF_SQL(
        sql,
        "INSERT INTO runs (id, mode, first, second, host, build, started, seconds, waited, rate, status)"
        " VALUES ($1, $2, $3, $4, $5, $6, coalesce($7, @now), $8, $9, $10, $11) ON CONFLICT (id) DO UPDATE SET"
        " mode = excluded.mode, first = excluded.first, second = excluded.second, host = excluded.host,"
        " build = excluded.build, started = excluded.started, seconds = excluded.seconds,"
        " waited = coalesce(excluded.waited, runs.waited), rate = excluded.rate, status = excluded.status, heard = NULL"
        " WHERE runs.heard IS NOT NULL RETURNING id",
        is_new, &fresh, id, mode, first, second, text(run, "host"), text(run, "build"), member(run, "started", started),
        member(run, "seconds", seconds), member(run, "waited", waited), member(run, "rate", rate),
        member(run, "status", status));
    if (answer == RF_SQL_OK && fresh && first && second)
        answer = RF_SQL(sql, "UPDATE pairs SET runs = runs + 1 WHERE first = $1 AND second = $2", NULL, NULL, first, second);
    if (answer == RF_SQL_OK)
        answer = RF_SQL(sql, "UPDATE pairs SET leased_by = NULL, leased_until = 0 WHERE leased_by = $1", NULL, NULL, id);
    json_array_foreach(json_object_get(run, "reports"), i, report) if (answer == RF_SQL_OK && text(report, "fingerprint"))
        answer = put_report(sql, report, member(run, "started", started));
    if (answer == RF_SQL_OK && first && second)
        answer = confirm(sql, run, first, second);
    return answer == RF_SQL_OK ? put_sightings(sql, run, id) : answer;
}

enum rf_sql_answer rf_result_apply(struct rf_sql *sql, const json_t *result)
{
    const char *kind = text(result, "redflag");
    if (!kind)
        return lacks(sql, "?", "redflag");
    if (strcmp(kind, "run") == 0)
        return put_run(sql, result);
    if (strcmp(kind, "pair") == 0)
        return put_pair(sql, result);
    if (strcmp(kind, "site") == 0)
        return put_site(sql, result);
    if (strcmp(kind, "race") == 0)
        return put_known_race(sql, result);
    if (strcmp(kind, "build") == 0)
        return text(result, "id") ? put_build(sql, text(result, "id"), text(result, "path")) : lacks(sql, kind, "id");
    snprintf(sql->error, sizeof sql->error, "a result of the kind '%.64s' is not known", kind);
    return RF_SQL_WRONG;
}

json_t *rf_result_of_reports(const char *whole, size_t length, char error[160])
{
    char id[32];
    json_t *reports = json_array();
    unsigned line = 0;
    for (const char *at = whole, *end = whole + length; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = newline ? (size_t)(newline - at) : (size_t)(end - at);
        json_error_t why;
        json_t *report = size ? json_loadb(at, size, 0, &why) : NULL;
        if (size && !report) {
            snprintf(error, 160, "line %u: %.120s", line + 1, why.text);
            json_decref(reports);
            return NULL;
        }
        if (text(report, "fingerprint"))
            json_array_append(reports, report);
        json_decref(report);
        at += size + 1;
    }
    snprintf(id, sizeof id, "reports-%016llx", (unsigned long long)XXH3_64bits(whole, length));
    return json_pack("{s:s, s:s, s:s, s:o}", "redflag", "run", "id", id, "mode", "run", "reports", reports);
}
