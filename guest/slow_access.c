/* Where the hot hooks (guest/hooks.S) go on with what they do not decide by themselves: up to 16 bytes, by the shortest of several ways.
 *
 * 1. A word like the one that the last step from the same place was on, or made: rf_slow_access(), repeat_step().
 * 2. An access that all it meets happens before, or that joins those of its epoch: first_access(), at_once().
 * 3. Everything else: slow_access(), by the rules of guest/access.c.
 */
#include "guest/access.h"

#include "guest/accu_access.h"
#include "guest/escape.h"
#include "guest/first_units.h"
#include "guest/last_steps.h"
#include "guest/nearby.h"
#include "guest/records.h"
#include "guest/refusal.h"
#include "guest/seen.h"
#include "guest/shared.h"
#include "guest/steps.h"
#include "guest/sweep.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/verdict.h"

/* As rf_word_repeats_plainly() for a record, in one look. See guest/units.h, 2. */
static inline bool repeats_in_record(const uint64_t *place, uint64_t word, unsigned mask, unsigned flags)
{
    const uint64_t *record = rf_record_at(RF_WORD_X(word), RF_WORD_M(word));
    bool writes = flags & RF_A_WRITE, many = false;
    unsigned covered = 0;
    for (unsigned i = 0; i < RF_WORD_M(word) && i < RF_RECORD_MOST; i++) {
        uint64_t slice = __atomic_load_n(&record[i], __ATOMIC_RELAXED);
        if ((slice & RF_WRITES_BIT) || !(RF_WORD_M(slice) & mask)) /* atomic, or not met */
            continue;
        bool mine;
        if (!writes && (slice & RF_ODD_BIT)) {
            const struct rf_readers *readers = rf_readers_at(RF_WORD_Y(slice));
            bool is_many = __atomic_load_n(&readers->is_many, __ATOMIC_RELAXED);
            mine = !is_many && rf_few_has_now(readers);
            many |= is_many;
        } else {
            mine = (writes ? RF_WORD_X(slice) : RF_WORD_Y(slice)) - rf_hot.first < rf_hot.span;
        }
        if (mine)
            covered |= RF_WORD_M(slice);
        else if (!many)
            return false;
    }
    if (mask & ~covered)
        return many && rf_word_repeats(place, word, mask, flags);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(place, __ATOMIC_RELAXED) == word;
}

/* The same for a read of bytes that have a read map. */
static inline bool repeats_in_set(const uint64_t *place, uint64_t word, unsigned mask)
{
    const struct rf_readers *readers = rf_readers_at(RF_WORD_Y(word));
    if ((mask & ~RF_WORD_M(word)) || __atomic_load_n(&readers->is_many, __ATOMIC_RELAXED) || RF_WORD_X(word) - rf_hot.first < rf_hot.span)
        return rf_word_repeats(place, word, mask, 0);
    if (!rf_few_has_now(readers))
        return false;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(place, __ATOMIC_RELAXED) == word;
}

/* The same for all that has units, or a pair. */
static inline bool repeats(const uint64_t *place, uint64_t word, unsigned mask, unsigned flags)
{
    if (!rf_word_has_units(word))
        return !(word & RF_ODD_BIT) && rf_cell_is_pair(RF_WORD_X(word)) && rf_word_repeats(place, word, mask, flags);
    if (rf_word_has_lanes(word))
        return rf_word_repeats(place, word, mask, flags);
    if (word & RF_WRITES_BIT)
        return repeats_in_record(place, word, mask, flags);
    return flags & RF_A_WRITE ? rf_word_repeats(place, word, mask, flags) : repeats_in_set(place, word, mask);
}

static __attribute__((noinline)) void keep_place(struct rf_self *self, const uint64_t *place, unsigned mask, uint32_t moment,
                                                 uintptr_t pc, unsigned size, unsigned flags)
{
    bool same_locks = self->locks == rf_moment_locks(moment); /* else they are in the note */
    uint64_t key = rf_access_key(pc, flags, size);
    uint32_t node = rf_hot.top > self->frames ? rf_hot.top[-1].node : 0, note;
    const struct rf_cached_moment *cached = rf_moment_cached(self, key, node);
    if (same_locks && node && cached->what == key && cached->below == node)
        note = cached->note;
    else
        note = same_locks ? rf_moment_place(self, pc, flags, size) : rf_moment_note_here(self, pc, flags, size);
    if (note != rf_moment_note(moment))
        rf_nearby_put(self, place, mask, moment, note);
}

