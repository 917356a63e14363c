/* See fleet/store.h. What a result is made of is in fleet/results.c. */
#include "fleet/store.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fleet/results.h"
#include "fleet/schema.h"
#include "trace/grow.h"

struct rf_store {
    struct rf_sql sql;
    double patience;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static enum rf_store_answer told(enum rf_sql_answer answer)
{
    return answer == RF_SQL_OK ? RF_STORE_DONE : answer == RF_SQL_OUT_OF_REACH ? RF_STORE_OUT_OF_REACH : RF_STORE_WRONG;
}

const char *rf_store_error(const struct rf_store *store)
{
    return store->sql.error;
}

uint32_t rf_store_version(void)
{
    return rf_schema_version;
}

/* ---- transactions ---- */

typedef enum rf_sql_answer work_fn(struct rf_sql *sql, void *context);

static enum rf_sql_answer once(struct rf_sql *sql, const char *begin, work_fn *work, void *context)
{
    enum rf_sql_answer answer = rf_sql_run(sql, begin, 0, NULL, NULL, NULL);
    if (answer != RF_SQL_OK)
        return answer;
    answer = work(sql, context);
    if (answer == RF_SQL_OK)
        answer = rf_sql_run(sql, "COMMIT", 0, NULL, NULL, NULL);
    if (answer != RF_SQL_OK) { /* what failed is what is said, not that there is nothing to roll back */
        char error[sizeof sql->error];
        memcpy(error, sql->error, sizeof error);
        rf_sql_run(sql, "ROLLBACK", 0, NULL, NULL, NULL);
        memcpy(sql->error, error, sizeof error);
    }
    return answer;
}

/* Invariant 4. The connection may have been lost after the commit and before its acknowledgement, so `work` may be done twice: all of
 * ours may be (invariant 2). */
static enum rf_sql_answer transact(struct rf_store *store, const char *begin, work_fn *work, void *context)
{
    double end = now() + store->patience, pause = 0.05;
    for (;;) {
        enum rf_sql_answer answer = once(&store->sql, begin, work, context);
        if (answer != RF_SQL_OUT_OF_REACH || now() + pause > end)
            return answer;
        nanosleep(&(struct timespec){ (time_t)pause, (long)(fmod(pause, 1) * 1e9) }, NULL);
        pause = pause < 1 ? pause * 2 : pause;
        if (rf_sql_reopen(&store->sql) == RF_SQL_WRONG)
            return RF_SQL_WRONG;
    }
}

/* ---- opening ---- */

static void take_version(void *context, const char *const *columns)
{
    *(uint32_t *)context = columns[0] ? (uint32_t)strtoul(columns[0], NULL, 10) : 0;
}

/* Invariant 5. All who open at the same moment come one after the other. */
static enum rf_sql_answer migrate(struct rf_sql *sql, void *context)
{
    (void)context;
    uint32_t version = 0;
    char text[16];
    enum rf_sql_answer answer =
        rf_sql_run(sql, "CREATE TABLE IF NOT EXISTS redflag_schema (version BIGINT NOT NULL)", 0, NULL, NULL, NULL);
    if (answer == RF_SQL_OK)
        answer = rf_sql_run(sql, "SELECT max(version) FROM redflag_schema", 0, NULL, take_version, &version);
    if (answer == RF_SQL_OK && version > rf_schema_version) {
        snprintf(sql->error, sizeof sql->error, "the store has version %u, this redflag knows up to %u: a newer one made it",
                 version, rf_schema_version);
        return RF_SQL_WRONG;
    }
    for (; answer == RF_SQL_OK && version < rf_schema_version; version++) {
        answer = rf_sql_run(sql, rf_schema[version], 0, NULL, NULL, NULL);
        snprintf(text, sizeof text, "%u", version + 1);
        if (answer == RF_SQL_OK)
            answer = RF_SQL(sql, "INSERT INTO redflag_schema (version) VALUES ($1)", NULL, NULL, text);
    }
    return answer;
}

static enum rf_sql_answer read_version(struct rf_sql *sql, uint32_t *version)
{
    return rf_sql_run(sql, "SELECT max(version) FROM redflag_schema", 0, NULL, take_version, version);
}

struct rf_store *rf_store_open(const char *where, double patience, enum rf_store_answer *answer, char error[512])
{
    struct rf_store *store = rf_zeroed(1, sizeof *store);
    uint32_t version = 0;
    store->patience = patience;
    enum rf_sql_answer got = rf_sql_open(&store->sql, where);
    for (double end = now() + patience; got == RF_SQL_OUT_OF_REACH && now() < end;) {
        nanosleep(&(struct timespec){ 0, 200000000 }, NULL);
        got = rf_sql_reopen(&store->sql);
    }
    /* The common case needs no lock. */
    if (got == RF_SQL_OK && (read_version(&store->sql, &version) != RF_SQL_OK || version != rf_schema_version))
        got = transact(store, "@begin_alone", migrate, NULL);
    *answer = told(got);
    if (got == RF_SQL_OK)
        return store;
    memcpy(error, store->sql.error, 512);
    rf_store_close(store);
    return NULL;
}

void rf_store_close(struct rf_store *store)
{
    if (store)
        rf_sql_close(&store->sql);
    free(store);
}

char *rf_store_place(const char *where)
{
    char *place = NULL, *slash;
    const char *set = getenv("REDFLAG_STORE"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (!where && set && *set)
        where = set;
    if (where)
        return rf_check_memory(strdup(where), strlen(where));
    int length = data && *data ? asprintf(&place, "%s/redflag/store.db", data)
                               : asprintf(&place, "%s/.local/share/redflag/store.db", home && *home ? home : ".");
    rf_check_memory(length < 0 ? NULL : place, 64);
    /* The directories above; what cannot be made shows when the file is opened. */
    for (slash = strchr(place + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(place, 0777);
        *slash = '/';
    }
    return place;
}

/* ---- leases ---- */

struct lease {
    const char *run, *build;
    char seconds[32];
    struct rf_leased *pair;
    bool found;
};

static void take_pair(void *context, const char *const *columns)
{
    struct lease *lease = context;
    lease->found = true;
    snprintf(lease->pair->first, sizeof lease->pair->first, "%s", columns[0]);
    snprintf(lease->pair->second, sizeof lease->pair->second, "%s", columns[1]);
    lease->pair->runs = strtoull(columns[2], NULL, 10);
}

/* Once this run's lease is there, asking again answers the same, so that a lost acknowledgement costs nothing. */
static enum rf_sql_answer lease_one(struct rf_sql *sql, void *context)
{
    struct lease *lease = context;
    lease->found = false;
    enum rf_sql_answer answer =
        RF_SQL(sql, "SELECT first, second, runs FROM pairs WHERE leased_by = $1 AND leased_until > @now", take_pair, lease,
               lease->run);
    if (answer == RF_SQL_OK && lease->found)
        return RF_SQL(sql, "UPDATE pairs SET leased_until = @now + $2 WHERE leased_by = $1", NULL, NULL, lease->run, lease->seconds);
    if (answer != RF_SQL_OK)
        return answer;
    return RF_SQL(sql,
                  "UPDATE pairs SET leased_by = $1, leased_until = @now + $2 WHERE id = (SELECT id FROM pairs"
                  " WHERE race IS NULL AND leased_until <= @now AND ($3 = '' OR build = $3 OR build = '')"
                  " ORDER BY priority DESC, runs, id LIMIT 1 @skip) RETURNING first, second, runs",
                  take_pair, lease, lease->run, lease->seconds, lease->build);
}

enum rf_store_answer rf_store_lease(struct rf_store *store, const char *run, const char *build, double seconds,
                                    struct rf_leased *pair)
{
    struct lease lease = { .run = run, .build = build ? build : "", .pair = pair };
    snprintf(lease.seconds, sizeof lease.seconds, "%lld", (long long)ceil(seconds));
    enum rf_sql_answer answer = transact(store, "@begin", lease_one, &lease);
    return answer == RF_SQL_OK && !lease.found ? RF_STORE_NOTHING : told(answer);
}

static enum rf_sql_answer give_back(struct rf_sql *sql, void *context)
{
    enum rf_sql_answer answer =
        RF_SQL(sql, "UPDATE pairs SET leased_by = NULL, leased_until = 0 WHERE leased_by = $1", NULL, NULL, context);
    return answer == RF_SQL_OK ? RF_SQL(sql, "DELETE FROM runs WHERE id = $1 AND heard IS NOT NULL", NULL, NULL, context) : answer;
}

enum rf_store_answer rf_store_give_back(struct rf_store *store, const char *run)
{
    return told(transact(store, "@begin", give_back, (void *)run));
}

/* ---- results ---- */

static enum rf_sql_answer apply(struct rf_sql *sql, void *context)
{
    const json_t *results = context;
    if (!json_is_array(results))
        return rf_result_apply(sql, results);
    enum rf_sql_answer answer = RF_SQL_OK;
    for (size_t i = 0; answer == RF_SQL_OK && i < json_array_size(results); i++)
        answer = rf_result_apply(sql, json_array_get(results, i));
    return answer;
}

enum rf_store_answer rf_store_apply(struct rf_store *store, const json_t *results)
{
    return told(transact(store, "@begin", apply, (void *)results));
}

static enum rf_sql_answer export_all(struct rf_sql *sql, void *context)
{
    return rf_results_export(sql, context);
}

/* One transaction, so that it is the store of one moment. Nothing is written before all of it is there: an attempt that failed in the
 * middle must not leave lines. */
enum rf_store_answer rf_store_export(struct rf_store *store, FILE *out)
{
    char *text = NULL;
    size_t size = 0;
    double patience = store->patience;
    FILE *memory = open_memstream(&text, &size);
    rf_check_memory(memory, 1);
    store->patience = 0;
    enum rf_store_answer answer = told(transact(store, "@begin", export_all, memory));
    store->patience = patience;
    fclose(memory);
    if (answer == RF_STORE_DONE)
        fwrite(text, 1, size, out);
    free(text);
    return answer;
}

/* ---- questions ---- */

struct question {
    const char *text;
    unsigned count;
    const char *const *values;
    json_t *rows;
    unsigned columns;
};

static void take_row(void *context, const char *const *columns)
{
    struct question *question = context;
    json_t *row = json_array();
    for (unsigned i = 0; i < question->columns; i++)
        json_array_append_new(row, columns[i] ? json_string(columns[i]) : json_null());
    json_array_append_new(question->rows, row);
}

static enum rf_sql_answer ask(struct rf_sql *sql, void *context)
{
    struct question *question = context;
    json_array_clear(question->rows);
    return rf_sql_run(sql, question->text, question->count, question->values, take_row, question);
}

/* The columns are counted in the text: commas of the outermost level between SELECT and FROM. */
static unsigned columns_of(const char *text)
{
    unsigned count = 1, depth = 0;
    for (; *text; text++) {
        depth += *text == '(';
        depth -= *text == ')';
        count += *text == ',' && !depth;
        if (!depth && strncmp(text, " FROM ", 6) == 0)
            break;
    }
    return count;
}

enum rf_store_answer rf_store_ask(struct rf_store *store, const char *text, unsigned count, const char *const *values,
                                  json_t **rows)
{
    struct question question = { text, count, values, json_array(), columns_of(text) };
    enum rf_store_answer answer = told(transact(store, "@begin", ask, &question));
    *rows = question.rows;
    return answer;
}
