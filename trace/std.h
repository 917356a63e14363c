/* STD text: one event a line, THREAD|op(args)|site. doc/traces.md is the reference.
 *
 * 1. Parsing a stretch of lines a second time gives the same events, if the parser gets the `seen` that it had the first
 *    time: names never change their indices, and what a line means depends on earlier lines only through the names seen
 *    before it.
 * 2. A line makes all of its events or none.
 */
#ifndef RF_TRACE_STD_H
#define RF_TRACE_STD_H

#include "core/event.h"
#include "trace/names.h"

#define RF_STD_MAX_LINE (16u << 20)          /* bytes */
#define RF_STD_MAX_ACCESS (1u << 20)         /* bytes that one access touches */
#define RF_STD_MAX_RANGE (UINT64_C(1) << 40) /* bytes that one alloc, free or copy covers */
#define RF_STD_MAX_FIELDS (1u << 16)         /* fields that one copy moves */

/* Which variables are fields of a name: o.f, o[1] and o[1].g are fields of o, the last also of o[1]. */
struct rf_owners {
    struct rf_names names; /* of what has fields; the texts belong to the variables */
    struct rf_owner {
        uint32_t *variables;
        size_t count, capacity;
    } * owners;
    size_t capacity;
};

struct rf_tables {
    struct rf_names threads, sites;
    struct rf_symbols variables, objects;
    struct rf_owners owners;
};

void rf_tables_init(struct rf_tables *tables);
void rf_tables_free(struct rf_tables *tables);

struct rf_std_parser {
    struct rf_tables *tables;
    uint64_t line;        /* lines parsed */
    uint32_t seen;        /* variables named so far: those below this index */
    bool zeros;           /* the text holds zero bytes somewhere: look for them in every line */
    uint32_t last_thread; /* what the line before named; saves most searches */
    struct rf_event *events;
    size_t count, capacity;
    uint32_t ops;
    char flaw[160]; /* of line + 1; "" if there is none */
};

/* Appends the events of whole lines, until the text or `limit` events are used up, or a line is bad. Returns the bytes of
 * the lines parsed. At the end of the trace (`final`) the last line needs no newline. */
size_t rf_std_parse(struct rf_std_parser *parser, const char *text, size_t size, bool final, size_t limit);

#endif
