/* Names of cells: what X of a word (guest/hot.h, 2) says of its bytes, a last write and a last read, in 27 bits.
 *
 * 1. A name is a moment, in which the bytes were written and not read since, or a pair of two, the last write and the last read. Pairs have
 *    names beyond those of moments, from RF_PAIRS_FIRST on (guest/hot.h), and lie where others have note and locks. Beyond these are the
 *    names of lanes (guest/lanes.h), of which no function here is asked.
 * 2. A pair never changes and stays until a sweep finds that no word names it; moments that it names stay as well. It is there before a
 *    word names it. So whoever is busy may look into one without a lock.
 * 3. Granules that are walked through together share a pair: a table finds those that were made last. Two pairs may say the same.
 * 4. Only the policy of compare-and-swap has pairs. When names are scarce there are none, too: the caller does
 *    without (a record).
 */
#ifndef RF_GUEST_CELLS_H
#define RF_GUEST_CELLS_H

#include "guest/moments.h"

struct rf_pair {
    uint32_t w, r;
};

_Static_assert(sizeof(struct rf_pair) == sizeof(struct rf_noted), "one takes the place of the other");

static inline struct rf_pair *rf_pair_at(uint32_t name)
{
    return (struct rf_pair *)RF_NOTES + name;
}

static inline bool rf_cell_is_pair(uint32_t name)
{
    return name - RF_PAIRS_FIRST < RF_PAIRS_END - RF_PAIRS_FIRST;
}

static inline uint32_t rf_cell_w(uint32_t name)
{
    return __builtin_expect(rf_cell_is_pair(name), 0) ? rf_pair_at(name)->w : name;
}

static inline uint32_t rf_cell_r(uint32_t name)
{
    return __builtin_expect(rf_cell_is_pair(name), 0) ? rf_pair_at(name)->r : name;
}

/* The name of bytes that were last written in w and last read in r. The calling thread is busy. 0: there is none to be had. */
uint32_t rf_cell_named(uint32_t w, uint32_t r);

/* For sweeps, the world stopped: all pairs may get other names. */
void rf_cells_forget(void);

#endif
