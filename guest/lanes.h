/* Granules in lanes: a cell for each byte, in one line of the cache. What has no form as a word, and is plain, is in lanes: granules whose
 * bytes were accessed apart, in several epochs.
 *
 * 1. A cell is FastTrack's: W << 32 | R, moments; R repeats W when there was no read since; 0 is "never". There are no sets: bytes that two
 *    threads read at the same time, or that were accessed atomically, make a record (guest/units.h) of the granule.
 * 2. The word's X names the lanes. What its Y and M say of bytes came later than their cells, which do not count then; so an epoch that
 *    accesses a granule again and again looks at its lanes once. Such a word is made only when all that all eight cells name happens
 *    before Y: what its thread does next in the same epoch meets nothing there.
 * 3. Cells are changed with the stripe's lock, and after the word: nobody believes cells that the word in their place does not vouch for. Without
 *    the lock a thread looks for moments of its own present epoch, as in all units (guest/units.h, 2). It finds none that others
 *    have come after: who makes a word with Y has waited for a release of that thread, with which its epoch ended.
 * 4. Bytes whose cells are all equal need no lanes: the step that makes them so, of the last byte or with it, makes a word again.
 * 5. Whose epoch Y is of may replace the word without the lock, by compare-and-swap, by one that names the same lanes and has the same Y. So who
 *    has the lock, and wants the word to stay what it is, settles it first: Y goes into the cells.
 * 6. Only FastTrack and AccuLock (guest/accu_units.h) by compare-and-swap have lanes: the other policies, and MultiLock-HB, have records
 *    instead; and so have all when lanes run out, which are 512 MiB. AccuLock's words have no Y.
 */
#ifndef RF_GUEST_LANES_H
#define RF_GUEST_LANES_H

#include "guest/granule.h"
#include "guest/nearby.h"

/* An access of step->now, which is neither atomic nor passes; the word had lanes. It is done if its bytes lie together and all that it
 * meets happens before it: [FT' READ EXCL], [FT' WRITE EXCL]. false: nothing was done. */
bool rf_lanes_step(uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step);

/* The same where the bytes are known to lie together: an access that is worth a look at all cells, or one that rf_lanes_join() cannot make. */
bool rf_lanes_enter(uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step);

/* The word that is there; if it has lanes then one without Y, which only who has the stripe's lock can replace. With that lock, or the world
 * stopped. */
uint64_t rf_lanes_settled(uint64_t *place);

/* Plain slices in the form of a record, none with a set, go into lanes: those of the word before if it has some. Bytes that none has were
 * never accessed. With the stripe's lock. Returns the word; 0: there are no lanes left. */
uint64_t rf_lanes_put(struct rf_stripe *stripe, uint64_t old, const uint64_t *list, unsigned count);

/* Invariant 4, of a word that is settled: a word again, if all cells are equal. The lock is held: nobody else replaces the word. */
void rf_lanes_leave(struct rf_stripe *stripe, uint64_t *place, const uint64_t *lane);

/* And back: equal cells are one slice. Returns how many there are. */
unsigned rf_lanes_spread(uint64_t word, uint64_t *list);

/* All of these bytes were accessed in the calling thread's present epoch. No lock needed, but the word must be looked at again. If Y is of this
 * epoch, what it does not say is most likely new, and lanes are far away: there is no look at them. */
static inline __attribute__((always_inline)) bool rf_lanes_repeat(uint64_t word, unsigned mask, bool writes)
{
    if (rf_moment_is_hot(RF_WORD_Y(word))) {
        struct rf_masks masks = rf_word_masks(word);
        return !(mask & ~(unsigned)(writes ? masks.written : masks.written | masks.read));
    }
    const uint64_t *cells = rf_lane_at(RF_WORD_X(word));
    for (unsigned i = (unsigned)__builtin_ctz(mask); mask >> i; i++) { /* they lie together */
        uint64_t cell = __atomic_load_n(&cells[i], __ATOMIC_RELAXED);
        if (!rf_moment_is_hot((uint32_t)(writes ? cell >> 32 : cell)))
            return false;
    }
    return true;
}

