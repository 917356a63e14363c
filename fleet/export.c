/* The whole store as results (fleet/results.h), in an order in which they can be applied. */
#include <stdlib.h>
#include <string.h>

#include "fleet/results.h"

struct line {
    FILE *out;
    const char *kind;
    const char *const *names; /* of the columns; a name that begins with # is a number, with { is JSON */
};

static void put_line(void *context, const char *const *columns)
{
    const struct line *line = context;
    json_t *object = json_pack("{s:s}", "redflag", line->kind);
    for (unsigned i = 0; line->names[i]; i++) {
        const char *name = line->names[i];
        json_t *value = !columns[i]      ? NULL
                        : name[0] == '#' ? (strpbrk(columns[i], ".e") ? json_real(strtod(columns[i], NULL))
                                                                      : json_integer(strtoll(columns[i], NULL, 10)))
                        : name[0] == '{' ? json_loads(columns[i], JSON_DECODE_ANY, NULL)
                                         : json_string(columns[i]);
        if (value)
            json_object_set_new(object, name + strspn(name, "#{"), value);
    }
    /* Two columns are one pair. */
    json_t *first = json_object_get(object, "first"), *second = json_object_get(object, "second");
    if (first && second && strcmp(line->kind, "pair") != 0) {
        json_object_set_new(object, "pair", json_pack("[O, O]", first, second));
        json_object_del(object, "first");
        json_object_del(object, "second");
    }
    char *text = json_dumps(object, JSON_COMPACT);
    fprintf(line->out, "%s\n", text);
    free(text);
    json_decref(object);
}

/* Sightings are members of their run. */
struct runs {
    FILE *out;
    json_t *sightings; /* run -> array */
};

static void take_sighting(void *context, const char *const *columns)
{
    struct runs *runs = context;
    json_t *list = json_object_get(runs->sightings, columns[0]);
    if (!list) {
        list = json_array();
        json_object_set_new(runs->sightings, columns[0], list);
    }
    json_array_append_new(
        list, json_pack("{s:s, s:I}", "fingerprint", columns[1], "times", (json_int_t)strtoll(columns[2], NULL, 10)));
}

static const char *const run_names[] = { "id",       "mode",    "first", "second",  "host",       "build", "#started",
                                         "#seconds", "#waited", "#rate", "#status", "#heard", "{unfinished", "{sightings", NULL };

static void put_run(void *context, const char *const *columns)
{
    struct runs *runs = context;
    struct line line = { runs->out, "run", run_names };
    const char *all[14];
    json_t *list = json_object_get(runs->sightings, columns[0]);
    char *sightings = list ? json_dumps(list, JSON_COMPACT) : NULL;
    memcpy(all, columns, 12 * sizeof *all);
    all[12] = columns[11] ? "true" : NULL; /* it was heard of, and is not over */
    all[13] = sightings;
    put_line(&line, all);
    free(sightings);
}

enum rf_sql_answer rf_results_export(struct rf_sql *sql, FILE *out)
{
    static const struct {
        const char *kind, *question;
        const char *names[9];
    } tables[] = {
        { "build", "SELECT id, path FROM builds ORDER BY id", { "id", "path" } },
        { "site",
          "SELECT name, build, function, file, line, col FROM sites ORDER BY name",
          { "name", "build", "function", "file", "#line", "#column" } },
        { "pair",
          "SELECT first, second, origin, stage, priority, race FROM pairs ORDER BY id",
          { "first", "second", "origin", "stage", "#priority", "race" } },
        { "race",
          "SELECT fingerprint, kind, summary, first, second, first_seen, last_seen, report FROM races ORDER BY fingerprint",
          { "fingerprint", "kind", "summary", "first", "second", "#first_seen", "#last_seen", "{report" } },
    };
    enum rf_sql_answer answer = RF_SQL_OK;
    for (unsigned i = 0; answer == RF_SQL_OK && i < sizeof tables / sizeof *tables; i++) {
        struct line line = { out, tables[i].kind, tables[i].names };
        answer = rf_sql_run(sql, tables[i].question, 0, NULL, put_line, &line);
    }
    struct runs runs = { out, json_object() };
    if (answer == RF_SQL_OK)
        answer = rf_sql_run(sql, "SELECT run, fingerprint, times FROM sightings ORDER BY run, fingerprint", 0, NULL,
                            take_sighting, &runs);
    if (answer == RF_SQL_OK)
        answer = rf_sql_run(
            sql, "SELECT id, mode, first, second, host, build, started, seconds, waited, rate, status, heard FROM runs ORDER BY id",
            0, NULL, put_run, &runs);
    json_decref(runs.sightings);
    return answer;
}
