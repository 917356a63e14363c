#include "guest/lanes.h"

#include "guest/access.h"

#define BLOCKS_OF_CELL (~((uint64_t)(RF_MOMENT_BLOCK - 1) << 32 | (RF_MOMENT_BLOCK - 1)))

unsigned rf_lanes_spread(uint64_t word, uint64_t *list)
{
    const uint64_t *lane = rf_lane_at(RF_WORD_X(word));
    unsigned count = 0;
    for (unsigned i = 0; i < RF_GRANULE; i++) {
        uint64_t slice = RF_WORD(1u << i, (uint32_t)lane[i], (uint32_t)(lane[i] >> 32));
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
    uint64_t cells[RF_GRANULE] = { 0 };
    uint32_t number = rf_word_has_lanes(old) ? RF_WORD_X(old) : rf_lane_new(stripe);
    uint64_t *lane = rf_lane_at(number);
    if (__builtin_expect(!number, 0))
        return 0;
    for (unsigned i = 0; i < count; i++)
        for (unsigned mask = RF_WORD_M(list[i]); mask; mask &= mask - 1)
            cells[__builtin_ctz(mask)] = (uint64_t)RF_WORD_X(list[i]) << 32 | RF_WORD_Y(list[i]);
    for (unsigned i = 0; i < RF_GRANULE; i++)
        __atomic_store_n(&lane[i], cells[i], __ATOMIC_RELAXED);
    return RF_LANES_WORD | number;
}

/* All that the cell names happens before the step. Nearly always it is the thread's own, of earlier epochs: both halves at one look. */
static inline bool cell_ordered(uint64_t cell, uint64_t own, const struct rf_step *step)
{
    if (!((cell ^ own) & BLOCKS_OF_CELL))
        return true;
    uint32_t w = (uint32_t)(cell >> 32), r = (uint32_t)cell;
    return rf_step_ordered(step, w) && (r == w || rf_step_ordered(step, r));
}

void rf_lanes_leave(struct rf_stripe *stripe, uint64_t *place, const uint64_t *lane)
{
    uint32_t w = (uint32_t)(lane[0] >> 32), r = (uint32_t)lane[0];
    for (unsigned i = 1; i < RF_GRANULE; i++)
        if (lane[i] != lane[0])
            return;
    uint32_t number = RF_WORD_X(*place);
    __atomic_store_n(place, w == r ? RF_WORD(0xff, w, 0) | RF_WRITES_BIT : RF_WORD(0xff, r, w), __ATOMIC_RELEASE);
    rf_lane_end(stripe, number);
}

/* The step on so many cells, a number that the compiler knows where they are all. false: nothing was done. */
static inline __attribute__((always_inline)) bool step_cells(uint64_t *cells, unsigned count, const struct rf_step *step)
{
    uint64_t own = (uint64_t)(step->self->block_end - 1) << 32 | (step->self->block_end - 1), foreign = 0, known = 0;
    for (unsigned i = 0; i < count; i++)
        foreign |= cells[i] ^ own;
    bool ordered = true;
    for (unsigned i = 0; (foreign & BLOCKS_OF_CELL) && ordered && i < count; i++) { /* those of neighbours are often equal */
        ordered = cells[i] == known || cell_ordered(cells[i], own, step);
        known = cells[i];
    }
    uint64_t written = step->flags & RF_A_WRITE ? (uint64_t)step->now << 32 : 0, kept = written ? 0 : UINT64_MAX << 32;
    for (unsigned i = 0; ordered && i < count; i++)
        __atomic_store_n(&cells[i], (cells[i] & kept) | written | step->now, __ATOMIC_RELAXED);
    return ordered;
}

bool rf_lanes_step(uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step)
{
    unsigned first = (unsigned)__builtin_ctz(mask), bytes = mask >> first;
    if (__builtin_expect(bytes & (bytes + 1), 0)) /* they do not lie together */
        return false;
    uint64_t *lane = rf_lane_at(RF_WORD_X(word));
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    bool stepped = __atomic_load_n(place, __ATOMIC_RELAXED) == word &&
                   (mask == 0xff ? step_cells(lane, RF_GRANULE, step)
                                 : step_cells(lane + first, 32 - (unsigned)__builtin_clz(bytes), step));
    if (stepped && mask >> (RF_GRANULE - 1) && lane[0] == lane[RF_GRANULE - 1])
        rf_lanes_leave(stripe, place, lane);
    rf_spin_unlock(&stripe->lock);
    return stepped;
}
