/* Files of Go that are a little different in programs with our detector, to be faster: see cli/go_fast.c. */
#ifndef RF_CLI_GO_FAST_H
#define RF_CLI_GO_FAST_H

#include <stdbool.h>
#include <stdio.h>

/* Go's own file, changed; false, and nothing is written, if it is not of the form that is known. */
bool rf_go_fast_hooks(const char *source, FILE *out); /* src/runtime/race_amd64.s */
bool rf_go_fast_mutex(const char *source, FILE *out); /* src/sync/mutex.go */
bool rf_go_fast_map(const char *source, FILE *out);   /* src/runtime/map.go, and those that begin with map_fast: cli/go_maps.c */

#endif
