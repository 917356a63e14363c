/* See fleet/sql.h. */
#include "fleet/sql.h"

#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

enum rf_sql_answer rf_sql_open(struct rf_sql *sql, const char *where)
{
    bool server = strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0;
    memset(sql, 0, sizeof *sql);
    sql->kind = server ? &rf_postgres : &rf_sqlite;
    sql->where = rf_check_memory(strdup(where), strlen(where));
    return sql->kind->open(sql);
}

void rf_sql_close(struct rf_sql *sql)
{
    if (sql->handle)
        sql->kind->close(sql);
    sql->handle = NULL;
    free(sql->where);
    sql->where = NULL;
}

enum rf_sql_answer rf_sql_reopen(struct rf_sql *sql)
{
    if (sql->handle)
        sql->kind->close(sql);
    sql->handle = NULL;
    return sql->kind->open(sql);
}

/* Puts what the database calls them in place of @now, @serial, @skip and @begin. */
static char *in_its_words(const struct rf_sql_kind *kind, const char *text)
{
    const struct {
        const char *name, *value;
    } words[] = { { "@now", kind->now },
                  { "@serial", kind->serial },
                  { "@skip", kind->skip },
                  { "@begin_alone", kind->begin_alone },
                  { "@begin", kind->begin } };
    size_t used = 0, capacity = 0;
    char *out = NULL;
    while (*text) {
        const char *put = text;
        size_t length = 1, taken = 1;
        for (unsigned i = 0; *text == '@' && i < sizeof words / sizeof *words; i++)
            if (strncmp(text, words[i].name, strlen(words[i].name)) == 0) {
                put = words[i].value;
                length = strlen(put);
                taken = strlen(words[i].name);
                break;
            }
        out = rf_reserve(out, &capacity, used + length + 1, 1);
        memcpy(out + used, put, length);
        used += length;
        text += taken;
    }
    out = rf_reserve(out, &capacity, used + 1, 1);
    out[used] = 0;
    return out;
}

enum rf_sql_answer rf_sql_run(struct rf_sql *sql, const char *text, unsigned count, const char *const *values,
                              rf_sql_row_fn *row, void *context)
{
    if (!sql->handle)
        return RF_SQL_OUT_OF_REACH; /* the error of the last attempt to open still stands */
    char *statement = in_its_words(sql->kind, text);
    enum rf_sql_answer answer = sql->kind->run(sql, statement, count, values, row, context);
    free(statement);
    return answer;
}