/* The moment's own note tells the place of the access, too, and its locks. */
static inline __attribute__((always_inline)) bool is_of_moment(const struct rf_step *step, uint32_t moment, uintptr_t pc, unsigned size)
{
    uint32_t node = rf_hot.top > step->self->frames ? rf_hot.top[-1].node : 0;
    return node && rf_moment_locks(moment) == step->self->locks &&
           rf_note_is(rf_moment_note(moment), rf_access_key(pc, step->flags, size), node);
}

/* Another part of a granule that the thread has accessed in this epoch, or the same in another way. */
static inline __attribute__((always_inline)) bool joins(struct rf_step *step, uint64_t *place, uint64_t word, unsigned mask, uintptr_t pc, unsigned size)
{
    uint64_t moment = word >> 28 & RF_MOMENT_MASK, next;
    if (moment - rf_hot.first >= rf_hot.span || rf_word_has_units(word))
        return false;
    if (rf_step_accu(step) && is_of_moment(step, (uint32_t)moment, pc, size))
        step->now = (uint32_t)moment;
    if (!rf_word_join(step, word, mask, &next))
        return false;
    if (next == word)
        return true;
    if (!__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    if (!is_of_moment(step, (uint32_t)moment, pc, size))
        keep_place(step->self, place, mask, (uint32_t)moment, pc, size, step->flags);
    return true;
}

void rf_seen_empty(void)
{
    memset(rf_hot.seen, 0, 2 * RF_SEEN * sizeof *rf_hot.seen);
}

RF_MODE bool rf_seen_off;

static void empty_seen(struct rf_self *self, void *context)
{
    (void)context;
    if (self->seen)
        memset(self->seen, 0, 2 * RF_SEEN * sizeof *self->seen);
}

void rf_seen_stop(void)
{
    if (!rf_seen_off)
        rf_threads_each(empty_seen, NULL);
    rf_seen_off = true;
}

/* The bytes of an access that lie in one granule, whatever its history is. The thread is busy. */
static __attribute__((noinline)) void slow_granule(struct rf_step *step, uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size)
{
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (rf_word_repeats_plainly(word, mask, step->flags))
        return;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0)) {
        step->now = rf_moment_now(step->self, pc, step->flags, size);
        if (__builtin_expect(!step->now, 0))
            return;
        rf_policy_step(place, mask, step);
        rf_touch(place);
        if ((*place & RF_ODD_BIT) && !step->race && !rf_policy_no_hot)
            rf_seen_put(addr, mask, step->flags);
        return;
    }
    if (__builtin_expect(rf_accu, 0)) /* the locks of the last write are asked for soon, and are far away */
        __builtin_prefetch((const struct rf_noted *)RF_NOTES + RF_WORD_X(word));
    bool known = __builtin_expect(rf_multi, 0) ? rf_word_repeats(place, word, mask, step->flags)
                                               : repeats(place, word, mask, step->flags) || joins(step, place, word, mask, pc, size);
    if (!known) {
        step->now = rf_moment_at_hand(step->self, rf_access_key(pc, step->flags, size));
        if (!step->now && !(step->now = rf_moment_now(step->self, pc, step->flags, size)))
            return;
        rf_step_granule(place, word, mask, step);
        rf_touch(place);
        if (step->made && addr % RF_GRANULE + size <= RF_GRANULE && rf_accu_tells_once() && rf_hot.top > step->self->frames && rf_hot.top[-1].node)
            rf_keep_step(step->self, step->old, step->made, pc, addr, size, step->flags, step->race); /* a race is going to be told */
    }
    if (!step->race && !rf_word_repeats_plainly(*place, mask, step->flags) && (mask == 0xff || !rf_word_has_lanes(*place))) /* hooks would not see it */
        rf_seen_put(addr, mask, step->flags);
}

