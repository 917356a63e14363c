/* Granules in lanes: a cell for each byte, in one line of the cache. What has no form as a word, and is plain, is in lanes: granules whose
 * bytes were accessed apart, in several epochs.
 *
 * 1. A cell is FastTrack's: W << 32 | R, moments; R repeats W when there was no read since; 0 is "never". There are no sets: bytes that two
 *    threads read at the same time, or that were accessed atomically, make a record (guest/units.h) of the granule.
 * 2. Cells are changed with the stripe's lock. Without it a thread looks for moments of its own present epoch, as in all units
 *    (guest/units.h, 2).
 * 3. Bytes whose cells are all equal need no lanes: the step that makes them so, of the last byte or with it, makes a word again.
 * 4. Only FastTrack and AccuLock (guest/accu_units.h) by compare-and-swap have lanes: the other policies, and MultiLock-HB, have records
 *    instead; and so have all when lanes run out, which are 8 GiB.
 */
#ifndef RF_GUEST_LANES_H
#define RF_GUEST_LANES_H

#include "guest/granule.h"

/* An access of step->now, which is neither atomic nor passes; the word had lanes. It is done if its bytes lie together and all that it
 * meets happens before it: [FT' READ EXCL], [FT' WRITE EXCL]. false: nothing was done. */
bool rf_lanes_step(uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step);

/* All of these bytes were accessed in the calling thread's present epoch. No lock needed, but the word must be looked at again. */
static inline __attribute__((always_inline)) bool rf_lanes_repeat_on(uint64_t word, unsigned first, unsigned count, bool writes)
{
    const uint64_t *cells = rf_lane_at(RF_WORD_X(word)) + first;
    for (unsigned i = 0; i < count; i++) {
        uint64_t cell = __atomic_load_n(&cells[i], __ATOMIC_RELAXED);
        if (!rf_moment_is_hot((uint32_t)(writes ? cell >> 32 : cell)))
            return false;
    }
    return true;
}

/* The same for a mask of bytes that lie together, as those of an access do. */
static inline bool rf_lanes_repeat(uint64_t word, unsigned mask, bool writes)
{
    unsigned first = (unsigned)__builtin_ctz(mask), end = 32 - (unsigned)__builtin_clz(mask);
    return rf_lanes_repeat_on(word, first, end - first, writes);
}

/* Plain slices in the form of a record, none with a set, go into lanes: those of the word before if it has some. Bytes that none has were
 * never accessed. With the stripe's lock. Returns the word; 0: there are no lanes left. */
uint64_t rf_lanes_put(struct rf_stripe *stripe, uint64_t old, const uint64_t *list, unsigned count);

/* Invariant 3: a word again, if all cells are equal. The lock is held: nobody else replaces the word. */
void rf_lanes_leave(struct rf_stripe *stripe, uint64_t *place, const uint64_t *lane);

/* And back: equal cells are one slice. Returns how many there are. */
unsigned rf_lanes_spread(uint64_t word, uint64_t *list);

#define RF_BLOCKS_OF_CELL (~((uint64_t)(RF_MOMENT_BLOCK - 1) << 32 | (RF_MOMENT_BLOCK - 1)))

/* All that the cell names happens before the step. Nearly always it is the thread's own, of earlier epochs: both halves at one look. */
static inline bool rf_lanes_ordered(uint64_t cell, uint64_t own, const struct rf_step *step)
{
    if (!((cell ^ own) & RF_BLOCKS_OF_CELL))
        return true;
    uint32_t w = (uint32_t)(cell >> 32), r = (uint32_t)cell;
    return rf_step_ordered(step, w) && (r == w || rf_step_ordered(step, r));
}

/* The step on so many cells, a number that the compiler knows where they are all. false: nothing was done. */
static inline __attribute__((always_inline)) bool rf_lanes_step_cells(uint64_t *cells, unsigned count, const struct rf_step *step)
{
    uint64_t own = (uint64_t)(step->self->block_end - 1) << 32 | (step->self->block_end - 1), foreign = 0, known = 0;
    for (unsigned i = 0; i < count; i++)
        foreign |= cells[i] ^ own;
    bool ordered = true;
    for (unsigned i = 0; (foreign & RF_BLOCKS_OF_CELL) && ordered && i < count; i++) { /* those of neighbours are often equal */
        ordered = cells[i] == known || rf_lanes_ordered(cells[i], own, step);
        known = cells[i];
    }
    uint64_t written = step->flags & RF_A_WRITE ? (uint64_t)step->now << 32 : 0, kept = written ? 0 : UINT64_MAX << 32;
    for (unsigned i = 0; ordered && i < count; i++)
        __atomic_store_n(&cells[i], (cells[i] & kept) | written | step->now, __ATOMIC_RELAXED);
    return ordered;
}

/* rf_lanes_step() on the bytes from `first` on. */
static inline __attribute__((always_inline)) bool rf_lanes_step_on(uint64_t *place, uint64_t word, unsigned first, unsigned count,
                                                                   const struct rf_step *step)
{
    uint64_t *lane = rf_lane_at(RF_WORD_X(word));
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    bool stepped = __atomic_load_n(place, __ATOMIC_RELAXED) == word && rf_lanes_step_cells(lane + first, count, step);
    if (stepped && first + count == RF_GRANULE && __builtin_expect(lane[0] == lane[RF_GRANULE - 1], 0))
        rf_lanes_leave(stripe, place, lane);
    rf_spin_unlock(&stripe->lock);
    return stepped;
}

#endif
