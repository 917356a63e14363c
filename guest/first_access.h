/* FastTrack's first access of an epoch to a part or all of a granule, from a place that is known: what nearly all accesses are that are not
 * repeated ones, where locks are taken often. One straight way, with nothing that a call could spill. AccuLock's is in guest/accu_access.h.
 *
 * 1. It makes what rf_word_quick() and rf_word_join() (guest/granule.h) would make, in the most frequent of their cases, and leaves all others
 *    to them. Granules in lanes have a step of their own (guest/lanes.h).
 * 2. A step is kept for repeat_step() from the second one on that a place makes in an epoch: many make but one.
 * 3. Of an access to two granules one may have been stepped on when the other is left to others: it is repeated then, which changes nothing.
 */
#ifndef RF_GUEST_FIRST_ACCESS_H
#define RF_GUEST_FIRST_ACCESS_H

#include "guest/granule.h"
#include "guest/last_steps.h"
#include "guest/nearby.h"
#include "guest/policy.h"
#include "guest/refusal.h"
#include "guest/seen.h"
#include "guest/steps.h"

static inline __attribute__((always_inline)) bool ordered(const struct rf_self *self, uint32_t moment)
{
    return rf_moment_is_own(self, moment) || rf_moment_time(moment) <= rf_clock_get(&self->thread.clock, rf_moment_slot(moment));
}

/* The same for all that a cell names. */
static inline __attribute__((always_inline)) bool ordered_cell(const struct rf_self *self, uint32_t name)
{
    if (!name || rf_moment_is_own(self, name))
        return true;
    if (!rf_cell_is_pair(name))
        return ordered(self, name);
    const struct rf_pair *pair = rf_pair_at(name);
    return ordered(self, pair->w) && ordered(self, pair->r);
}

/* What a first access makes of a word, apart from the moment of now, which is to come where Y is; 0: not such a case. What is not in the mask
 * must have one cell: X, or what Y says of all of it. */
static inline __attribute__((always_inline)) uint64_t first_read(uint64_t word, unsigned mask)
{
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word);
    if (word & RF_WRITES_BIT)
        return m == 0xff ? RF_WORD(mask, 0, y) : 0;
    if (mask == 0xff)
        return RF_WORD(mask, 0, rf_cell_w(x));
    if (m & ~mask && ((m | mask) != 0xff || !(x = rf_cell_named(rf_cell_w(x), y))))
        return 0;
    return RF_WORD(mask, 0, x);
}

static inline __attribute__((always_inline)) uint64_t first_write(uint64_t word, unsigned mask)
{
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word);
    if (mask == 0xff)
        return RF_WORD(0xff, 0, 0) | RF_WRITES_BIT;
    if (m & ~mask) {
        if ((m | mask) != 0xff)
            return 0;
        x = word & RF_WRITES_BIT ? y : rf_cell_named(rf_cell_w(x), y);
        if (!x)
            return 0;
    }
    return RF_WORD(mask, 0, x) | RF_WRITES_BIT;
}

/* The same for bytes that join those of Y, a moment of this epoch, in one of the plain forms or mixed. */
static inline __attribute__((always_inline)) uint64_t first_join(uint64_t word, unsigned mask, bool writes)
{
    bool written = word & RF_WRITES_BIT;
    unsigned m = RF_WORD_M(word), all = m | mask;
    if ((word & RF_ODD_BIT) || written != writes) {
        struct rf_masks masks = rf_word_masks(word);
        unsigned all_written = writes ? masks.written | mask : masks.written, all_read = writes ? masks.read : masks.read | mask;
        uint64_t next;
        return rf_word_make(RF_WORD_Y(word), RF_WORD_X(word), all_written, all_read, &next) ? next : 0;
    }
    uint32_t x = all != 0xff ? RF_WORD_X(word) : writes ? 0 : rf_cell_w(RF_WORD_X(word));
    return RF_WORD(all, RF_WORD_Y(word), x) | (writes ? RF_WRITES_BIT : 0);
}

/* As rf_word_repeats_plainly() for an epoch with so many moments that hooks do not know its first ones any more (next_block()): without this
 * each such access would be made again, with a moment of its own, and there would be still more of them. */