/* The end of an access that came to slow_granule(). */
static void slow_end(const struct rf_step *step, uintptr_t addr, unsigned size, uintptr_t pc)
{
    struct rf_self *self = step->self;
    if (__builtin_expect(step->race, 0)) {
        rf_end_with_race(self, addr, size, step, pc);
        return;
    }
    rf_busy_end(self);
    if (__builtin_expect(self->wants_sweep, 0))
        rf_sweep(self);
}

static __attribute__((noinline)) void slow_access(struct rf_step *step, uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size)
{
    if (__builtin_expect(rf_detour, 0) && rf_escape_leaves) {
        bool filtered = rf_escape_filters(step->self, addr, size);
        rf_escape_stores(addr, size, step->flags);
        if (filtered) {
            rf_busy_end(step->self);
            return;
        }
    }
    slow_granule(step, addr, mask & 0xff, pc, size);
    if (mask > 0xff) {
        struct rf_step rest = { .self = step->self, .flags = step->flags };
        slow_granule(&rest, addr + RF_GRANULE, mask >> RF_GRANULE, pc, size);
        if (!step->race) {
            step = &rest;
            addr += size > RF_GRANULE ? RF_GRANULE : 0;
        }
        slow_end(step, addr, size > RF_GRANULE ? RF_GRANULE : size, pc); /* of two whole granules only one is known to race */
        return;
    }
    slow_end(step, addr, size, pc);
}

/* The same for one that begins here; not inlined, so that the step of those who call it stays in registers. */
static __attribute__((noinline)) void slow_busy(struct rf_self *self, uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size,
                                                unsigned flags)
{
    struct rf_step step = { .self = self, .flags = flags };
    slow_access(&step, addr, mask, pc, size);
}

/* The same where what nearly all accesses do is not enough. */
static __attribute__((noinline)) void slow_detour(struct rf_self *self, uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size,
                                                  unsigned flags)
{
    struct rf_step step = { .self = self, .flags = flags, .passes = rf_pacer_outside() };
    struct rf_found race;
    rf_busy_begin(self);
    if (!step.passes) {
        slow_access(&step, addr, mask, pc, size);
        return;
    }
    bool races = mask <= 0xff ? rf_pacer_granule(rf_word(addr), mask, &step) : rf_pacer_step(self, addr, size, flags, pc, &race);
    if (__builtin_expect(races && mask <= 0xff, 0))
        race = rf_found_by(&step, addr, size, rf_moment_note_here(self, pc, flags, size));
    rf_busy_end(self);
    if (__builtin_expect(races, 0))
        rf_tell_race(self, addr, size, flags, pc, &race);
}

