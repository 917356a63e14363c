/* FastTrack's first access of an epoch to a part or all of a granule, from a place that is known: what nearly all accesses are that are not
 * repeated ones, where locks are taken often. One straight way, with nothing that a call could spill.
 *
 * 1. It makes what rf_word_quick() and rf_word_join() (guest/granule.h) would make, in those of their cases in which neither X nor Y is a
 *    pair, and leaves all others to them.
 * 2. A moment of a block that is not linear, or a pair, looks unordered here (ordered_linearly()).
 * 3. A step is kept for repeat_step() from the second one on that a place makes in an epoch: many make but one.
 */
#ifndef RF_GUEST_FIRST_ACCESS_H
#define RF_GUEST_FIRST_ACCESS_H

#include "guest/granule.h"
#include "guest/last_steps.h"
#include "guest/nearby.h"
#include "guest/steps.h"

/* With RF_NOT_LINEAR the sum is past all times; RF_PAIRS is the slot of nobody. */
static inline __attribute__((always_inline)) bool ordered_linearly(const struct rf_self *self, uint32_t moment)
{
    struct rf_moment_block block = rf_moment_blocks[moment >> RF_MOMENT_BLOCK_BITS];
    return block.slot < self->thread.clock.len &&
           (uint64_t)block.first + moment % RF_MOMENT_BLOCK <= self->thread.clock.times[block.slot];
}

/* What a first access makes of a word, apart from the moment of now, which is to come where Y is; 0: not such a case. */
static inline __attribute__((always_inline)) uint64_t first_read(uint64_t word, unsigned mask)
{
    unsigned m = RF_WORD_M(word);
    if (word & RF_WRITES_BIT)
        return m == 0xff ? RF_WORD(mask, 0, RF_WORD_Y(word)) : 0;
    return m & ~mask ? 0 : RF_WORD(mask, 0, RF_WORD_X(word));
}

static inline __attribute__((always_inline)) uint64_t first_write(uint64_t word, unsigned mask)
{
    unsigned m = RF_WORD_M(word);
    if (mask == 0xff)
        return RF_WORD(0xff, 0, 0) | RF_WRITES_BIT;
    if (!(m & ~mask))
        return RF_WORD(mask, 0, RF_WORD_X(word)) | RF_WRITES_BIT;
    return m == 0xff && (word & RF_WRITES_BIT) ? RF_WORD(mask, 0, RF_WORD_Y(word)) | RF_WRITES_BIT : 0;
}

/* The moment of now; *again: the epoch had it already. 0: none is at hand. */
static inline __attribute__((always_inline)) uint32_t first_moment(struct rf_self *self, struct rf_cached_moment *cached, bool *again)
{
    *again = cached->moment - rf_hot.first < rf_hot.span && rf_moment_locks(cached->moment) == self->locks;
    if (*again)
        return cached->moment;
    if (__builtin_expect(rf_moment_is_last(self), 0))
        return 0;
    return cached->moment = rf_moment_take(self, cached->note, self->locks);
}

/* The thread is busy. false: nothing was done. */
static inline __attribute__((always_inline)) bool first_step(struct rf_self *self, struct rf_cached_moment *cached, uint64_t *place,
                                                             uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size, unsigned flags)
{
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    uint32_t y = RF_WORD_Y(word), now = y;
    bool writes = flags & RF_A_WRITE, joins = y - rf_hot.first < rf_hot.span, again = false;
    if ((word & RF_ODD_BIT) || !ordered_linearly(self, RF_WORD_X(word)))
        return false;
    if (joins) { /* what was read is written: the read's moment stays, and stands for both */
        if (!writes || (word & RF_WRITES_BIT) || (RF_WORD_M(word) & ~mask) || rf_moment_locks(y) != self->locks)
            return false;
        next = RF_WORD(mask, 0, mask == 0xff ? 0 : RF_WORD_X(word)) | RF_WRITES_BIT;
    } else {
        next = writes ? first_write(word, mask) : first_read(word, mask);
        if (!next || !ordered_linearly(self, y) || !(now = first_moment(self, cached, &again)))
            return false;
    }
    next |= (uint64_t)now << 28;
    if (__builtin_expect(!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE), 0))
        return false;
    rf_touch(place);
    if (joins)
        rf_nearby_put(self, place, mask, y, cached->note);
    else if (again)
        rf_keep_step(self, word, next, pc, addr, size, flags, 0);
    return true;
}

/* The thread is not busy, and nothing else is to be thought of (rf_slow_access). false: nothing was done. */
static inline __attribute__((always_inline)) bool first_access(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    unsigned mask = ((1u << size) - 1) << addr % RF_GRANULE;
    uint32_t node = rf_hot.top > self->frames ? rf_hot.top[-1].node : 0;
    uint64_t key = rf_access_key(pc, flags, size);
    if (mask > 0xff || !node)
        return false;
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED); /* as rf_busy_begin(), but nobody waits here */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct rf_cached_moment *cached = rf_moment_cached(self, key, node);
    bool stepped = cached->what == key && cached->below == node &&
                   __builtin_expect(!__atomic_load_n(&rf_world_stopping, __ATOMIC_ACQUIRE), 1) &&
                   first_step(self, cached, rf_word(addr), addr, mask, pc, size, flags);
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return stepped;
}

#endif
