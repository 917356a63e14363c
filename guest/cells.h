/* Names of cells: what X of a word (guest/hot.h, 2) says of its bytes, a last write and a last read, in 27 bits.
 *
 * 1. A name is a moment, in which the bytes were written and not read since, or a pair of two, the last write and the last read. Pairs have
 *    names among those of moments: blocks of their own (RF_PAIRS in guest/moments.h), and lie where others have note and locks.
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
    uint32_t w;
    uint32_t marked_r; /* what lies there for a moment, locks, is never that large: hooks tell a pair by it */
};

#define RF_PAIR_MARK (UINT32_C(1) << RF_PAIR_MARK_BIT)

_Static_assert(sizeof(struct rf_pair) == sizeof(struct rf_noted), "one takes the place of the other");

static inline struct rf_pair *rf_pair_at(uint32_t name)
{
    return (struct rf_pair *)RF_NOTES + name;
}

static inline bool rf_cell_is_pair(uint32_t name)
{
    return rf_moment_blocks[name >> RF_MOMENT_BLOCK_BITS].first == RF_PAIRS;
}

static inline uint32_t rf_cell_w(uint32_t name)
{
    return __builtin_expect(rf_cell_is_pair(name), 0) ? rf_pair_at(name)->w : name;
}

static inline uint32_t rf_cell_r(uint32_t name)
{
    return __builtin_expect(rf_cell_is_pair(name), 0) ? rf_pair_at(name)->marked_r & ~RF_PAIR_MARK : name;
}

/* The name of bytes that were last written in w and last read in r. The calling thread is busy. 0: there is none to be had. */
uint32_t rf_cell_named(uint32_t w, uint32_t r);

/* For sweeps, the world stopped: all pairs may get other names; so many blocks have some that are in use. */
void rf_cells_forget(void);
void rf_cells_keep(uint32_t blocks);

#endif