/* The same for MultiLock-HB. */
static __attribute__((noinline)) bool multi_at_once(struct rf_step *step, uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size)
{
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    bool again;
    if ((word & RF_ODD_BIT) || !(step->now = rf_moment_at_hand(step->self, rf_access_key(pc, step->flags, size))) ||
        !rf_multi_quick(step, word, mask, &next, &again) ||
        !__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    rf_touch(place);
    if (again)
        rf_keep_step(step->self, word, next, pc, addr, size, step->flags, 0);
    return true;
}

/* The step stays in registers. Where hooks would not see afterwards that the access was made, it is kept for them. */
static inline __attribute__((always_inline)) bool at_once(struct rf_self *self, uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size,
                                                          unsigned flags, bool fasttrack)
{
    struct rf_step step = { .self = self, .flags = flags, .fasttrack = fasttrack };
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    if (repeats_earlier_block(self, word, mask, flags) && (fasttrack || __builtin_expect(!rf_multi, 1)))
        return true;
    if (rf_hot.top > self->frames && !rf_hot.top[-1].node) /* the first access in a function that was entered */
        rf_depot_node(self);
    if (!fasttrack && __builtin_expect(rf_multi, 0))
        return multi_at_once(&step, addr, mask, pc, size);
    if (RF_WORD_Y(word) - rf_hot.first < rf_hot.span) {
        if (!joins(&step, place, word, mask, pc, size))
            return false;
        if (mask == 0xff && (*place & RF_ODD_BIT))
            rf_seen_put(addr, mask, flags);
        return true;
    }
    if (rf_word_has_units(word)) {
        bool stepped = !rf_word_has_lanes(word) && rf_units_access(self, place, word, mask, pc, size, flags);
        if (stepped)
            rf_seen_put(addr, mask, flags);
        return stepped;
    }
    if ((word & RF_ODD_BIT) || !(step.now = rf_moment_at_hand(self, rf_access_key(pc, flags, size))) ||
        !rf_word_quick(&step, word, mask, &next) ||
        !__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    rf_touch(place);
    if (RF_WORD_Y(next) != step.now)
        rf_seen_put(addr, mask, flags);
    else
        rf_keep_step(self, word, next, pc, addr, size, flags, 0);
    return true;
}

/* A locked instruction waits for its line of the cache and lets nothing else go ahead. */
static inline void fetch_for_writing(const uint64_t *place)
{
    __asm__ volatile("prefetchw %0" : : "m"(*place));
}

/* The patch was given back in the meantime (clear_words()), or was never touched. */
static __attribute__((noinline)) void end_touching(struct rf_self *self, uint64_t *place)
{
    rf_touch(place);
    rf_busy_end(self);
}

/* The same for who was not busy: with pacer there are locks on the way, and a fork waits for those who are busy. */
static __attribute__((noinline)) void touch_busily(struct rf_self *self, uint64_t *place)
{
    rf_busy_begin(self);
    end_touching(self, place);
}

static void any_access(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags);
static void accu_word_access(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags);

/* FastTrack's access to a part or all of one granule, with nothing else to be thought of (rf_slow_access): one text for reads and one for
 * writes. */
static inline __attribute__((always_inline)) void word_access(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    unsigned mask = ((1u << size) - 1) << addr % RF_GRANULE;
    if (__builtin_expect(mask > 0xff || rf_accu, 0)) {
        rf_accu ? accu_word_access(self, addr, pc, size, flags) : any_access(addr, pc, size, flags);
        return;
    }
    rf_busy_begin(self);
    if (__builtin_expect(!at_once(self, addr, mask, pc, size, flags, true), 0))
        slow_busy(self, addr, mask, pc, size, flags);
    else
        rf_busy_end(self);
}

static __attribute__((noinline)) void word_read(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    word_access(self, addr, pc, size, flags & ~RF_A_WRITE);
}

static __attribute__((noinline)) void word_write(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    word_access(self, addr, pc, size, flags | RF_A_WRITE);
}

/* AccuLock's access to a granule that had lanes a moment ago. Nothing but such an access is to be done (rf_slow_access). */
static __attribute__((noinline)) void accu_lanes_access(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    unsigned mask = ((1u << size) - 1) << addr % RF_GRANULE;
    rf_busy_begin(self);
    if (rf_hot.top > self->frames && !rf_hot.top[-1].node) /* the first access in a function that was entered */
        rf_depot_node(self);
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    struct rf_step step = { .self = self, .flags = flags };
    bool stepped = rf_word_has_lanes(word) && mask <= 0xff && (step.now = rf_moment_at_hand(self, rf_access_key(pc, flags, size))) &&
                   rf_accu_units_step(place, word, mask, &step);
    if (__builtin_expect(step.race, 0)) {
        rf_end_with_race(self, addr, size, &step, pc);
        return;
    }
    rf_busy_end(self);
    if (__builtin_expect(!stepped, 0))
        any_access(addr, pc, size, flags);
}

/* AccuLock's access to a granule. Nothing but such an access is to be done (rf_slow_access). What has a record, or is a read of a map, is
 * nearly always done where it lies; then hooks do not see in the word that it was made. */
static __attribute__((noinline)) void accu_word_access(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    unsigned mask = ((1u << size) - 1) << addr % RF_GRANULE;
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    bool record = rf_word_is_record(word);
    if (rf_word_has_lanes(word) && mask <= 0xff) {
        accu_lanes_access(self, addr, pc, size, flags);
        return;
    }
    if (rf_multi || mask > 0xff || !(record || (rf_word_has_map(word) && !(flags & RF_A_WRITE)))) {
        any_access(addr, pc, size, flags);
        return;
    }
    rf_busy_begin(self);
    struct rf_step step = { .self = self, .flags = flags };
    unsigned known = record ? repeated_bytes(place, word, mask, flags) : repeats_in_set(place, word, mask) ? mask : 0;
    if (!known) {
        if (rf_hot.top > self->frames && !rf_hot.top[-1].node) /* the first access in a function that was entered */
            rf_depot_node(self);
        step.now = rf_moment_at_hand(self, rf_access_key(pc, flags, size));
        if (step.now && (record ? rf_accu_units_step(place, word, mask, &step) : rf_accu_reads_map(place, word, mask, &step)))
            known = mask;
    }
    if (__builtin_expect(step.race, 0)) {
        rf_end_with_race(self, addr, size, &step, pc);
        return;
    }
    if (known)
        rf_seen_put(addr, known, flags);
    rf_busy_end(self);
    if (__builtin_expect(!known, 0))
        any_access(addr, pc, size, flags);
}

static inline __attribute__((always_inline)) void accu_first(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    bool other = rf_multi || (flags & RF_A_WRITE && rf_word_is_record(__atomic_load_n(rf_word(addr), __ATOMIC_RELAXED)));
    if (other || !accu_first_access(self, addr, pc, size, flags))
        accu_word_access(self, addr, pc, size, flags);
    else if (__builtin_expect(self->pending_signals, 0))
        rf_signals_deliver();
}

typedef void way(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, struct rf_self *self);

static __attribute__((noinline)) void accu_other(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, struct rf_self *self)
{
    accu_first(self, addr, pc, size, flags);
}

static inline __attribute__((always_inline)) void first_or_word(struct rf_self *self, uintptr_t addr, uintptr_t pc, unsigned size,
                                                                 unsigned flags)
{
    /* Hooks look for less of what an access to two granules may repeat. */
    if (addr % RF_GRANULE + size > RF_GRANULE && rf_skip_repeated(addr, addr + size, flags & RF_A_WRITE) == addr + size)
        return;
    if (__builtin_expect(first_access(self, addr, pc, size, flags), 1)) {
        if (__builtin_expect(self->pending_signals, 0))
            rf_signals_deliver();
    } else if (flags & RF_A_WRITE) {
        word_write(self, addr, pc, size, flags);
    } else {
        word_read(self, addr, pc, size, flags);
    }
}

static __attribute__((noinline)) void other_read(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, struct rf_self *self)
{
    first_or_word(self, addr, pc, size, flags & ~RF_A_WRITE);
}

static __attribute__((noinline)) void other_write(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, struct rf_self *self)
{
    first_or_word(self, addr, pc, size, flags | RF_A_WRITE);
}

static inline void other_access(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, struct rf_self *self)
{
    if (__builtin_expect(rf_accu, 0))
        accu_other(addr, pc, size, flags, self);
    else if (flags & RF_A_WRITE)
        other_write(addr, pc, size, flags, self);
    else
        other_read(addr, pc, size, flags, self);
}

/* The thread is where the step was made, in the same epoch, with the same locks. */
static inline bool is_here(const struct rf_self *self, const struct rf_last_step *last)
{
    return last->first == rf_hot.first && last->top == rf_hot.top && last->node == rf_hot.top[-1].node && last->locks == self->locks;
}

/* What it raced with, if it did, is not ordered since: then the race is told, and once is enough (rf_accu_tells_once). */
static inline __attribute__((always_inline)) bool still_races(const struct rf_self *self, const struct rf_last_step *last)
{
    return __builtin_expect(!last->race, 1) || !ordered(self, last->race);
}

/* The step on a word like the one that the last step from this place was on. */
static __attribute__((noinline)) void repeat_step(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, struct rf_self *self)
{
    const struct rf_last_step *last = rf_last_step_of(self, pc);
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED); /* as rf_busy_begin(), but nobody waits here */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint32_t how = rf_how_of(addr, size, flags);
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_RELAXED), next = last->next;
    bool same = word == last->old && last->how == how;
    if (!same && !((word ^ next) << 8) && !((last->how ^ how) << 16)) { /* but for M, and for the offset */
        uint64_t mask = (uint64_t)((1u << size) - 1) << addr % RF_GRANULE;
        next = word | mask << 56;
        bool is_pair = rf_cell_is_pair(RF_WORD_X(next)), is_whole = RF_WORD_M(next) == 0xff;
        if (is_whole && (word & RF_WRITES_BIT)) /* as rf_word_join() does: no byte is left that X speaks of */
            next &= ~RF_MOMENT_MASK;
        same = mask <= 0xff && !(is_whole && is_pair) &&
               (__builtin_expect(!rf_accu, 1) || !(is_pair || (last->race && flags & RF_A_WRITE)));
    }
    bool stepped = same && !__atomic_load_n(&rf_world_stopping, __ATOMIC_ACQUIRE) && last->pc == pc && is_here(self, last) &&
                still_races(self, last) &&
                __atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (stepped)
        fetch_for_writing(place + 16); /* the next ones are likely to be last written by another core: one line is replaced, one is on its way */
    if (__builtin_expect(stepped && *rf_touched(place) != 1, 0)) {
        end_touching(self, place);
        return;
    }
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(!stepped, 0))
        other_access(addr, pc, size, flags, self);
    else if (__builtin_expect(self->pending_signals, 0))
        rf_signals_deliver();
}