static inline bool repeats_earlier_block(const struct rf_self *self, uint64_t word, unsigned mask, unsigned flags)
{
    return !(word & RF_ODD_BIT) && !(mask & ~RF_WORD_M(word)) && ((word & RF_WRITES_BIT) || !(flags & RF_A_WRITE)) &&
           rf_moment_is_now(self, RF_WORD_Y(word));
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

/* Where the thread is: the node of its stack; 0: not asked for yet. */
static inline __attribute__((always_inline)) uint32_t first_node(const struct rf_self *self)
{
    return __builtin_expect(rf_hot.top > self->frames, 1) ? rf_hot.top[-1].node : 0;
}

static inline unsigned first_mask(uintptr_t addr, unsigned size)
{
    return size == RF_GRANULE ? 0xff : ((1u << size) - 1) << addr % RF_GRANULE;
}

/* Can first_turn() make it, as far as the word tells: one of the two plain forms, without a pair and not of this epoch, of which one cell stays
 * at most. Asked before there is anything on the stack. */
static inline __attribute__((always_inline)) bool turns(uint64_t word, uintptr_t addr, unsigned size, unsigned flags)
{
    unsigned m = RF_WORD_M(word), mask = first_mask(addr, size), others = m & ~mask;
    bool writes = flags & RF_A_WRITE, written = word & RF_WRITES_BIT;
    if ((word & RF_ODD_BIT) || RF_WORD_X(word) >= RF_PAIRS_FIRST || rf_moment_is_hot(RF_WORD_Y(word)))
        return false;
    if (size == RF_GRANULE && addr % RF_GRANULE)
        return false;
    if (writes)
        return mask <= 0xff && (size == RF_GRANULE || !others || (written && (m | mask) == 0xff));
    return mask <= 0xff && (written ? m == 0xff : !others);
}

/* The shortest of the ways, which most accesses take that are not repeated ones. turns() holds for the word, which was loaded before the thread
 * was busy, so it must still be there once it is: what it names stays from then on, and may have been others' names before
 * (guest/access.c, 3). It needs no stack: what calls anything is left to first_access(). true: it was made. The thread is not busy before, and busy
 * afterwards if it was made; else it may be. */
static inline __attribute__((always_inline)) bool first_turn(struct rf_self *self, uint64_t word, uintptr_t addr, uintptr_t pc, unsigned size,
                                                             unsigned flags)
{
    unsigned mask = first_mask(addr, size), others = RF_WORD_M(word) & ~mask;
    if (__builtin_expect(rf_policy_no_hot, 0))
        return false;
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED); /* as rf_busy_begin(), but nobody waits here */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&rf_world_stopping, __ATOMIC_ACQUIRE), 0))
        return false;
    uint64_t *place = rf_word(addr), next;
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word);
    if (__builtin_expect(__atomic_load_n(place, __ATOMIC_ACQUIRE) != word, 0) || !ordered(self, y) || (x && !ordered(self, x)))
        return false;
    if (flags & RF_A_WRITE) { /* first_write() */
        if (mask == 0xff)
            x = 0;
        else if (others)
            x = y;
        next = RF_WORD(mask, 0, x) | RF_WRITES_BIT;
    } else { /* first_read() */
        next = RF_WORD(mask, 0, word & RF_WRITES_BIT ? y : x);
    }
    uint64_t key = rf_access_key(pc, flags, size);
    uint32_t node = first_node(self);
    struct rf_cached_moment *cached = rf_moment_cached(self, key, node);
    if (__builtin_expect(!node || cached->what != key || cached->below != node, 0))
        return false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* what is needed from here on is loaded again: registers are few */
    uint32_t now = cached->moment;
    if (rf_moment_is_hot(now) && rf_moment_locks(now) == self->locks) {
        next |= (uint64_t)now << 28;
        if (__builtin_expect(!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE), 0))
            return false;
        rf_keep_step(self, word, next, pc, addr, size, flags, 0);
        return true;
    }
    if (__builtin_expect(rf_moment_is_last(self), 0))
        return false;
    now = cached->moment = rf_moment_take_hot(self, cached->note, self->locks);
    next |= (uint64_t)now << 28;
    return __builtin_expect(__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE), 1);
}

