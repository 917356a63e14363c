/* AccuLock's first access of an epoch to a part or all of a granule, from a place that is known: as guest/first_access.h is for FastTrack, one
 * straight way, with nothing that a call could spill.
 *
 * 1. What an access meets passes if it happens before, or if just the locks were held that are held now: then there is a common one, nothing
 *    is told, and a write's lockset is that of the write itself (Algorithms 10 and 11). All other cases are left to rf_word_accu(),
 *    rf_word_quick() and the rules themselves.
 * 2. Nothing that is met is of this epoch, unless it is what the bytes join: what was written in this epoch may have a lockset of several writes,
 *    which stays.
 * 3. A read takes the place of no other thread's (detect/acculock.h, 3). Where a second thread reads all of a granule that is not guarded by a
 *    lock, both reads fit the word (guest/hot.h, 2), and hooks find either; with locks there will be more epochs of both, and a read map has
 *    their entries replaced where they lie (guest/units.h, 4): the second thread's read begins one.
 */
#ifndef RF_GUEST_ACCU_ACCESS_H
#define RF_GUEST_ACCU_ACCESS_H

#include "guest/accu_units.h"
#include "guest/first_access.h"
#include "guest/shared.h"

/* Invariant 1. Sets of locks that have modes say what was held, and not what protects. */
static inline __attribute__((always_inline)) bool accu_shares(const struct rf_self *self, uint32_t moment)
{
    return self->locks && rf_moment_locks(moment) == self->locks && __builtin_expect(!rf_locks_have_modes, 1);
}

static inline __attribute__((always_inline)) bool accu_passes(const struct rf_self *self, uint32_t moment)
{
    return ordered(self, moment) || accu_shares(self, moment);
}

/* It is of the thread's present epoch, or may be: blocks that the epoch has filled are not worth a closer look. */
static inline __attribute__((always_inline)) bool accu_is_now(const struct rf_self *self, uint32_t moment)
{
    return rf_moment_is_own(self, moment) ? rf_moment_is_hot(moment) : rf_moment_is_now(self, moment);
}

static inline __attribute__((always_inline)) bool accu_is_mine(const struct rf_self *self, uint32_t moment)
{
    return rf_moment_is_own(self, moment) ||
           (rf_moment_slot(moment) == self->thread.slot && rf_moment_time(moment) >= self->thread.since);
}

/* A read takes the place of the one that a pair has: it is the thread's, and of an earlier epoch. The first read of an epoch has the fewest
 * locks, and stays. */
static inline __attribute__((always_inline)) bool accu_reads_on(const struct rf_self *self, uint32_t x)
{
    return __builtin_expect(!rf_cell_is_pair(x), 1) ||
           (accu_is_mine(self, rf_pair_at(x)->r) && !accu_is_now(self, rf_pair_at(x)->r));
}

/* A write meets nothing in a cell that has to be told, or kept. */
static inline __attribute__((always_inline)) bool accu_writes_on(const struct rf_self *self, uint32_t x)
{
    if (__builtin_expect(!rf_cell_is_pair(x), 1))
        return accu_passes(self, x);
    return accu_passes(self, rf_pair_at(x)->w) && accu_passes(self, rf_pair_at(x)->r);
}

/* What a read makes of a word, apart from its moment; 0: not such a case. */
static inline __attribute__((always_inline)) uint64_t accu_first_read(const struct rf_self *self, uint64_t word,
                                                                      unsigned mask)
{
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), w = rf_cell_w(x);
    if (word & RF_WRITES_BIT)
        return m == 0xff && accu_passes(self, y) ? RF_WORD(mask, 0, y) : 0;
    if (!accu_passes(self, w))
        return 0;
    if (m && !accu_is_mine(self, y)) {
        if ((mask & m) != 0xff || self->locks || !(x = rf_cell_named(w, y)))
            return 0;
        return RF_WORD(0xff, 0, x);
    }
    if ((mask & ~m) && !accu_reads_on(self, x))
        return 0;
    if ((m & ~mask) && ((m | mask) != 0xff || !(x = rf_cell_named(w, y)))) /* the rest was read in Y, or none of it */
        return 0;
    return RF_WORD(mask, 0, mask == 0xff ? w : x);
}

/* A read of all bytes that have one of the two cells of a word that says where they were written: as rf_word_read_half(). Y may be of any
 * thread then, so hooks do not see it. */
static inline __attribute__((always_inline)) bool accu_half_read(struct rf_self *self, struct rf_cached_moment *cached, uintptr_t addr,
                                                                 unsigned mask, uint64_t word)
{
    uint64_t *place = rf_word(addr), next;
    unsigned m = RF_WORD_M(word), rest = ~m & 0xff;
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), now, read;
    bool again, first = mask == m;
    if (!(first ? accu_passes(self, y) && !rf_cell_is_pair(x) : mask == rest && accu_passes(self, rf_cell_w(x)) && accu_reads_on(self, x)) ||
        !(now = first_moment(self, cached, &again)) || !(read = rf_cell_named(first ? y : rf_cell_w(x), now)))
        return false;
    next = (first ? RF_WORD(rest, x, read) : RF_WORD(m, y, read)) | RF_WRITES_BIT;
    if (!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    rf_touch(place);
    rf_seen_put(addr, mask, 0);
    return true;
}

