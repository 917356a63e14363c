/* Suppressions: which reports nobody wants to see. ThreadSanitizer's format, and two things more (doc/suppressions.md).
 *
 * 1. A line is `type:pattern`; empty lines and lines that begin with # are none. A line that is neither is an error: a suppression
 *    with a slip of the pen would silently do nothing.
 * 2. A pattern is found anywhere in a text; `*` stands for any characters, a leading ^ and a trailing $ for its ends. Texts are the
 *    function, the file and the module of each frame of a stack, and the name of a variable.
 * 3. Several patterns with ; between them match frames of one stack, inner ones first, others may lie between.
 */
#ifndef RF_REPORT_SUPPRESS_H
#define RF_REPORT_SUPPRESS_H

#include "report/record.h"

struct rf_suppression {
    char *type, *pattern;
    const char *origin; /* the file, as it was named */
    unsigned line;
    uint64_t hits;
};

struct rf_suppressions {
    struct rf_suppression *list;
    uint32_t count, cap;
    char **origins;
    uint32_t origin_count, origin_cap;
};

bool rf_pattern_matches(const char *pattern, const char *text);

/* false: `error` says what is wrong, with file and line. */
bool rf_suppressions_parse(struct rf_suppressions *all, const char *text, const char *origin, char error[512]);
bool rf_suppressions_load(struct rf_suppressions *all, const char *path, char error[512]);
void rf_suppressions_free(struct rf_suppressions *all);

/* The first that matches the report, whose stacks have frames; its hits are counted. NULL: none. */
struct rf_suppression *rf_suppressions_match(struct rf_suppressions *all, const struct rf_record *record);

#endif
