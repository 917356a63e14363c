/* Memory of the simulator in large pages, where the system has them: its caches and its records are looked up all over the place, and
 * with pages of four kilobytes every second look would have to walk the page tables.
 *
 * 1. What is taken is zero, and begins at a line of 64 bytes.
 * 2. Pieces of RF_LARGE_PIECE bytes, which is what core/memory.h asks for most of the time, are cut from larger maps and are kept
 *    for the next simulation when they are given back. Anything from RF_LARGE_MAP bytes on is a map of its own.
 * 3. One thread makes and ends simulations: nothing here is locked.
 */
#ifndef RF_HARDWARE_LARGE_H
#define RF_HARDWARE_LARGE_H

#include "core/memory.h"

#define RF_LARGE_PIECE (RF_PIECE + sizeof(struct rf_piece))
#define RF_LARGE_MAP ((size_t)1 << 20)

void *rf_large_take(size_t bytes);
void rf_large_give(void *memory, size_t bytes);

#endif