/* Bytes of X may join Y, a moment of this epoch and of the same locks. */
static inline __attribute__((always_inline)) bool accu_joins(const struct rf_self *self, uint32_t x, bool writes)
{
    if (accu_is_now(self, rf_cell_w(x)))
        return false;
    return writes ? accu_writes_on(self, x) : accu_passes(self, rf_cell_w(x)) && accu_reads_on(self, x);
}

/* A read of all bytes that another thread has read since the last write, which lets both pass. */
static inline __attribute__((always_inline)) bool accu_second_read(struct rf_self *self, struct rf_cached_moment *cached, uintptr_t addr,
                                                                   unsigned mask, uint64_t word)
{
    uint32_t x = RF_WORD_X(word), now;
    bool again;
    if (RF_WORD_M(word) != mask || rf_cell_is_pair(x) || accu_is_mine(self, RF_WORD_Y(word)) || !accu_passes(self, x) ||
        !(now = first_moment(self, cached, &again)) ||
        !rf_accu_begins_map(rf_word(addr), word, now, accu_shares(self, x) ? self->locks : 0))
        return false;
    if (mask != 0xff) /* hooks would not see it */
        rf_seen_put(addr, mask, 0);
    return true;
}

/* A word of one of the two plain forms, or mixed. `alone`: the bytes are all of the access. */
static inline __attribute__((always_inline)) bool accu_word_step(struct rf_self *self, struct rf_cached_moment *cached,
                                                                 uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size,
                                                                 unsigned flags, bool alone, uint64_t word)
{
    uint64_t *place = rf_word(addr), next;
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), now;
    bool writes = flags & RF_A_WRITE, again;
    if (rf_word_has_two(word))
        return false;
    if (rf_moment_is_hot(y)) {
        if (rf_moment_locks(y) != self->locks || !accu_joins(self, x, writes) || !(next = first_join(word, mask, writes)))
            return false;
        if (next == word)
            return true;
        if (!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return false;
        if (__builtin_expect(mask == 0xff && (next & RF_ODD_BIT), 0)) /* hooks would not see it */
            rf_seen_put(addr, mask, flags);
        if (rf_moment_note(y) != cached->note)
            rf_nearby_put(self, place, mask, y, cached->note);
        return true;
    }
    if ((word & RF_ODD_BIT) || accu_is_now(self, rf_cell_w(x)) || accu_is_now(self, y))
        return false;
    if (!writes)
        next = accu_first_read(self, word, mask);
    else
        next = (!(mask & RF_WORD_M(word)) || accu_passes(self, y)) && accu_writes_on(self, x) ? first_write(word, mask) : 0;
    if (__builtin_expect(!next, 0)) {
        if (writes)
            return false;
        return word & RF_WRITES_BIT ? accu_half_read(self, cached, addr, mask, word) : accu_second_read(self, cached, addr, mask, word);
    }
    if (!(now = first_moment(self, cached, &again)))
        return false;
    next |= (uint64_t)now << 28;
    if (__builtin_expect(!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE), 0))
        return false;
    rf_touch(place);
    if (alone && again && (!writes || accu_writes_on(self, RF_WORD_X(next)))) /* more bytes would join it without a look at X */
        rf_keep_step(self, word, next, pc, addr, size, flags, 0);
    return true;
}

/* The entry of the thread, in a map whose lock is held and that has room for it: where it is, or is to be. RF_FEW: there is none, or the thread
 * has one of this epoch (*known), or more than one. */
static inline __attribute__((always_inline)) uint32_t accu_entry(const struct rf_self *self,
                                                                 const struct rf_readers *readers, bool *known)
{
    uint32_t count = readers->count, at = count;
    for (uint32_t i = 0; i < count && i < RF_FEW; i++) {
        uint32_t entry = readers->few[i];
        if (!accu_is_mine(self, entry))
            continue;
        *known = accu_is_now(self, entry);
        if (*known || at != count)
            return RF_FEW;
        at = i;
    }
    return at;
}

/* A read of all bytes that have a read map. */
static inline __attribute__((always_inline)) bool accu_map_step(struct rf_self *self, struct rf_cached_moment *cached,
                                                                uintptr_t addr, unsigned mask, uint64_t word)
{
    const uint64_t *place = rf_word(addr);
    struct rf_readers *readers = rf_readers_at(RF_WORD_Y(word));
    uint32_t w = RF_WORD_X(word), now, at;
    bool again, known = false;
    if (RF_WORD_M(word) != mask || accu_is_now(self, w) || !(now = first_moment(self, cached, &again)) ||
        !rf_readers_try_lock(readers))
        return false;
    bool stepped = __atomic_load_n(place, __ATOMIC_ACQUIRE) == word && !readers->is_many;
    if (__builtin_expect(stepped, 1) && (at = accu_entry(self, readers, &known)) < RF_FEW) {
        bool passed = self->locks && self->locks == readers->passes;
        if (!passed && accu_shares(self, w)) { /* the write's locks are far away: next time they are not asked for */
            passed = true;
            readers->passes = (uint16_t)(self->locks <= UINT16_MAX ? self->locks : 0);
        }
        stepped = passed || ordered(self, w); /* the latter holds for this thread alone */
        if (stepped) {
            __atomic_store_n(&readers->few[at], now, __ATOMIC_RELAXED);
            if (at == readers->count)
                __atomic_store_n(&readers->count, at + 1, __ATOMIC_RELEASE);
        }
    } else {
        stepped = known;
    }
    rf_readers_unlock(readers);
    if (stepped && mask != 0xff) /* hooks would not see it */
        rf_seen_put(addr, mask, 0);
    return stepped;
}

