/* A database, whichever it is: SQLite in a file, or PostgreSQL.
 *
 * 1. Statements are one text for both. Values are $1, $2, ...; @now is the database's own time in seconds, so that the clocks of many
 *    machines do not matter; @serial is a key that it numbers; @skip, after the select of an update, passes over rows that another
 *    process is about to change; @begin starts a transaction, @begin_alone one that excludes others which do so.
 * 2. Values and columns are text. A column that is NULL is NULL.
 * 3. A failure is one of two kinds. Out of reach: no connection, a full disk, a lock that is not given up; the same may succeed later.
 *    Wrong: it will fail again. The connection says which, and in one line why.
 */
#ifndef RF_FLEET_SQL_H
#define RF_FLEET_SQL_H

#include <stdbool.h>
#include <stddef.h>

enum rf_sql_answer { RF_SQL_OK, RF_SQL_OUT_OF_REACH, RF_SQL_WRONG };

typedef void rf_sql_row_fn(void *context, const char *const *columns);

struct rf_sql {
    const struct rf_sql_kind *kind;
    void *handle;
    char *where;
    char error[512];
};

struct rf_sql_kind {
    const char *now, *serial, *skip, *begin;
    const char *begin_alone; /* nobody else who says so is in a transaction */
    enum rf_sql_answer (*open)(struct rf_sql *sql);
    void (*close)(struct rf_sql *sql);
    enum rf_sql_answer (*run)(struct rf_sql *sql, const char *text, unsigned count, const char *const *values,
                              rf_sql_row_fn *row, void *context);
};

extern const struct rf_sql_kind rf_sqlite, rf_postgres;

/* `where`: postgresql://... or postgres://..., otherwise the name of a file, which is made if it is not there. */
enum rf_sql_answer rf_sql_open(struct rf_sql *sql, const char *where);
void rf_sql_close(struct rf_sql *sql);
/* Closes and opens again. */
enum rf_sql_answer rf_sql_reopen(struct rf_sql *sql);

/* `row` may be NULL. At most 16 values. */
enum rf_sql_answer rf_sql_run(struct rf_sql *sql, const char *text, unsigned count, const char *const *values,
                              rf_sql_row_fn *row, void *context);
#define RF_SQL(sql, text, row, context, ...)                                                                                \
    rf_sql_run(sql, text, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), (const char *[]){ __VA_ARGS__ }, row,   \
               context)

#endif
