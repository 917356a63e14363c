/* Results that the store could not take yet: a file of lines, one JSON object each, applied and emptied when the store is there again.
 *
 * 1. A line is whole and on the disk when rf_spool_add() has answered true; processes that add at once do so under a lock of the file.
 * 2. A line that was cut off by a crash is passed over, and said. It was never acknowledged.
 * 3. A line that the store refuses, since it makes no sense, goes to a file beside it, PATH.refused, and does not hold up the others.
 * 4. The file is emptied only after the store has acknowledged all of it, under the same lock.
 */
#ifndef RF_FLEET_SPOOL_H
#define RF_FLEET_SPOOL_H

#include "fleet/store.h"

/* REDFLAG_SPOOL, or redflag/spool.jsonl in the user's state directory. The result is allocated. */
char *rf_spool_place(void);

/* `line` has no newline. False: a line in error says why. */
bool rf_spool_add(const char *path, const char *line, char error[512]);

struct rf_spooled {
    uint64_t applied, damaged, refused;
};

/* RF_STORE_DONE also if there is no such file. keep: it is left as it is. */
enum rf_store_answer rf_spool_merge(struct rf_store *store, const char *path, bool keep, struct rf_spooled *count,
                                    char error[512]);

#endif
