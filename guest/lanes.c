#include "guest/lanes.h"

#include "guest/access.h"

#define INLINED inline __attribute__((always_inline))

/* Two cells. The compiler knows vectors, but does not make them of loops over eight words. */
typedef uint64_t two_cells __attribute__((vector_size(16)));
typedef int32_t four_halves __attribute__((vector_size(16)));
enum { TWOS = RF_GRANULE / 2 };

struct cells {
    union {
        uint64_t of[RF_GRANULE];
        two_cells two[TWOS];
    };
};

/* All bits of the cells whose bytes are in the mask. */
static INLINED two_cells bits_of(unsigned mask, unsigned i)
{
    four_halves bits = { 1 << 2 * i, 1 << 2 * i, 2 << 2 * i, 2 << 2 * i }, all = { (int)mask, (int)mask, (int)mask, (int)mask };
    return (two_cells)((all & bits) == bits);
}

/* What the cells are with what the word says (invariant 2). */
static INLINED void present_cells(uint64_t word, const uint64_t *lane, struct cells *cells)
{
    const two_cells *twos = (const two_cells *)__builtin_assume_aligned(lane, 64);
    uint32_t y = RF_WORD_Y(word);
    struct rf_masks masks = y ? rf_word_masks(word) : (struct rf_masks){ 0, 0 };
    two_cells moment = { rf_cell_of_write(y), rf_cell_of_write(y) }, reads = { UINT32_MAX, UINT32_MAX };
    for (unsigned i = 0; i < TWOS; i++) {
        two_cells replaced = bits_of(masks.written, i) | (bits_of(masks.read, i) & reads);
        cells->two[i] = (twos[i] & ~replaced) | (moment & replaced);
    }
}

/* Who looks without the lock looks for moments of his own, each in one half of a cell: no more than that has to be written at once. */
static INLINED void put_cells(uint64_t *lane, const struct cells *cells)
{
    two_cells *twos = (two_cells *)__builtin_assume_aligned(lane, 64);
    for (unsigned i = 0; i < TWOS; i++)
        twos[i] = cells->two[i];
}