/* Which bytes of a record the thread has accessed in this epoch, if those of the mask are among them: they are likely to be accessed again,
 * and one look is enough for all. 0: they are not. See guest/units.h, 2. */
static inline unsigned repeated_bytes(const uint64_t *place, uint64_t word, unsigned mask, unsigned flags)
{
    const uint64_t *record = rf_record_at(RF_WORD_X(word), RF_WORD_M(word));
    bool writes = flags & RF_A_WRITE;
    unsigned covered = 0;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < RF_WORD_M(word) && i < RF_RECORD_MOST; i++) {
            uint64_t slice = __atomic_load_n(&record[i], __ATOMIC_RELAXED);
            if ((slice & RF_WRITES_BIT) || !(RF_WORD_M(slice) & mask) == !round)
                continue;
            bool in_set = !writes && (slice & RF_ODD_BIT);
            if (in_set ? rf_few_has_now(rf_readers_at(RF_WORD_Y(slice))) : rf_moment_is_hot(writes ? RF_WORD_X(slice) : RF_WORD_Y(slice)))
                covered |= RF_WORD_M(slice);
        }
        if (mask & ~covered)
            return 0;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(place, __ATOMIC_RELAXED) == word ? covered : 0;
}

/* A read of bytes that have a record. What the epoch has read of them is likely to be read again: one look
 * is enough for all of it. */
static inline __attribute__((always_inline)) bool accu_record_step(struct rf_self *self, struct rf_cached_moment *cached,
                                                                   uintptr_t addr, unsigned mask, uint64_t word)
{
    bool again, known = false;
    uint32_t now = first_moment(self, cached, &again);
    if (!now || !rf_accu_reads_record(self, rf_word(addr), word, mask, now, &known))
        return false;
    unsigned more = known ? repeated_bytes(rf_word(addr), word, mask, 0) : 0;
    rf_seen_put(addr, mask | more, 0); /* hooks would not see it */
    return true;
}

static inline __attribute__((always_inline)) bool accu_step(struct rf_self *self, struct rf_cached_moment *cached,
                                                            uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size,
                                                            unsigned flags, bool alone)
{
    uint64_t word = __atomic_load_n(rf_word(addr), __ATOMIC_ACQUIRE);
    if (!alone && rf_word_repeats_plainly(word, mask, flags))
        return true;
    if (rf_word_has_lanes(word)) {
        bool again;
        uint32_t now = first_moment(self, cached, &again);
        return now && rf_accu_lanes_step(self, rf_word(addr), word, mask, now, flags);
    }
    if (!(word & RF_ODD_BIT) || rf_word_is_mixed(word))
        return accu_word_step(self, cached, addr, mask, pc, size, flags, alone, word);
    if (flags & RF_A_WRITE)
        return false;
    if (rf_word_has_map(word))
        return accu_map_step(self, cached, addr, mask, word);
    return rf_word_is_record(word) && accu_record_step(self, cached, addr, mask, word);
}

/* The same for an access to two granules (guest/first_access.h, 3). */
static __attribute__((noinline)) bool accu_two(struct rf_self *self, struct rf_cached_moment *cached, uintptr_t addr, unsigned mask,
                                               uintptr_t pc, unsigned size, unsigned flags)
{
    return accu_step(self, cached, addr, mask & 0xff, pc, size, flags, false) &&
           accu_step(self, cached, addr + RF_GRANULE, mask >> RF_GRANULE, pc, size, flags, false);
}

/* As first_access(), but two whole granules are two accesses (two_granules()). */
static inline __attribute__((always_inline)) bool accu_first_access(struct rf_self *self, uintptr_t addr, uintptr_t pc,
                                                                    unsigned size, unsigned flags)
{
    unsigned mask = ((1u << size) - 1) << addr % RF_GRANULE;
    uint32_t node = rf_hot.top > self->frames ? rf_hot.top[-1].node : 0;
    uint64_t key = rf_access_key(pc, flags, size);
    if (size > RF_GRANULE)
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
        stepped = __builtin_expect(mask <= 0xff, 1) ? accu_step(self, cached, addr, mask, pc, size, flags, true)
                                                    : accu_two(self, cached, addr, mask, pc, size, flags);
    else
        stepped = false;
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return stepped;
}

#endif
