/* PostgreSQL, for a fleet. Its client library is loaded when it is first needed: most who use redflag never do, and every command
 * would start more slowly. */
#include <dlfcn.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "fleet/sql.h"

#define LIBRARY "libpq.so.5"
#define FUNCTIONS(X)                                                                                                        \
    X(PQconnectdb)                                                                                                          \
    X(PQstatus)                                                                                                             \
    X(PQfinish)                                                                                                             \
    X(PQerrorMessage)                                                                                                       \
    X(PQexec)                                                                                                               \
    X(PQexecParams)                                                                                                         \
    X(PQresultStatus)                                                                                                       \
    X(PQresultErrorField)                                                                                                   \
    X(PQsetNoticeProcessor)                                                                                                 \
    X(PQntuples)                                                                                                            \
    X(PQnfields)                                                                                                            \
    X(PQgetisnull)                                                                                                          \
    X(PQgetvalue)                                                                                                           \
    X(PQclear)

static struct {
#define FUNCTION(name) __typeof__(name) *name;
    FUNCTIONS(FUNCTION)
#undef FUNCTION
} pq;

static bool load(char *error, size_t size)
{
    static void *library;
    if (library)
        return true;
    void *opened = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
        snprintf(error, size, "PostgreSQL's client library " LIBRARY " is not installed (Debian: libpq5)");
        return false;
    }
#define FUNCTION(name)                                                                                                      \
    *(void **)&pq.name = dlsym(opened, #name);                                                                              \
    if (!pq.name) {                                                                                                         \
        snprintf(error, size, LIBRARY " has no " #name);                                                                    \
        dlclose(opened);                                                                                                    \
        return false;                                                                                                       \
    }
    FUNCTIONS(FUNCTION)
#undef FUNCTION
    library = opened;
    return true;
}

/* Its messages have several lines, and the address that we were given may hold a password: the first line is said. */
static void say(struct rf_sql *sql, const char *message)
{
    size_t length = strcspn(message, "\n");
    snprintf(sql->error, sizeof sql->error, "PostgreSQL: %.*s", (int)(length < 400 ? length : 400), message);
}

static void no_notices(void *context, const char *message)
{
    (void)context;
    (void)message;
}

static enum rf_sql_answer open_server(struct rf_sql *sql)
{
    if (!load(sql->error, sizeof sql->error))
        return RF_SQL_WRONG;
    PGconn *connection = pq.PQconnectdb(sql->where);
    if (!connection || pq.PQstatus(connection) != CONNECTION_OK) {
        say(sql, connection ? pq.PQerrorMessage(connection) : "out of memory");
        pq.PQfinish(connection);
        return RF_SQL_OUT_OF_REACH;
    }
    pq.PQsetNoticeProcessor(connection, no_notices, NULL);
    sql->handle = connection;
    return RF_SQL_OK;
}

static void close_server(struct rf_sql *sql)
{
    pq.PQfinish(sql->handle);
}

/* Classes of SQLSTATE that another attempt may get over: connections, transactions that were rolled back for the sake of others,
 * resources, an operator's shutdown, the system underneath. */
static bool is_temporary(struct rf_sql *sql, const char *state)
{
    static const char *const classes[] = { "08", "25", "40", "53", "55", "57", "58" };
    if (pq.PQstatus(sql->handle) != CONNECTION_OK || !state)
        return true;
    for (unsigned i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strncmp(state, classes[i], 2) == 0)
            return true;
    return false;
}

static enum rf_sql_answer run(struct rf_sql *sql, const char *text, unsigned count, const char *const *values,
                              rf_sql_row_fn *row, void *context)
{
    /* Several statements in one text are possible without values only. */
    PGresult *result =
        count ? pq.PQexecParams(sql->handle, text, (int)count, NULL, values, NULL, NULL, 0) : pq.PQexec(sql->handle, text);
    ExecStatusType status = result ? pq.PQresultStatus(result) : PGRES_FATAL_ERROR;
    enum rf_sql_answer answer = RF_SQL_OK;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        say(sql, pq.PQerrorMessage(sql->handle));
        answer = is_temporary(sql, result ? pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL) ? RF_SQL_OUT_OF_REACH
                                                                                                    : RF_SQL_WRONG;
    }
    for (int i = 0; answer == RF_SQL_OK && row && i < pq.PQntuples(result); i++) {
        const char *columns[32];
        for (int j = 0; j < pq.PQnfields(result) && j < 32; j++)
            columns[j] = pq.PQgetisnull(result, i, j) ? NULL : pq.PQgetvalue(result, i, j);
        row(context, columns);
    }
    if (result)
        pq.PQclear(result);
    return answer;
}

const struct rf_sql_kind rf_postgres = { .now = "CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)",
                                         .serial = "BIGSERIAL PRIMARY KEY",
                                         .skip = "FOR UPDATE SKIP LOCKED",
                                         .begin = "BEGIN",
                                         .begin_alone = "BEGIN; SELECT pg_advisory_xact_lock(7267466)",
                                         .open = open_server,
                                         .close = close_server,
                                         .run = run };
