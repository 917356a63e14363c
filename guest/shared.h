/* Has the thread read a granule in its present epoch that others read, too, or whose bytes have histories of their own? What hooks know of such
 * ones, for accesses to several. No lock: guest/units.h, 2.
 */
#ifndef RF_GUEST_SHARED_H
#define RF_GUEST_SHARED_H

#include "guest/lanes.h"

/* A moment of the present epoch is among the first of a read map. */
static inline bool rf_few_has_now(const struct rf_readers *readers)
{
    for (unsigned i = 0; i < RF_FEW; i++) /* what lies beyond the count was a moment of an earlier epoch, or 0 */
        if (i < __atomic_load_n(&readers->count, __ATOMIC_RELAXED) &&
            __atomic_load_n(&readers->few[i], __ATOMIC_RELAXED) - rf_hot.first < rf_hot.span)
            return true;
    return false;
}

/* All of it, in one of the forms that are not plain. Maps and names of pairs are given to others, so that the word must still be the same. */
static inline bool rf_shared_has_now(const uint64_t *place, uint64_t word)
{
    if (RF_WORD_M(word) != 0xff)
        return false;
    bool mine = rf_word_has_map(word) ? rf_few_has_now(rf_readers_at(RF_WORD_Y(word)))
                                      : rf_word_has_two(word) && rf_cell_r(RF_WORD_X(word)) - rf_hot.first < rf_hot.span;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return mine && __atomic_load_n(place, __ATOMIC_RELAXED) == word;
}

/* Also before the guest has started. */
static inline const uint64_t *rf_word_anytime(uintptr_t addr)
{
    return (const uint64_t *)((const char *)rf_plane_now.words + (addr & rf_plane_now.mask));
}

/* Bytes of one granule were accessed in this epoch, as a word of one of the two plain forms says it. */
static inline bool rf_word_repeats_bytes(uint64_t word, unsigned mask, unsigned flags)
{
    uint64_t moment = word << 8 >> 36; /* with the odd bit above it */
    return moment - rf_hot.first < rf_hot.span && !(mask & ~(unsigned)(word >> 56)) && (!flags || (word >> 27 & 1));
}

/* Up to where bytes from here on were accessed in this epoch. `flags`: RF_A_WRITE, or none. */
static inline uintptr_t rf_skip_repeated(uintptr_t addr, uintptr_t end, unsigned flags)
{
    while (addr < end) {
        unsigned offset = addr % RF_GRANULE, length = RF_GRANULE - offset;
        if (length > end - addr)
            length = (unsigned)(end - addr);
        unsigned mask = ((1u << length) - 1) << offset;
        const uint64_t *place = rf_word_anytime(addr);
        uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (rf_word_has_lanes(word)) {
            if (!rf_lanes_repeat(word, mask, flags) || __atomic_load_n(place, __ATOMIC_RELAXED) != word)
                break;
        } else if (!rf_word_repeats_bytes(word, mask, flags) && (flags || !rf_shared_has_now(place, word))) {
            break;
        }
        addr += length;
    }
    return addr;
}

#endif