/* An access to more bytes in the epoch of Y: they meet nothing (invariant 2), and the word alone is changed. The thread is busy. false: it cannot
 * say so. */
static inline __attribute__((always_inline)) bool rf_lanes_join(uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step)
{
    uint32_t y = RF_WORD_Y(word);
    bool writes = step->flags & RF_A_WRITE;
    if (!rf_moment_is_hot(y))
        return false;
    struct rf_masks masks = rf_word_masks(word);
    unsigned written = writes ? masks.written | mask : masks.written, read = (writes ? masks.read : masks.read | mask) & ~written;
    uint64_t next;
    if (written == 0xff || !rf_word_of(y, RF_WORD_X(word), written, read, &next)) /* of all bytes: then lanes are not needed any more */
        return false;
    if (next == word)
        return true;
    if (!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    if (y != step->now)
        rf_nearby_put(step->self, place, mask, y, rf_moment_note_beside(step->now, y));
    return true;
}

#define RF_BLOCKS_OF_CELL (~((uint64_t)(RF_MOMENT_BLOCK - 1) << 32 | (RF_MOMENT_BLOCK - 1)))

/* A cell that was written and not read since. */
static inline __attribute__((always_inline)) uint64_t rf_cell_of_write(uint32_t moment)
{
    return (uint64_t)moment << 32 | moment;
}

/* The step on so many cells, a number that the compiler knows where they are all, of a word without Y. With the stripe's lock. false: nothing was
 * done. */
static inline __attribute__((always_inline)) bool rf_lanes_step_cells(uint64_t *cells, unsigned count, const struct rf_step *step)
{
    uint64_t own = rf_cell_of_write(step->self->block_end - 1), foreign = 0, known = 0;
    bool ordered = true, writes = step->flags & RF_A_WRITE;
    for (unsigned i = 0; i < count; i++)
        foreign |= cells[i] ^ own;
    for (unsigned i = 0; (foreign & RF_BLOCKS_OF_CELL) && ordered && i < count; i++) { /* those of neighbours are often equal */
        uint32_t w = (uint32_t)(cells[i] >> 32), r = (uint32_t)cells[i];
        ordered = cells[i] == known || (rf_step_ordered(step, w) && (r == w || rf_step_ordered(step, r)));
        known = cells[i];
    }
    for (unsigned i = 0; ordered && i < count; i++)
        __atomic_store_n(&cells[i], writes ? rf_cell_of_write(step->now) : (cells[i] & UINT64_MAX << 32) | step->now, __ATOMIC_RELAXED);
    return ordered;
}

#ifndef RF_LONG_EPOCH /* tests have fewer */
#define RF_LONG_EPOCH 64
#endif

/* It has so many moments that it is likely to go on for a while. */
static inline bool rf_lanes_epoch_is_long(void)
{
    return rf_hot.span >= RF_LONG_EPOCH;
}

/* rf_lanes_step() on the bytes from `first` on. Epochs come back to what they read as a whole, and to what they write, if they are not over soon:
 * that is worth a Y. What else they read is more than they come back to: their cells change, and the word's line of the cache, which it shares with
 * others, does not. */
static inline __attribute__((always_inline)) bool rf_lanes_step_on(uint64_t *place, uint64_t word, unsigned first, unsigned count,
                                                                   const struct rf_step *step)
{
    unsigned mask = ((1u << count) - 1) << first;
    if (RF_WORD_Y(word))
        return rf_lanes_join(place, word, mask, step) || rf_lanes_enter(place, word, mask, step);
    if (count == RF_GRANULE || (step->flags & RF_A_WRITE && rf_lanes_epoch_is_long()))
        return rf_lanes_enter(place, word, mask, step);
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    bool stepped = __atomic_load_n(place, __ATOMIC_RELAXED) == word &&
                   rf_lanes_step_cells(rf_lane_at(RF_WORD_X(word)) + first, count, step);
    rf_spin_unlock(&stripe->lock);
    return stepped;
}

#endif