/* Bytes of one granule: all of the access if `alone`. The thread is busy. false: nothing was done. */
static inline __attribute__((always_inline)) bool first_step(struct rf_self *self, struct rf_cached_moment *cached, uintptr_t addr,
                                                             unsigned mask, uintptr_t pc, unsigned size, unsigned flags, bool alone)
{
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    uint32_t y = RF_WORD_Y(word), now;
    bool writes = flags & RF_A_WRITE, again = false;
    if (rf_word_has_lanes(word)) {
        struct rf_step step = { .self = self, .flags = flags, .fasttrack = true };
        return (step.now = first_moment(self, cached, &again)) && rf_lanes_step(place, word, mask, &step);
    }
    if ((word & RF_ODD_BIT) && !rf_word_is_mixed(word))
        return false;
    if (mask != 0xff && rf_word_has_two(word)) /* all bytes have two reads, which both stay for those that are not met */
        return false;
    if (y - rf_hot.first < rf_hot.span) {
        if (!alone && rf_word_repeats_plainly(word, mask, flags))
            return true;
        if (!(next = first_join(word, mask, writes)) || !ordered_cell(self, RF_WORD_X(word)) ||
            rf_moment_locks(y) != self->locks ||
            !__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return false;
        if (__builtin_expect(mask == 0xff && (next & RF_ODD_BIT), 0)) /* hooks would not see it */
            rf_seen_put(addr, mask, flags);
        if (rf_moment_note(y) != cached->note)
            rf_nearby_put(self, place, mask, y, cached->note);
        return true;
    }
    if ((word & RF_ODD_BIT) || !ordered_cell(self, RF_WORD_X(word)) || !ordered(self, y) ||
        !(next = writes ? first_write(word, mask) : first_read(word, mask)) || !(now = first_moment(self, cached, &again)))
        return false;
    next |= (uint64_t)now << 28;
    if (__builtin_expect(!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE), 0))
        return false;
    rf_touch(place);
    if (alone && again)
        rf_keep_step(self, word, next, pc, addr, size, flags, 0);
    return true;
}

/* The same for an access to two granules. */
static __attribute__((noinline)) bool first_two(struct rf_self *self, struct rf_cached_moment *cached, uintptr_t addr, unsigned mask,
                                                uintptr_t pc, unsigned size, unsigned flags)
{
    return first_step(self, cached, addr, mask & 0xff, pc, size, flags, false) &&
           first_step(self, cached, addr + RF_GRANULE, mask >> RF_GRANULE, pc, size, flags, false);
}

/* The thread is not busy, and nothing else is to be thought of (rf_slow_access). false: nothing was done, or a part. */
static inline __attribute__((always_inline)) bool first_access(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size,
                                                               unsigned flags)
{
    unsigned mask = ((1u << size) - 1) << addr % RF_GRANULE;
    uint32_t node = first_node(self);
    uint64_t key = rf_access_key(pc, flags, mask == 0xffff ? RF_GRANULE : size); /* two_granules() */
    if (mask > 0xff && (mask > 0xffff || __builtin_expect(rf_refuses, 0)))
        return false;
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED); /* as rf_busy_begin(), but nobody waits here */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bool stepped = __builtin_expect(!__atomic_load_n(&rf_world_stopping, __ATOMIC_ACQUIRE), 1);
    if (__builtin_expect(!node && stepped, 0)) { /* the first access in a function that was entered */
        if (mask <= 0xff && repeats_earlier_block(self, __atomic_load_n(rf_word(addr), __ATOMIC_RELAXED), mask, flags)) {
            __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
            __atomic_signal_fence(__ATOMIC_SEQ_CST);
            return true;
        }
        node = rf_depot_node(self);
    }
    struct rf_cached_moment *cached = rf_moment_cached(self, key, node);
    if (__builtin_expect(stepped && node && cached->what == key && cached->below == node, 1))
        stepped = __builtin_expect(mask <= 0xff, 1) ? first_step(self, cached, addr, mask, pc, size, flags, true)
                                                    : first_two(self, cached, addr, mask, pc, size, flags);
    else
        stepped = false;
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return stepped;
}

#endif
