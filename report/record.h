/* What the runtime tells the reporter, and how it is written down.
 *
 * 1. The guest (guest/report_wire.c) writes messages, the reporter reads them (rf_message_read) and answers each with one line. A message
 *    is text: a first line `redflag 1 TYPE`, lines of a key and its fields, and a last line `end`. Numbers are decimal or 0x and
 *    hexadecimal; a text goes to the end of its line, with %XX for bytes below a space and for % itself.
 *        hello     pid N; resumed 0|1; option NAME TEXT; suppress TEXT (a line of the program's own suppressions)
 *        report    kind ID; certainty certain|predicted; module START END BIAS RUNTIME BUILD-ID|- PATH (all that are new);
 *                  access ADDR SIZE FLAGS THREAD now|before, then its held NUMBER read|write; stack; thread NUMBER PARENT TID FLAGS
 *                  NAME; lock NUMBER ADDR; step HELD WANTED THREAD; location KIND ADDR SIZE THREAD FD TEXT; more N; signal N
 *                  `named PC LINE function|file TEXT` gives names to a pc that is in no module
 *                  `pc ADDR` adds to the stack of the line above it; `created`, `taken`, `wanted`, `before` say which of two.
 *        finish    count NAME N
 * 2. Reading is strict: an unknown key, a field too many or too few, a number out of range, is an error that names the line.
 * 3. The structs below are what a report is, for the guest that fills them, and for every writer of reports. The guest has no
 *    symbols: `frames`, and the name of a location, are filled by the reporter.
 */
#ifndef RF_REPORT_RECORD_H
#define RF_REPORT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RF_WIRE_VERSION 1
#define RF_PREDICTION "may happen under another schedule" /* what reports say of a prediction */

enum rf_kind {
#define RF_KIND(name, id, title, suppressed_by, rank, text) RF_K_##name,
#include "report/kinds.def"
#undef RF_KIND
    RF_KINDS
};

/* Flags of an access: those of guest/access.h. */
enum { RF_RA_WRITE = 1, RF_RA_ATOMIC = 2, RF_RA_VPTR = 4, RF_RA_FREE = 8, RF_RA_EXTERNAL = 16, RF_RA_VOLATILE = 32 };
/* Flags of a thread. */
enum { RF_RT_MAIN = 1, RF_RT_RUNNING = 2, RF_RT_FIBER = 4, RF_RT_ORPHAN = 8 /* nobody knows who created it */ };

enum rf_location_kind {
    RF_AT_NOWHERE,
    RF_AT_HEAP,
    RF_AT_FREED,
    RF_AT_GLOBAL,
    RF_AT_STACK,
    RF_AT_TLS,
    RF_AT_FD,
    RF_AT_LOCATIONS
};

struct rf_symbol;

struct rf_stack {
    uint64_t *pcs; /* return addresses, innermost first; in the runtime itself: where a function begins */
    uint32_t count, cap;
    struct rf_symbol *frames; /* report/symbols.h */
    uint32_t frame_count;
};

struct rf_rec_held {
    uint32_t lock;
    bool read;
};

struct rf_rec_access {
    uint64_t addr, size;
    uint32_t flags, thread;
    bool previous;
    struct rf_rec_held *held;
    uint32_t held_count, held_cap;
    struct rf_stack stack;
};

struct rf_rec_thread {
    uint32_t number, parent, flags;
    int32_t tid;
    char name[64];
    struct rf_stack stack; /* where it was created */
};

struct rf_rec_lock {
    uint32_t number;
    uint64_t addr;
    struct rf_stack created, taken;
    const char *name; /* of the variable, found by the reporter; NULL: it is none */
};

/* Of a circle of locks: `wanted` was wanted by a thread that held `held`. */
struct rf_rec_step {
    uint32_t held, wanted, thread;
    struct rf_stack wanted_at, held_at;
};

struct rf_rec_location {
    enum rf_location_kind kind;
    uint64_t addr, size;
    uint32_t thread; /* who allocated or freed it, opened it, whose stack it is */
    int32_t fd;
    char text[64]; /* the type of an external object */
    struct rf_stack stack;
    const char *name, *module; /* a global, and the file it is in */
    uint64_t offset;
};

struct rf_rec_module {
    uint64_t start, end, bias; /* addresses of its segments, and what was added to those of the file */
    bool runtime;
    char build_id[65];
    char *path;
};

/* The names of a place that a runtime of a language gave them to. */
struct rf_rec_name {
    uint64_t pc;
    uint32_t line;
    bool is_file; /* the text is; else it is the function */
    char text[256];
};

struct rf_record {
    enum rf_kind kind;
    bool predicted; /* the two did not race in this execution, as far as the detector knows */
    int32_t signal;
    uint32_t more; /* of the same kind, not shown */
    struct rf_rec_location location;
    struct rf_rec_access *accesses;
    struct rf_stack *stacks; /* of what is no access: where a mutex is misused, a handler calls */
    struct rf_rec_thread *threads;
    struct rf_rec_lock *locks;
    struct rf_rec_step *steps;
    struct rf_rec_module *modules;
    struct rf_rec_name *names;
    uint32_t name_count, name_cap;
    uint32_t access_count, access_cap, stack_count, stack_cap, thread_count, thread_cap, lock_count, lock_cap, step_count,
        step_cap, module_count, module_cap;
};

enum rf_message_type { RF_MESSAGE_HELLO, RF_MESSAGE_REPORT, RF_MESSAGE_FINISH };

struct rf_pair {
    char *name, *value;
};

struct rf_message {
    enum rf_message_type type;
    int32_t pid;
    bool resumed;          /* another reporter was lost: go on where it ended */
    struct rf_pair *pairs; /* options of a hello ("suppress" among them), counts of a finish */
    uint32_t pair_count, pair_cap;
    struct rf_record record;
};

extern const struct rf_kind_facts {
    const char *id, *title, *suppressed_by, *rank, *text;
} rf_kinds[RF_KINDS];
extern const char *const rf_location_names[RF_AT_LOCATIONS];

/* A whole message, its `end` included; `text` is changed. false: `error` says what is wrong with which line, and there is nothing to
 * free. */
bool rf_message_read(struct rf_message *message, char *text, size_t length, char error[160]);
void rf_message_free(struct rf_message *message);

const struct rf_rec_thread *rf_record_thread(const struct rf_record *record, uint32_t number);

#endif
