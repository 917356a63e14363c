#include "guest/lanes.h"

#include "guest/access.h"

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

bool rf_lanes_step(uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step)
{
    unsigned first = (unsigned)__builtin_ctz(mask), bytes = mask >> first;
    if (__builtin_expect(bytes & (bytes + 1), 0)) /* they do not lie together */
        return false;
    return mask == 0xff ? rf_lanes_step_on(place, word, 0, RF_GRANULE, step)
                        : rf_lanes_step_on(place, word, first, 32 - (unsigned)__builtin_clz(bytes), step);
}