/* A step like the last one from this place, but perhaps not on an equal word. */
static __attribute__((noinline)) void repeat_more(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, struct rf_self *self)
{
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_RELAXED);
    const struct rf_last_step *last = rf_last_step_of(self, pc);
    /* The word that it made, with other bytes. For that the thread need not be busy: a sweep leaves the moments of its epoch their names, and
     * changes the word if it changes X; what a signal handler does comes after the look, or changes the word. */
    uint64_t mask = (uint64_t)((1u << size) - 1) << addr % RF_GRANULE, next = word | mask << 56;
    bool more = !((word ^ last->next) << 8);
    if (!more && word != last->old) {
        other_access(addr, pc, size, flags, self);
        return;
    }
    if (more && !((last->how ^ rf_how_of(addr, size, flags)) << 16) && mask <= 0xff && RF_WORD_M(next) != 0xff && is_here(self, last) &&
        (__builtin_expect(!rf_accu, 1) || !(last->race || rf_cell_is_pair(RF_WORD_X(word)))) &&
        __atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (__builtin_expect(*rf_touched(place) != 1, 0))
            touch_busily(self, place);
        return;
    }
    repeat_step(addr, pc, size, flags, self);
}

/* The same step on an equal word; the thread is busy then. Before it was, a sweep may have ended the step, and a handler may have kept one of
 * its own in its place: that is from another stack, perhaps to other bytes. */
