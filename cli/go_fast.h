/* Hooks that need no call into C: see cli/go_fast.c. */
#ifndef RF_CLI_GO_FAST_H
#define RF_CLI_GO_FAST_H

#include <stdbool.h>
#include <stdio.h>

/* Go's own file, with our instructions in it; false, and nothing is written, if it is not of the form that is known. */
bool rf_go_fast(const char *source, FILE *out);

#endif
