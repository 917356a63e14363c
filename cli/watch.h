/* What `redflag chase --store` has of `redflag watch`: the next pair of the store is leased, the program chased for it, and what was found
 * brought back. The exit status is 66 if there was a race, that of the program otherwise. */
#ifndef RF_CLI_WATCH_H
#define RF_CLI_WATCH_H

#include <stddef.h>

/* store: "" is the usual one. options: of chase, as they were given. */
int rf_watch_chase(const char *store, char **options, size_t count, char **program);

#endif