static inline __attribute__((always_inline)) bool repeat_equal(struct rf_self *self, const struct rf_last_step *last, uint64_t *place,
                                                               uintptr_t pc, uint32_t how)
{
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED); /* as rf_busy_begin(), but nobody waits here */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t old = __atomic_load_n(&last->old, __ATOMIC_RELAXED);
    if (__builtin_expect(!__atomic_load_n(&rf_world_stopping, __ATOMIC_ACQUIRE) && __atomic_load_n(&last->pc, __ATOMIC_RELAXED) == pc, 1) &&
        last->node == rf_hot.top[-1].node && last->locks == self->locks && last->how == how && still_races(self, last) &&
        __builtin_expect(__atomic_compare_exchange_n(place, &old, last->next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE), 1)) {
        fetch_for_writing(place + 16); /* the next ones are likely to be last written by another core: one line is replaced, one is on its way */
        return true;
    }
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return false;
}

/* Nothing of what is behind the shortest ways is asked for: the thread is known, looks at accesses and is not busy, and nobody but a detector
 * wants to hear of them. */
static inline __attribute__((always_inline)) bool is_usual(const struct rf_self *self)
{
    return __builtin_expect(self && !(self->inside | self->busy | self->ignore_reads | self->ignore_writes | self->in_txn) &&
                                !rf_world_fences && !rf_tap && !rf_detour, 1);
}

/* The end of a step that was made here. The thread is busy. */
static inline __attribute__((always_inline)) void end_quickly(struct rf_self *self, uint64_t *place)
{
    if (__builtin_expect(*rf_touched(place) != 1, 0)) {
        end_touching(self, place);
        return;
    }
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(self->pending_signals, 0))
        rf_signals_deliver();
}

