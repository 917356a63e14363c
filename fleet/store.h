/* What the runs of many processes on many machines know together: pairs of sites, runs, races, builds (doc/fleet.md).
 *
 * 1. A pair is leased to at most one run at a time. A lease has an end; a run that never comes back gives its pair back by that.
 * 2. A result is one JSON object, the same in the store's door and in a spool file. To apply it twice is to apply it once: everything
 *    in it is known by a name that its maker chose (the run's id, the race's fingerprint, the pair's two sites).
 * 3. RF_STORE_DONE means that it is on the disk of the store. Otherwise nothing of it is there.
 * 4. A connection that was lost is made again, for as long as the store is patient; only then is the answer "out of reach".
 * 5. The schema has a version. An older one is brought up to date on opening, a newer one is refused.
 */
#ifndef RF_FLEET_STORE_H
#define RF_FLEET_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct rf_store;

enum rf_store_answer {
    RF_STORE_DONE,
    RF_STORE_NOTHING,      /* there is no pair to lease */
    RF_STORE_OUT_OF_REACH, /* may succeed later: spool it (fleet/spool.h) */
    RF_STORE_WRONG
};

struct rf_leased {
    char first[256], second[256]; /* sites */
    uint64_t runs;                /* that have looked at it before */
};

/* NULL: REDFLAG_STORE, or redflag/store.db in the user's data directory. The result is allocated. */
char *rf_store_place(const char *where);

/* NULL with *answer and a line in error. patience: seconds that a lost connection is tried for. */
struct rf_store *rf_store_open(const char *where, double patience, enum rf_store_answer *answer, char error[512]);
void rf_store_close(struct rf_store *store);
const char *rf_store_error(const struct rf_store *store);
uint32_t rf_store_version(void);

/* The next pair for a run: unconfirmed, of this build if it is not NULL, the highest priority first, then the one that fewest runs have
 * looked at. Pairs whose sites have names without a build, as FILE:LINE, are of any. The run's id is new for each lease; asking again
 * with the same one answers the same, and begins the lease anew. */
enum rf_store_answer rf_store_lease(struct rf_store *store, const char *run, const char *build, double seconds,
                                    struct rf_leased *pair);
/* The run will not look at it after all: it does not count, unless it begins again. */
enum rf_store_answer rf_store_give_back(struct rf_store *store, const char *run);

/* One result or an array of them, all or nothing. */
enum rf_store_answer rf_store_apply(struct rf_store *store, const json_t *results);

/* Everything, as lines that rf_store_apply() takes. */
enum rf_store_answer rf_store_export(struct rf_store *store, FILE *out);

/* Rows of a question, as arrays of texts. `question` is one of ours. */
enum rf_store_answer rf_store_ask(struct rf_store *store, const char *question, unsigned count, const char *const *values,
                                  json_t **rows);

#endif
