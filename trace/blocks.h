/* Which stretches of memory a trace has allocated, and which of them it has freed since.
 *
 * 1. Stretches do not overlap. One that was never allocated is not kept: nothing is known about it.
 * 2. They are a treap: a search tree by address, a heap by random priority, so it stays shallow whatever the trace does.
 */
#ifndef RF_TRACE_BLOCKS_H
#define RF_TRACE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/random.h"

struct rf_blocks {
    struct rf_block *root;
    struct rf_random random;
};

void rf_blocks_free(struct rf_blocks *blocks);
/* Makes all of [start, end) live, or freed, whatever it was. */
void rf_blocks_set(struct rf_blocks *blocks, uint64_t start, uint64_t end, bool freed);
/* Is any byte of [start, end) in this state? */
bool rf_blocks_any(const struct rf_blocks *blocks, uint64_t start, uint64_t end, bool freed);

#endif