/* Where the hot hooks go on: a leaf for what is most frequent, with the stack in those that it jumps to. */
static inline __attribute__((always_inline)) void hook_goes_on(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, way *other,
                                                               way *accu)
{
    struct rf_self *self = rf_hot.self;
    if (!is_usual(self)) {
        any_access(addr, pc, size, flags);
        return;
    }
    const struct rf_last_step *last = rf_last_step_of(self, pc);
    uint64_t *place = rf_word(addr), word;
    if (last->pc != pc || last->first != rf_hot.first || last->top != rf_hot.top ||
        ((word = __atomic_load_n(place, __ATOMIC_RELAXED)) != last->old && (word ^ last->next) << 8)) {
        if (__builtin_expect(rf_accu, 0))
            accu(addr, pc, size, flags, self);
        else
            other(addr, pc, size, flags, self);
        return;
    }
    if (word != last->old || !repeat_equal(self, last, place, pc, rf_how_of(addr, size, flags))) {
        repeat_more(addr, pc, size, flags, self);
        return;
    }
    end_quickly(self, place);
}

void rf_slow_access(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    hook_goes_on(addr, pc, size, flags, other_access, accu_other);
}

enum named { HAS_NONE, HAS_NODE, IS_REPEATED };

/* The thread's stack gets its node, which the first access in a function that was entered has to see to: if it is one that counts. Fences that are
 * needed since it waited here (guest/world.c, 2) are not what first_turn() has: the other ways have them. */
static __attribute__((noinline)) enum named name_stack(struct rf_self *self, uintptr_t addr, unsigned size, unsigned flags)
{
    rf_busy_begin(self);
    bool repeats = repeats_earlier_block(self, __atomic_load_n(rf_word(addr), __ATOMIC_RELAXED), first_mask(addr, size), flags);
    enum named named = repeats ? IS_REPEATED : rf_depot_node(self) && !rf_world_fences ? HAS_NODE : HAS_NONE;
    rf_busy_end(self);
    return named;
}

static inline __attribute__((always_inline)) void units_access(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags, struct rf_self *self,
                                                               way *other)
{
    bool stepped = first_units(self, addr, pc, size, flags);
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(!stepped, 0))
        other(addr, pc, size, flags, self);
    else if (__builtin_expect(self->pending_signals, 0))
        rf_signals_deliver();
}

