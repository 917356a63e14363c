/* SQLite: a file, no set-up.
 *
 * 1. What is acknowledged is on the disk: write-ahead log, synchronous=FULL.
 * 2. A writer waits for the others, up to a minute: with hundreds of processes each waits for hundreds of short transactions. Every
 *    transaction that writes begins as one (BEGIN IMMEDIATE), so none finds at its end that it cannot have the lock.
 */
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fleet/sql.h"

#define PATIENCE_MS 60000

/* What the system says: of a file that cannot be opened or made, whether its directory can be written, as there are files beside it. 0:
 * nothing. */
static int reason(const struct rf_sql *sql, int code)
{
    const char *slash = strrchr(sql->where, '/');
    char directory[PATH_MAX];
    if (code == SQLITE_IOERR)
        return sql->handle ? sqlite3_system_errno(sql->handle) : 0;
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - sql->where) + 1 : 1, slash ? sql->where : ".");
    return code == SQLITE_CANTOPEN && access(directory, W_OK) != 0 ? errno : 0;
}

static enum rf_sql_answer failed(struct rf_sql *sql, int code)
{
    const char *why = sql->handle ? sqlite3_errmsg(sql->handle) : sqlite3_errstr(code);
    int system = reason(sql, code & 0xff);
    if ((code & 0xff) == SQLITE_CANTOPEN)
        why = "cannot be opened or made";
    snprintf(sql->error, sizeof sql->error, "%.300s: %.100s%s%.90s", sql->where, why, system ? ": " : "", system ? strerror(system) : "");
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
        return RF_SQL_OUT_OF_REACH;
    }
    return RF_SQL_WRONG;
}

static enum rf_sql_answer open_file(struct rf_sql *sql)
{
    sqlite3 *handle = NULL;
    int code = sqlite3_open_v2(sql->where, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    sql->handle = handle;
    if (code == SQLITE_OK) {
        sqlite3_extended_result_codes(handle, 1);
        sqlite3_busy_timeout(handle, PATIENCE_MS);
        code = sqlite3_exec(handle, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON", NULL, NULL,
                            NULL);
    }
    if (code == SQLITE_OK)
        return RF_SQL_OK;
    enum rf_sql_answer answer = failed(sql, code);
    sqlite3_close(handle);
    sql->handle = NULL;
    return answer;
}

static void close_file(struct rf_sql *sql)
{
    sqlite3_close(sql->handle);
}

static enum rf_sql_answer run_one(struct rf_sql *sql, sqlite3_stmt *statement, unsigned count, const char *const *values,
                                  rf_sql_row_fn *row, void *context)
{
    int code = SQLITE_OK;
    for (unsigned i = 0; i < count && code == SQLITE_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "$%u", i + 1);
        int index = sqlite3_bind_parameter_index(statement, name);
        if (index)
            code = values[i] ? sqlite3_bind_text(statement, index, values[i], -1, SQLITE_STATIC)
                             : sqlite3_bind_null(statement, index);
    }
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        const char *columns[32];
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW || !row)
            continue;
        for (int i = 0; i < sqlite3_column_count(statement) && i < 32; i++)
            columns[i] = (const char *)sqlite3_column_text(statement, i);
        row(context, columns);
    }
    return code == SQLITE_DONE ? RF_SQL_OK : failed(sql, code);
}

/* A text may hold several statements, of which the first has the values. */
static enum rf_sql_answer run(struct rf_sql *sql, const char *text, unsigned count, const char *const *values,
                              rf_sql_row_fn *row, void *context)
{
    enum rf_sql_answer answer = RF_SQL_OK;
    while (answer == RF_SQL_OK && text[strspn(text, " \n;")]) {
        sqlite3_stmt *statement = NULL;
        int code = sqlite3_prepare_v2(sql->handle, text, -1, &statement, &text);
        answer = code != SQLITE_OK ? failed(sql, code) : run_one(sql, statement, count, values, row, context);
        sqlite3_finalize(statement);
    }
    return answer;
}

const struct rf_sql_kind rf_sqlite = { .now = "unixepoch()",
                                       .serial = "INTEGER PRIMARY KEY",
                                       .skip = "",
                                       .begin = "BEGIN IMMEDIATE",
                                       .begin_alone = "BEGIN IMMEDIATE",
                                       .open = open_file,
                                       .close = close_file,
                                       .run = run };
