/* What the files of the guest that make reports share: report.c decides, report_show.c shows, report_wire.c writes records,
 * report_spawn.c talks to the reporter. All of it is used by one thread at a time, who has the reports' lock. */
#ifndef RF_GUEST_REPORT_PARTS_H
#define RF_GUEST_REPORT_PARTS_H

#include "guest/memory.h"
#include "guest/report.h"
#include "report/record.h"

#define RF_DEEPEST 4096u /* frames of one stack; what is deeper is a recursion that nobody reads to its end */

/* Memory that lives as long as one report. */
void *rf_scratch(size_t bytes);
void rf_scratch_free(void);

/* A text that grows. */
struct rf_wire {
    char *text;
    size_t length, cap;
};
#define RF_WIRE_PIECE 8192u /* the most that is added at once: longer than any path */
char *rf_wire_room(struct rf_wire *wire);
void rf_wire_added(struct rf_wire *wire, size_t length);
#define rf_wire_add(wire, ...) rf_wire_added((wire), rf_format(rf_wire_room(wire), RF_WIRE_PIECE, __VA_ARGS__))
void rf_wire_text(struct rf_wire *wire, const char *text); /* the rest of a line, and its end */
void rf_wire_free(struct rf_wire *wire);

/* The modules that are loaded now. `paths` are valid while the report is made. */
struct rf_rec_module *rf_modules_now(uint32_t *count);
const struct rf_rec_module *rf_module_at(uintptr_t addr);
void rf_modules_forget(void); /* the reporter is a new one: tell it all */
void rf_modules_told(void);   /* it knows those of the last record */
void rf_wire_record(struct rf_wire *wire, const struct rf_record *record);
/* The same for people, without symbols, when there is no reporter. */
void rf_record_say(const struct rf_record *record, int fd);

/* guest/report_show.c. Counts change while others read them. */
struct rf_report_counts {
    uint64_t shown, repeated, same_address, suppressed, interrupted;
};
extern struct rf_report_counts rf_report_counts;
#define RF_COUNT(name) __atomic_fetch_add(&rf_report_counts.name, 1, __ATOMIC_RELAXED)
void rf_report_begin(void);
_Noreturn void rf_halt(bool aborts); /* the end because of a report: by abort(), or with the exit status */
bool rf_report_show(struct rf_record *record); /* true: the user has seen it */
int rf_report_end(int status);                 /* sums up; returns the status to exit with */

enum rf_answer { RF_SHOWN, RF_SUPPRESSED, RF_LOST /* it is the guest's to show */ };
/* `text` is what came with the answer. */
enum rf_answer rf_reporter_report(const struct rf_record *record, char *text, size_t size);
bool rf_reporter_finish(const struct rf_wire *counts); /* false: something could not be written; it was said */
bool rf_reporter_runs(void);
void rf_reporter_forget(void);                   /* let it go */
void rf_reporter_fork_child(void);               /* it is the parent's */
int rf_report_stream(void);                      /* the descriptor that reports go to, if it is no file */
const char *rf_report_directory(void);           /* where the program was started, "" if nobody needs to know */
const struct rf_record *rf_report_current(void); /* while the program is told of one; NULL otherwise */
extern bool rf_report_failed;                    /* something of ours went wrong: the exit status tells */

#endif