uint64_t rf_lanes_settled(uint64_t *place)
{
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    struct cells cells;
    do {
        next = RF_WORD(0, 0, RF_WORD_X(word));
        if (!rf_word_has_lanes(word) || word == next)
            return word;
    } while (!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    uint64_t *lane = rf_lane_at(RF_WORD_X(word));
    present_cells(word, lane, &cells);
    put_cells(lane, &cells);
    return next;
}

unsigned rf_lanes_spread(uint64_t word, uint64_t *list)
{
    struct cells cells;
    unsigned count = 0;
    present_cells(word, rf_lane_at(RF_WORD_X(word)), &cells);
    for (unsigned i = 0; i < RF_GRANULE; i++) {
        uint64_t slice = RF_WORD(1u << i, (uint32_t)cells.of[i], (uint32_t)(cells.of[i] >> 32));
        unsigned same = 0;
        while (same < count && (list[same] ^ slice) << 8)
            same++;
        list[same] = same < count ? list[same] | slice : slice;
        count += same == count;
    }
    return count;
}

uint64_t rf_lanes_put(struct rf_stripe *stripe, uint64_t old, const uint64_t *list, unsigned count)
{
    struct cells cells = { .of = { 0 } };
    uint32_t name = rf_word_has_lanes(old) ? RF_WORD_X(old) : rf_lane_new(stripe);
    if (__builtin_expect(!name, 0))
        return 0;
    for (unsigned i = 0; i < count; i++)
        for (unsigned mask = RF_WORD_M(list[i]); mask; mask &= mask - 1)
            cells.of[__builtin_ctz(mask)] = (uint64_t)RF_WORD_X(list[i]) << 32 | RF_WORD_Y(list[i]);
    put_cells(rf_lane_at(name), &cells);
    return RF_WORD(0, 0, name);
}

void rf_lanes_leave(struct rf_stripe *stripe, uint64_t *place, const uint64_t *lane)
{
    uint32_t w = (uint32_t)(lane[0] >> 32), r = (uint32_t)lane[0];
    for (unsigned i = 1; i < RF_GRANULE; i++)
        if (lane[i] != lane[0])
            return;
    uint32_t name = RF_WORD_X(*place);
    __atomic_store_n(place, w == r ? RF_WORD(0xff, w, 0) | RF_WRITES_BIT : RF_WORD(0xff, r, w), __ATOMIC_RELEASE);
    rf_lane_end(stripe, name);
}

/* The bytes whose cells name nothing that does not happen before the step. Nearly always it is the thread's own, of earlier epochs: both halves
 * of all at one look. */
static INLINED unsigned ordered_bytes(const struct cells *cells, const struct rf_step *step)
{
    uint64_t own = rf_cell_of_write(step->self->block_end - 1), known = 0;
    two_cells owns = { own, own }, foreign = { 0, 0 };
    for (unsigned i = 0; i < TWOS; i++)
        foreign |= cells->two[i] ^ owns;
    if (!((foreign[0] | foreign[1]) & RF_BLOCKS_OF_CELL))
        return 0xff;
    unsigned ordered = 0;
    bool is = true; /* of 0, which is "never" */
    for (unsigned i = 0; i < RF_GRANULE; i++) {
        uint64_t cell = cells->of[i];
        uint32_t w = (uint32_t)(cell >> 32), r = (uint32_t)cell;
        if (cell != known) /* those of neighbours are often equal */
            is = rf_step_ordered(step, w) && (r == w || rf_step_ordered(step, r));
        known = cell;
        ordered |= (unsigned)is << i;
    }
    return ordered;
}

/* What X is after an access to these bytes: the lanes, or the one cell that is left beside it. */
static INLINED uint32_t x_beside(const struct cells *cells, uint32_t name, unsigned mask, bool writes)
{
    unsigned beside = mask == 0xff ? mask : ~mask & 0xff;
    uint64_t rest = cells->of[__builtin_ctz(beside)], last = cells->of[31 - __builtin_clz(beside)];
    if (mask == 0xff ? (rest ^ last) >> 32 : rest != last) /* nearly always */
        return name;
    two_cells rests = { rest, rest }, others = { 0, 0 }, writers = { UINT64_MAX << 32, UINT64_MAX << 32 };
    if (mask != 0xff && (uint32_t)rest != rest >> 32) /* it would need a pair, and would soon be back */
        return name;
    for (unsigned i = 0; i < TWOS; i++) { /* a read leaves the last writes of its own bytes, too */
        two_cells left = ~bits_of(mask, i);
        others |= (cells->two[i] ^ rests) & (writes ? left : left | writers);
    }
    return others[0] | others[1] ? name : (uint32_t)(rest >> 32);
}

/* The epoch comes back to bytes of a granule that it has to do with, or the thread had in the last one. */
static INLINED bool comes_back(uint64_t word, bool writes)
{
    return rf_lanes_epoch_is_long() && (RF_WORD_Y(word) ? rf_word_masks(word).written : writes);
}

/* With the stripe's lock. */
static INLINED bool enter(struct rf_stripe *stripe, uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step)
{
    uint32_t name = RF_WORD_X(word), y = RF_WORD_Y(word);
    uint64_t *lane = rf_lane_at(name), next = RF_WORD(0, 0, name);
    bool writes = step->flags & RF_A_WRITE;
    struct cells cells;
    present_cells(word, lane, &cells);
    unsigned ordered = ordered_bytes(&cells, step);
    if (mask & ~ordered)
        return false;
    bool again = rf_moment_is_hot(y);
    if (again && writes && (rf_word_masks(word).written | mask) == 0xff) { /* the last bytes that Y has not written */
        next = RF_WORD(0xff, y, 0) | RF_WRITES_BIT;
        if (y != step->now)
            rf_nearby_put(step->self, place, mask, y, rf_moment_note_beside(step->now, y));
    } else if (__builtin_expect(ordered == 0xff && (mask == 0xff || (!again && comes_back(word, writes))), 1)) {
        uint32_t x = mask == 0xff && writes ? 0 : x_beside(&cells, name, mask, writes);
        next = RF_WORD(mask, step->now, x) | (writes ? RF_WRITES_BIT : 0);
    } else { /* others are here, too, or Y cannot say it (rf_lanes_join): each byte by itself */
        for (unsigned i = 0; i < RF_GRANULE; i++)
            if (mask >> i & 1)
                cells.of[i] = writes ? rf_cell_of_write(step->now) : (cells.of[i] & UINT64_MAX << 32) | step->now;
    }
    if (rf_moment_is_own(step->self, y) || !y) /* nobody else replaces it (invariant 5) */
        __atomic_store_n(place, next, __ATOMIC_RELEASE);
    else if (!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    if (rf_word_has_lanes(next))
        put_cells(lane, &cells);
    else
        rf_lane_end(stripe, name);
    return true;
}

bool rf_lanes_enter(uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step)
{
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    bool entering = __atomic_load_n(place, __ATOMIC_RELAXED) == word && enter(stripe, place, word, mask, step);
    rf_spin_unlock(&stripe->lock);
    return entering;
}

bool rf_lanes_step(uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step)
{
    unsigned first = (unsigned)__builtin_ctz(mask), bytes = mask >> first;
    if (__builtin_expect(bytes & (bytes + 1), 0)) /* they do not lie together */
        return false;
    return rf_lanes_step_on(place, word, first, 32 - (unsigned)__builtin_clz(bytes), step);
}