/* The same where size and flags are constants: what comes next, and is not a repetition, knows them, too. */
#define SLOW(kind, size, flags)                                                                                                     \
    static __attribute__((noinline)) void units_##kind##size(uintptr_t addr, uintptr_t pc, unsigned unused, unsigned unused_too,    \
                                                             struct rf_self *self)                                                  \
    {                                                                                                                               \
        (void)unused, (void)unused_too;                                                                                             \
        units_access(addr, pc, size, flags, self, other_##kind);                                                                    \
    }                                                                                                                               \
    static __attribute__((noinline)) void accu_##kind##size(uintptr_t addr, uintptr_t pc, unsigned unused, unsigned unused_too,     \
                                                            struct rf_self *self)                                                   \
    {                                                                                                                               \
        (void)unused, (void)unused_too;                                                                                             \
        accu_first(self, addr, pc, size, flags);                                                                                    \
    }                                                                                                                               \
    static __attribute__((noinline)) void turn_##kind##size(uintptr_t addr, uintptr_t pc, unsigned unused, unsigned unused_too,     \
                                                            struct rf_self *self);                                                  \
    static __attribute__((noinline)) void named_##kind##size(uintptr_t addr, uintptr_t pc, unsigned unused, unsigned unused_too,    \
                                                             struct rf_self *self)                                                  \
    {                                                                                                                               \
        enum named named = name_stack(self, addr, size, flags);                                                                     \
        if (__builtin_expect(named == HAS_NODE, 1))                                                                                 \
            turn_##kind##size(addr, pc, unused, unused_too, self);                                                                  \
        else if (named == HAS_NONE)                                                                                                 \
            other_##kind(addr, pc, size, flags, self);                                                                              \
    }                                                                                                                               \
    static __attribute__((noinline)) void turn_##kind##size(uintptr_t addr, uintptr_t pc, unsigned unused, unsigned unused_too,     \
                                                            struct rf_self *self)                                                   \
    {                                                                                                                               \
        uint64_t word = __atomic_load_n(rf_word(addr), __ATOMIC_ACQUIRE);                                                           \
        if (rf_word_has_units(word)) {                                                                                              \
            units_##kind##size(addr, pc, unused, unused_too, self);                                                                 \
        } else if (!turns(word, addr, size, flags)) {                                                                               \
            other_##kind(addr, pc, size, flags, self);                                                                              \
        } else if (!first_node(self)) {                                                                                             \
            named_##kind##size(addr, pc, unused, unused_too, self);                                                                 \
        } else if (__builtin_expect(first_turn(self, word, addr, pc, size, flags), 1)) {                                            \
            end_quickly(self, rf_word(addr));                                                                                       \
        } else {                                                                                                                    \
            __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);                                                                     \
            __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                                                \
            other_##kind(addr, pc, size, flags, self);                                                                              \
        }                                                                                                                           \
    }                                                                                                                               \
    void rf_slow_##kind##size(uintptr_t addr, uintptr_t pc)                                                                         \
    {                                                                                                                               \
        hook_goes_on(addr, pc, size, flags, turn_##kind##size, accu_##kind##size);                                                  \
    }
#define SLOW_BOTH(size) SLOW(read, size, 0) SLOW(write, size, RF_A_WRITE)
RF_SLOW_SIZES(SLOW_BOTH)

bool rf_access_quickly(uintptr_t addr, unsigned size, unsigned flags, uintptr_t pc)
{
    struct rf_self *self = rf_hot.self;
    if (!is_usual(self) || __builtin_expect(rf_accu, 0))
        return false;
    if (rf_skip_repeated(addr, addr + size, flags) == addr + size)
        return true;
    if (!first_access(self, addr, pc, size, flags))
        return false;
    if (__builtin_expect(self->pending_signals, 0))
        rf_signals_deliver();
    return true;
}

/* What the hot hooks of 8 bytes know, for a whole granule. */
static inline bool whole_repeats(uintptr_t addr, unsigned flags)
{
    const uint64_t *place = rf_word(addr);
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (rf_word_repeats_plainly(word, 0xff, flags))
        return true;
    return !(flags & RF_A_WRITE) && rf_shared_has_now(place, word);
}

/* Two whole granules, as vectors are: each by the quick ways of an access to one. */
static __attribute__((noinline)) void two_granules(uintptr_t addr, uintptr_t pc, unsigned flags)
{
    if (!whole_repeats(addr, flags))
        rf_slow_access(addr, pc, RF_GRANULE, flags);
    if (!whole_repeats(addr + RF_GRANULE, flags))
        rf_slow_access(addr + RF_GRANULE, pc, RF_GRANULE, flags);
}

/* Nearly always an access to what was last accessed in an earlier epoch, which happens before this one, or to more bytes of a granule that
 * this epoch has accessed: at_once(). The others are in slow_access(). */
static __attribute__((noinline)) void any_access(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    struct rf_self *self = rf_hot.self;
    unsigned mask = ((1u << size) - 1) << addr % RF_GRANULE;
    size_t most = __builtin_expect(rf_refuses, 0) ? RF_GRANULE : 2 * RF_GRANULE;
    if (__builtin_expect(!self || (self->inside | self->busy | self->ignore_reads | self->ignore_writes | self->in_txn) ||
                             addr % RF_GRANULE + size > most, 0)) {
        rf_access(addr, size, flags, pc);
        rf_escape_stores(addr, size, flags);
        return;
    }
    if (__builtin_expect(rf_tap != NULL, 0) && rf_tap_access(self, addr, size, flags, pc))
        return;
    if (__builtin_expect(rf_detour, 0)) {
        slow_detour(self, addr, mask, pc, size, flags);
        return;
    }
    if (mask == 0xffff && most > RF_GRANULE && !rf_tap) { /* a tap has heard of it, and would hear of its halves */
        two_granules(addr, pc, flags);
        return;
    }
    rf_busy_begin(self);
    if (__builtin_expect(mask > 0xff || !at_once(self, addr, mask, pc, size, flags, false), 0))
        slow_busy(self, addr, mask, pc, size, flags);
    else
        rf_busy_end(self);
}
