/* The options of this run (core/run_options.def), read once at the start. */
#ifndef RF_GUEST_OPTIONS_H
#define RF_GUEST_OPTIONS_H

#include <stdbool.h>

struct rf_run_options {
#define RF_BOOL(name, value, help) bool name;
#define RF_INT(name, value, help) int name;
#define RF_TEXT(name, value, help) const char *name;
#include "core/run_options.def"
#undef RF_BOOL
#undef RF_INT
#undef RF_TEXT
};

extern struct rf_run_options rf_options;

/* Defaults, then __tsan_default_options(), then TSAN_OPTIONS, then REDFLAG_OPTIONS: the last one counts. An unknown name, or a value
 * that is none, ends the program with one line that says which and where. `environment` is the block that the kernel gave. */
void rf_options_read(char **environment);
double rf_share_of(const char *text); /* "0.01", "1", "3%"; anything else ends the program */
char *rf_environment(char **environment, const char *name);

#endif
