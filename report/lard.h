/* One execution of a program under a runtime system, looked at in several ways: which races each way of looking makes up, and which it
 * misses (Wood, tables 4.2 and 4.3). replay/lard.c counts, report/lard.c prints.
 */
#ifndef RF_REPORT_LARD_H
#define RF_REPORT_LARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct rf_lard_count {
    size_t accesses; /* that raced with an earlier one: the paper's DRE */
    size_t places;   /* of the program, in which they are: the paper's PC */
};

struct rf_lard_row {
    const char *name, *meaning;
    struct rf_lard_count reported;
    struct rf_lard_count made_up; /* reported here, not by the measure */
    struct rf_lard_count missed;  /* reported by the measure, not here */
};

#define RF_LARD_ROWS 7u

struct rf_lard {
    const char *path, *detector;
    uint64_t events, system_events;
    const char *truncated;                 /* where and why, NULL if the trace is whole */
    struct rf_lard_row rows[RF_LARD_ROWS]; /* the first is LARD, the measure of the others; the last one is Naive */
    bool has_language;
    struct rf_lard_row language; /* LARD measured by the language's own trace, if there is one */
};

void rf_lard_text(FILE *out, const struct rf_lard *lard);
void rf_lard_markdown(FILE *out, const struct rf_lard *lard);
void rf_lard_json(FILE *out, const struct rf_lard *lard);

#endif
