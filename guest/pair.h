/* The pair of sites that a run is about, as `redflag chase` hands it on in REDFLAG_CHASE (cli/chase.c).
 *
 * 1. NAME=VALUE with ';' between them. Of these `first` and `second` are lists of calls of hooks: for each module its build id (or '/'
 *    and the name of its file, if it has none), then '+' and an offset (sites/list.h) in hexadecimal, ascending, for each call;
 *    modules are separated by blanks.
 * 2. Set before there are threads, and read under the lock of guest/modules.c.
 */
#ifndef RF_GUEST_PAIR_H
#define RF_GUEST_PAIR_H

#include "sites/scan.h"

enum { RF_PAIR_FIRST = 1, RF_PAIR_SECOND = 2 };

/* Cuts a copy of the text into its settings, each told as it comes. */
void rf_pair_settings(const char *text, void (*take)(void *context, const char *name, const char *value), void *context);
void rf_pair_set(const char *first, const char *second);
bool rf_pair_is_set(void);

/* The calls of one module, asked for in ascending order. */
struct rf_pair_offsets {
    const char *text; /* "+1a2b+3c4d" and a blank, or the end */
    uint64_t next;    /* UINT64_MAX: no more */
};
struct rf_pair_module {
    char id[512];
    struct rf_pair_offsets offsets[2];
};
/* The module's own name in the form of 1; `path` is the loader's. */
void rf_pair_module_id(const struct rf_image *image, const char *path, char id[512]);
/* Those of a list in that form which are the module's. */
struct rf_pair_offsets rf_pair_offsets(const char *text, const struct rf_image *image, const char *name);
bool rf_pair_offsets_have(struct rf_pair_offsets *offsets, const struct rf_image *image, const struct rf_hook_call *call);
void rf_pair_module(struct rf_pair_module *module, const struct rf_image *image, const char *name);
/* Which of the two sites a call is, RF_PAIR_...; 0: none. */
unsigned rf_pair_role(struct rf_pair_module *module, const struct rf_image *image, const struct rf_hook_call *call);

/* -- guest/pair_calls.c: the runtime, for detectors that look at one pair -- */

/* Calls of hooks at other sites are taken out of the code. */
bool rf_pair_change(const struct rf_image *image, const char *name);
/* The role of the call that returns to `pc`. Any thread, any time. */
unsigned rf_pair_class(uintptr_t pc);

#endif
