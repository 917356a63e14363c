/* The options of `redflag run`, gathered into the text that the runtime reads from REDFLAG_OPTIONS. */
#ifndef RF_CLI_RUN_OPTIONS_H
#define RF_CLI_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* What `redflag run` gives to a program that has no limit on its stack. */
#define RF_STACK_LIMIT (256ul << 20)

struct rf_run_text {
    char *text; /* NAME=VALUE:NAME=VALUE, quoted where it must be; NULL: none yet. The caller frees it */
    size_t length;
};

/* Does an argument begin an option of core/run_options.def? If so it is appended, and *used tells how many arguments it took. A value
 * that is none gets one line, and *used is 0. `who` begins that line. */
bool rf_run_option(struct rf_run_text *text, const char *who, char **arguments, int count, int *used);
void rf_run_text_add(struct rf_run_text *text, const char *options); /* options as they would stand in the variable */
/* Lists them; `without`: names that the command has explained itself, NULL behind them, or NULL. */
void rf_run_options_help(const char *const *without);

#endif
