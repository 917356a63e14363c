/* How a report is written: text in two styles, JSON Lines, SARIF, JUnit. All start from a struct rf_record whose stacks have frames. */
#ifndef RF_REPORT_WRITERS_H
#define RF_REPORT_WRITERS_H

#include <stdio.h>

#include "report/suppress.h"
#include "report/symbols.h"

struct rf_writing {
    int32_t pid;
    bool tsan; /* ThreadSanitizer's words */
    bool color;
    bool second_stack; /* where each lock of a circle was taken before */
    const char *strip_prefix;
    const char *frame_format; /* ThreadSanitizer's notation; "" is "    #%n %f %S %M" */
};

/* 64 bits that stay the same from run to run and survive edits elsewhere (doc/reports.md): of the kind, of each side what it does and
 * its innermost three functions with the names of their files, and of the kind of the location and the name of a variable. Not of addresses, lines, threads or order. */
uint64_t rf_fingerprint(const struct rf_record *record);

/* The stack that stands for the report in one line. */
const struct rf_stack *rf_record_main_stack(const struct rf_record *record);
/* What an access does: "Read", "Atomic write", ... */
const char *rf_access_words(uint32_t flags, bool previous);
/* A path as it is shown. */
const char *rf_shown_path(const struct rf_writing *how, const char *path);
/* A suppression that fits this report. The buffer holds it. */
const char *rf_suppression_for(const struct rf_record *record, bool tsan, char buffer[1024]);

void rf_write_text(FILE *out, const struct rf_record *record, const struct rf_writing *how);
/* "data race FILE:LINE in FUNCTION" */
void rf_write_summary(FILE *out, const struct rf_record *record, const struct rf_writing *how);
/* One line. */
void rf_write_jsonl(FILE *out, const struct rf_record *record, const struct rf_writing *how);

/* A format whose file is one document, which is always whole: what stands before the reports, between two of them, and after them. */
struct rf_document {
    const char *name;
    void (*begin)(FILE *out);
    const char *between, *end;
    char before_first; /* the last character of begin(), and of no report */
    void (*write)(FILE *out, const struct rf_record *record, const struct rf_writing *how);
};
extern const struct rf_document rf_sarif, rf_junit;

#endif
