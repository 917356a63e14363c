/* FastTrack's first access of an epoch to bytes in lanes, and its first read of bytes that have a read map, alone or in a record: after
 * those of guest/first_access.h the most frequent ones. One straight way, from a place that is known.
 *
 * 1. It makes what rf_lanes_step() and rf_units_access() would make, by the same texts, and leaves to them what is not made so.
 * 2. A moment is taken before anything is changed. If there is nothing to change after all it is one that no history names.
 */
#ifndef RF_GUEST_FIRST_UNITS_H
#define RF_GUEST_FIRST_UNITS_H

#include "guest/first_access.h"
#include "guest/lanes.h"
#include "guest/records.h"

/* The place that the thread is at; NULL: it is not known. The thread is busy. */
static inline __attribute__((always_inline)) struct rf_cached_moment *first_place(struct rf_self *self, uint64_t key)
{
    if (__builtin_expect(rf_hot.top <= self->frames, 0))
        return NULL;
    uint32_t node = rf_hot.top[-1].node;
    if (!node && !(node = rf_depot_node(self))) /* the first access in a function that was entered */
        return NULL;
    struct rf_cached_moment *cached = rf_moment_cached(self, key, node);
    return __builtin_expect(cached->what == key && cached->below == node, 1) ? cached : NULL;
}

/* What a word, or the record that it names, says of just these bytes, if that is a write and a read map; else 0. With the stripe's lock. */
static inline __attribute__((always_inline)) uint64_t slice_with_map(uint64_t word, unsigned mask)
{
    if (rf_word_has_map(word))
        return RF_WORD_M(word) == mask ? word : 0;
    const uint64_t *record = rf_record_at(RF_WORD_X(word), RF_RECORD_FEW);
    uint64_t found = 0;
    for (unsigned i = 0; i < RF_WORD_M(word); i++) {
        if (!(RF_WORD_M(record[i]) & mask))
            continue;
        if (RF_WORD_M(record[i]) != mask || !rf_word_has_map(record[i])) /* atomic accesses, which may be beside it, too */
            return 0;
        found = record[i];
    }
    return found;
}

/* A read of all bytes that have a map, of few moments, and come after their last write. */
static inline __attribute__((always_inline)) bool first_of_map(struct rf_cached_moment *cached, const uint64_t *place, uint64_t word,
                                                               unsigned mask, struct rf_step *step)
{
    struct rf_stripe *stripe = rf_stripe_of(place);
    bool stepped = false, again;
    rf_spin_lock(&stripe->lock);
    uint64_t slice = __atomic_load_n(place, __ATOMIC_RELAXED) == word ? slice_with_map(word, mask) : 0;
    uint32_t w = RF_WORD_X(slice), set = RF_WORD_Y(slice);
    if (slice && !rf_cell_is_pair(w) && ordered(step->self, w) && !rf_readers_at(set)->is_many)
        stepped = rf_set_has_now(rf_readers_at(set)) ||
                  ((step->now = first_moment(step->self, cached, &again)) && rf_set_replace(set, step));
    rf_spin_unlock(&stripe->lock);
    return stepped;
}

/* The word has units. The thread is not busy before, and is afterwards. true: it was made. */
static inline __attribute__((always_inline)) bool first_units(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    unsigned offset = addr % RF_GRANULE, mask = ((1u << size) - 1) << offset;
    if (__builtin_expect(mask > 0xff || rf_policy != RF_POLICY_CAS, 0))
        return false;
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED); /* as rf_busy_begin(), but nobody waits here */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&rf_world_stopping, __ATOMIC_ACQUIRE), 0))
        return false;
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    bool lanes = rf_word_has_lanes(word), again;
    bool has_map = rf_word_has_map(word) || (rf_word_is_record(word) && RF_WORD_M(word) <= RF_RECORD_FEW);
    if (!lanes && ((flags & RF_A_WRITE) || !has_map))
        return false;
    /* Bytes that have several moments of this epoch, which hooks do not look for. With a Y of this epoch they join that, so that hooks see it. */
    if (size > 1 && lanes && !rf_moment_is_hot(RF_WORD_Y(word)) && rf_lanes_repeat(word, mask, flags & RF_A_WRITE) &&
        __atomic_load_n(place, __ATOMIC_RELAXED) == word)
        return true;
    struct rf_cached_moment *cached = first_place(self, rf_access_key(pc, flags, size));
    if (__builtin_expect(!cached, 0))
        return false;
    struct rf_step step = { .self = self, .flags = flags, .fasttrack = true };
    if (lanes) {
        if (!(step.now = first_moment(self, cached, &again)) || !rf_lanes_step_on(place, word, offset, size, &step))
            return false;
        if (size == RF_GRANULE) /* hooks do not look for it in mixed words */
            rf_seen_put(addr, mask, flags);
        return true;
    }
    if (!first_of_map(cached, place, word, mask, &step))
        return false;
    if (size < RF_GRANULE) /* hooks look at maps for all of a granule only */
        rf_seen_put(addr, mask, flags);
    return true;
}

#endif
