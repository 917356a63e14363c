/* The long way of an access: what the hot hooks (guest/hooks.S) do not decide by themselves.
 *
 * 1. One step on a granule is atomic: a word is replaced by compare-and-swap, and one that has units (guest/units.h), or is to have
 *    any, under the lock of its stripe. So of two racing accesses the hook that comes second sees what the first one left.
 * 2. A moment is in RF_NOTES and rf_moment_blocks before a word names it; on x86 nobody sees these stores in another order.
 * 3. The thread is busy (guest/self.h) from the look at the word to its replacement: sweeps and signal handlers wait that long.
 */
#include "guest/access.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest/annotations.h"
#include "guest/escape.h"
#include "guest/granule.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/nearby.h"
#include "guest/objects.h"
#include "guest/pacer.h"
#include "guest/policy.h"
#include "guest/records.h"
#include "guest/refusal.h"
#include "guest/seen.h"
#include "guest/start.h"
#include "guest/sweep.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/transactions.h"
#include "guest/verdict.h"


/* Of its patch, or, with 2 in its place, every time. */
static __attribute__((noinline)) void touch_first(uint64_t *word, uint8_t *touched)
{
    if (*touched != 1 + rf_pacer) {
        *touched = 1 + rf_pacer;
        rf_districts[((uintptr_t)touched - RF_TOUCHED) >> 12] = 1;
    }
    if (rf_pacer)
        rf_pacer_sets(rf_hot.self, word);
}

/* After the word was set, by an instruction that is a fence, too: clear_words() says why. */
static inline void touch(uint64_t *word)
{
    uint8_t *touched = rf_touched(word);
    if (__builtin_expect(*touched != 1, 0))
        touch_first(word, touched);
}

static void touch_range(uint64_t *from, uint64_t *to)
{
    size_t step = (__builtin_expect(rf_pacer, 0) ? (size_t)1 << RF_LINE_BITS : RF_PATCH) / sizeof *from;
    for (uint64_t *word = from; word < to; word += step)
        touch(word);
    touch(to - 1);
}

/* The units that the slices name are given back. */
static void end_units(struct rf_slices *slices, struct rf_step *step)
{
    for (unsigned i = 0; i < slices->count; i++)
        ftm_clear(step, &slices->list[i].cell);
}

void rf_word_end_record(struct rf_stripe *stripe, uint64_t word)
{
    if (rf_word_is_record(word) && RF_WORD_M(word)) /* not RF_CLOSED */
        rf_record_end(stripe, RF_WORD_X(word), RF_WORD_M(word));
}

void rf_record_end_unless(struct rf_stripe *stripe, uint64_t old, uint64_t next)
{
    bool same_kind = (RF_WORD_M(old) > RF_RECORD_FEW) == (RF_WORD_M(next) > RF_RECORD_FEW);
    if (!rf_word_is_record(next) || !same_kind || RF_WORD_X(old) != RF_WORD_X(next))
        rf_word_end_record(stripe, old);
}

__attribute__((noinline)) void rf_step_locked(uint64_t *place, unsigned mask, struct rf_step *step)
{
    struct rf_slices slices;
    struct rf_stripe *stripe = step->stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE), quick, held = word;
    rf_word_hold(held);
    bool refuses = __builtin_expect(rf_refuses, 0) && !step->allowed && !step->self->late;
    if (!step->passes && rf_locked_quick(place, step, word, mask, &quick)) {
        uint64_t old = word;
        if (quick == word || __atomic_compare_exchange_n(place, &word, quick, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            rf_record_end_unless(stripe, old, quick);
            rf_word_let_go(held);
            rf_spin_unlock(&stripe->lock);
            return;
        }
        rf_word_end_record(stripe, quick);
    }
    for (;;) {
        step->race = 0;
        rf_slices_of(word, &slices);
        if (refuses && rf_slices_race(&slices, mask, step))
            break;
        rf_slices_step(&slices, mask, step);
        uint64_t next = rf_slices_word(&slices, step, word), old = word;
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            rf_record_end_unless(stripe, old, next);
            break;
        }
        /* Only a word without units changes while the lock is held; then all units there are now are new. */
        rf_word_end_record(stripe, next);
        end_units(&slices, step);
    }
    rf_word_let_go(held);
    rf_spin_unlock(&stripe->lock);
}

/* One granule. The thread is busy. Returns the moment that the access races with, or 0. */
static inline uint32_t step_granule(uint64_t *place, uint64_t word, unsigned mask, struct rf_step *step)
{
    uint64_t next;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0)) {
        rf_policy_step(place, mask, step);
        return step->race;
    }
    step->race = 0;
    bool atomic = step->flags & RF_A_ATOMIC;
    if (__builtin_expect(rf_accu && !atomic, 0))
        while (!rf_word_has_units(word) && rf_word_accu(step, word, mask, &next))
            if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return step->race;
    step->race = 0;
    step->made = 0;
    if (__builtin_expect(rf_accu && !(step->flags & (RF_A_WRITE | RF_A_ATOMIC)), 0) && rf_accu_reads_map(place, word, mask, step))
        return 0;
    while (!rf_word_has_units(word) &&
           (atomic ? rf_word_atomic_quick(step, word, mask, &next) : rf_word_quick(step, word, mask, &next)))
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return 0;
    rf_step_locked(place, mask, step);
    return step->race;
}

static bool is_ignored(const struct rf_self *self, unsigned flags)
{
    return self->inside || (flags & RF_A_WRITE ? self->ignore_writes : self->ignore_reads);
}

/* What a step raced with. The thread is still busy: afterwards a sweep may give the moments' names to others. */
static struct rf_found race_of(const struct rf_step *step, uintptr_t addr, size_t size)
{
    return rf_found_by(step, addr, size, rf_moment_note(step->now));
}

/* AccuLock finds the same race again at each address that is handed over in one way: one that was told is not told again. What guest/nearby.h
 * would say of another place in the earlier granule is not asked then. */
static bool was_told(struct rf_self *self, const struct rf_found *race)
{
    uint64_t notes = (uint64_t)race->earlier << 32 | race->note;
    uint32_t how = race->mask << 1 | race->writes;
    if (!rf_accu || !rf_accu_tells_once() || race->flags & RF_A_ATOMIC)
        return false;
    if (!self->told) {
        rf_busy_begin(self); /* no handler of the program comes in between */
        self->told = self->told ? self->told : rf_take(RF_TOLD * sizeof *self->told);
        rf_busy_end(self);
    }
    struct rf_told *told = &self->told[(notes * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
    bool same = told->notes == notes && told->how == how;
    *told = (struct rf_told){ notes, how };
    return same;
}

/* The access races. If it is refused this does not come back, or it is allowed after all and recorded now. */
static __attribute__((noinline)) void tell_race(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc,
                                                const struct rf_found *race)
{
    if (!was_told(self, race) && rf_race_found(self, race) && rf_refuses && !self->late)
        rf_access_allowed(self, addr, size, flags, pc);
}

/* The end of an access that races. */
static __attribute__((noinline)) void end_with_race(struct rf_self *self, uintptr_t addr, size_t size, const struct rf_step *step,
                                                    uintptr_t pc)
{
    struct rf_found race = race_of(step, addr, size);
    rf_busy_end(self);
    tell_race(self, addr, size, step->flags, pc, &race);
    if (self->wants_sweep)
        rf_sweep(self);
}

/* All bytes of the mask were accessed in this epoch, in a word of the two plain forms. */
static inline bool repeats_plainly(uint64_t word, unsigned mask, unsigned flags)
{
    uint64_t moment = word >> 28 & RF_MOMENT_MASK;
    return !(mask & ~RF_WORD_M(word)) && !(word & RF_ODD_BIT) && moment - rf_hot.first < rf_hot.span &&
           (!(flags & RF_A_WRITE) || (word & RF_WRITES_BIT));
}

/* How many words from here on say that all of their granules was accessed in this epoch. Neighbours often have equal words: those are
 * only compared. */
static size_t count_repeated(const uint64_t *word, size_t count, unsigned flags)
{
    size_t i = 0;
    while (i < count) {
        uint64_t first = __atomic_load_n(&word[i], __ATOMIC_RELAXED);
        if (!repeats_plainly(first, 0xff, flags))
            break;
        for (i++; i + 4 <= count; i += 4) {
            uint64_t difference = (__atomic_load_n(&word[i], __ATOMIC_RELAXED) ^ first) |
                                  (__atomic_load_n(&word[i + 1], __ATOMIC_RELAXED) ^ first) |
                                  (__atomic_load_n(&word[i + 2], __ATOMIC_RELAXED) ^ first) |
                                  (__atomic_load_n(&word[i + 3], __ATOMIC_RELAXED) ^ first);
            if (difference)
                break;
        }
        while (i < count && __atomic_load_n(&word[i], __ATOMIC_RELAXED) == first)
            i++;
    }
    return i;
}

/* Two words at once: the compare-and-swap is what a range costs. Places at an odd number of words go one by one. */
static inline bool replace_two(uint64_t *place, uint64_t old, uint64_t next)
{
    uint64_t low = old, high = old;
    bool done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*(unsigned __int128 *)place), "+a"(low), "+d"(high)
                     : "b"(next), "c"(next)
                     : "memory");
    return done;
}

/* Words from here on that are equal to `old` get `next`, as one step each would make them. Returns how many. */
static size_t replace_equal(uint64_t *place, size_t count, uint64_t old, uint64_t next)
{
    size_t i = 0;
    while (i < count && __atomic_load_n(&place[i], __ATOMIC_RELAXED) == old) {
        if ((uintptr_t)&place[i] % 16 == 0 && i + 1 < count && replace_two(&place[i], old, next)) {
            i += 2;
            continue;
        }
        uint64_t word = old;
        if (!__atomic_compare_exchange_n(&place[i], &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            break;
        i++;
    }
    return i;
}

#define RANGE_AT_ONCE 65536u /* granules that are looked at between two times of not being busy: a long range must not hold up a sweep */

/* All granules of an access. The thread is busy. True: it races, with that; if such are refused, nothing of it is recorded from that
 * granule on. */
static bool step_all(struct rf_step *step, uintptr_t addr, size_t size, uintptr_t pc, struct rf_found *race)
{
    struct rf_self *self = step->self;
    uintptr_t end = addr + size;
    unsigned flags = step->flags;
    size_t turns = 0;
    bool races = false, runs = rf_policy == RF_POLICY_CAS || (rf_policy == RF_POLICY_FIB && !rf_policy_no_hot);
    while (addr < end) {
        unsigned offset = addr % RF_GRANULE, length = RF_GRANULE - offset;
        if (length > end - addr)
            length = (unsigned)(end - addr);
        unsigned mask = ((1u << length) - 1) << offset;
        uint64_t *place = rf_word(addr), word, next = 0;
        bool alike = false; /* the step made a word of a word: so it does of all that are equal */
        size_t whole = mask == 0xff && !(flags & RF_A_ATOMIC) ? (end - addr) / RF_GRANULE : 0;
        if (whole > RANGE_AT_ONCE)
            whole = RANGE_AT_ONCE;
        size_t done = whole ? count_repeated(place, whole, flags) : 0;
        if (done)
            goto next;
        word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        done = 1;
        if (rf_policy_no_hot || !rf_word_repeats(place, word, mask, flags)) {
            if (!step->now)
                step->now = rf_moment_now(self, pc, flags, size);
            if (step->now) {
                alike = whole > 1 && runs && !rf_word_has_units(word) && rf_word_quick(step, word, 0xff, &next);
                if (step_granule(place, word, mask, step) && !races) {
                    *race = race_of(step, addr, length); /* what lies in this granule: only that is known to race */
                    races = true;
                    if (rf_refuses && !step->allowed && !self->late)
                        break;
                }
                if (__builtin_expect(whole > 1 && step->made && step->old == word, 0)) { /* AccuLock, and perhaps a race */
                    alike = true;
                    next = step->made;
                }
            }
        }
        touch(place);
        if (alike) {
            done += rf_policy == RF_POLICY_FIB && word ? rf_fib_equal(self, place + 1, whole - 1, word, next)
                                                       : replace_equal(place + 1, whole - 1, word, next);
            touch_range(place, place + done);
        }
    next:
        addr += whole ? done * RF_GRANULE : length;
        turns += done;
        if (turns >= RANGE_AT_ONCE) {
            rf_busy_end(self);
            rf_busy_begin(self);
            step->now = 0; /* a handler may have begun an epoch, a sweep may have given names to others */
            turns = 0;
        }
    }
    return races;
}

/* An atomic access, which nearly always lies in one granule. As step_all(). */
static bool step_atomic_access(struct rf_step *step, uintptr_t addr, size_t size, uintptr_t pc, struct rf_found *race)
{
    unsigned offset = addr % RF_GRANULE;
    if (__builtin_expect(offset + size > RF_GRANULE || rf_policy_no_hot, 0))
        return step_all(step, addr, size, pc, race);
    unsigned mask = ((1u << size) - 1) << offset;
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    bool same = rf_word_is_atomic(word) && rf_atomic_mask(word) == mask && rf_policy == RF_POLICY_CAS;
    if (rf_hot.span && (same ? rf_word_atomic_repeats(word, mask, step->flags & RF_A_WRITE)
                             : rf_word_repeats(place, word, mask, step->flags)))
        return false;
    step->now = rf_moment_at_hand(step->self, rf_access_key(pc, step->flags, size));
    if (!step->now && !(step->now = rf_moment_now(step->self, pc, step->flags, size)))
        return false;
    uint64_t next;
    if (__builtin_expect(same && rf_word_atomic_again(step, word, &next), 1) &&
        __atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        touch(place);
        return false;
    }
    bool races = step_granule(place, word, mask, step);
    touch(place);
    if (__builtin_expect(races, 0))
        *race = race_of(step, addr, size);
    return races;
}

void rf_access_allowed(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    struct rf_step step = { .self = self, .flags = flags, .allowed = true };
    struct rf_found known;
    bool mine = rf_busy_enter(self);
    step_all(&step, addr, size, pc, &known);
    rf_busy_leave(self, mine);
}

bool rf_access_noted(struct rf_self *self, uintptr_t granule, unsigned mask, unsigned flags, uint32_t note, struct rf_found *race)
{
    struct rf_step step = { .self = self, .flags = flags, .allowed = true };
    uint64_t *place = rf_word(granule);
    bool races = false;
    rf_busy_begin(self);
    step.passes = rf_pacer_outside();
    step.now = step.passes ? 0 : rf_moment_for(self, note, rf_note_locks(note));
    if (step.passes) {
        races = rf_pacer_granule(place, mask, &step);
    } else if (step.now) {
        races = step_granule(place, __atomic_load_n(place, __ATOMIC_ACQUIRE), mask, &step);
        touch(place);
    }
    if (races) {
        unsigned first = (unsigned)__builtin_ctz(mask), size = 32 - (unsigned)__builtin_clz(mask) - first;
        *race = rf_found_by(&step, granule + first, size, note);
        race->locks = rf_note_locks(note); /* those of then, not of now */
    }
    rf_busy_end(self);
    return races;
}

void rf_access(uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    struct rf_self *self = rf_hot.self;
    if (__builtin_expect(!self || is_ignored(self, flags) || self->busy || !size, 0)) {
        if (self || !rf_started || !(self = rf_self()) || is_ignored(self, flags) || !size)
            return;
    }
    if (__builtin_expect(self->in_txn, 0) && !(flags & RF_A_ATOMIC)) {
        rf_txn_access(self, addr, size, flags, pc);
        return;
    }
    if (__builtin_expect(rf_tap != NULL, 0) && rf_tap_access(self, addr, size, flags, pc))
        return;
    struct rf_step step = { .self = self, .flags = flags };
    struct rf_found race;
    bool whole = __builtin_expect(rf_refuses, 0) && addr % RF_GRANULE + size > RF_GRANULE && !self->late;
    bool races = whole && rf_would_race(self, addr, size, flags, pc, &race);
    if (!races) {
        rf_busy_begin(self);
        bool filtered = __builtin_expect(rf_detour, 0) && rf_escape_leaves && rf_escape_filters(self, addr, size);
        if (__builtin_expect(rf_detour, 0) && rf_pacer_outside())
            races = rf_pacer_step(self, addr, size, flags, pc, &race);
        else if (!filtered)
            races = flags & RF_A_ATOMIC ? step_atomic_access(&step, addr, size, pc, &race)
                                        : step_all(&step, addr, size, pc, &race);
        rf_busy_end(self);
    }
    if (__builtin_expect(races, 0))
        tell_race(self, addr, size, flags, pc, &race);
    if (__builtin_expect(self->wants_sweep, 0))
        rf_sweep(self);
}

bool rf_access_step(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc, struct rf_found *race)
{
    struct rf_step step = { .self = self, .flags = flags };
    if (__builtin_expect(rf_detour, 0) && rf_pacer_outside())
        return rf_pacer_step(self, addr, size, flags, pc, race);
    return flags & RF_A_ATOMIC ? step_atomic_access(&step, addr, size, pc, race) : step_all(&step, addr, size, pc, race);
}

void rf_range_refuse(uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    struct rf_self *self = rf_hot.self;
    struct rf_found race;
    if (rf_refuses && self && !self->busy && !self->late && !is_ignored(self, flags) && rf_would_race(self, addr, size, flags, pc, &race))
        rf_race_found(self, &race);
}

/* A moment of the present epoch is among the first of a read map. */
static inline bool is_in_few(const struct rf_readers *readers)
{
    for (unsigned i = 0; i < RF_FEW; i++) /* what lies beyond the count was a moment of an earlier epoch, or 0 */
        if (i < __atomic_load_n(&readers->count, __ATOMIC_RELAXED) &&
            __atomic_load_n(&readers->few[i], __ATOMIC_RELAXED) - rf_hot.first < rf_hot.span)
            return true;
    return false;
}

/* As repeats_plainly() for a record, in one look. See guest/units.h, 2. */
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
            mine = !is_many && is_in_few(readers);
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
    if (!is_in_few(readers))
        return false;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(place, __ATOMIC_RELAXED) == word;
}

/* The same for all that has units, or a pair. */
static inline bool repeats(const uint64_t *place, uint64_t word, unsigned mask, unsigned flags)
{
    if (!rf_word_has_units(word))
        return !(word & RF_ODD_BIT) && rf_cell_is_pair(RF_WORD_X(word)) && rf_word_repeats(place, word, mask, flags);
    if (word & RF_WRITES_BIT)
        return repeats_in_record(place, word, mask, flags);
    return flags & RF_A_WRITE ? rf_word_repeats(place, word, mask, flags) : repeats_in_set(place, word, mask);
}

static __attribute__((noinline)) void keep_place(struct rf_self *self, const uint64_t *place, unsigned mask, uint32_t moment,
                                                 uintptr_t pc, unsigned size, unsigned flags)
{
    bool same_locks = self->locks == rf_moment_locks(moment); /* else they are in the note */
    uint32_t note = same_locks ? rf_moment_place(self, pc, flags, size) : rf_moment_note_here(self, pc, flags, size);
    if (note != rf_moment_note(moment))
        rf_nearby_put(self, place, mask, moment, note);
}

/* The moment's own note tells the place of the access, too, and its locks. */
static inline bool is_of_moment(const struct rf_step *step, uint32_t moment, uintptr_t pc, unsigned size)
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
    if (__builtin_expect(rf_accu, 0) && is_of_moment(step, (uint32_t)moment, pc, size))
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

bool rf_seen_off;

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

static inline uint32_t how_of(uintptr_t addr, unsigned size, unsigned flags)
{
    return (unsigned)(addr % RF_GRANULE) << 16 | flags << 8 | size;
}

static inline struct rf_last_step *last_step_of(struct rf_self *self, uintptr_t pc)
{
    return &self->last_steps[((uint32_t)pc * UINT32_C(0x9e3779b9)) >> 29];
}

/* The frame is known. */
static inline void keep_step(struct rf_self *self, uint64_t old, uint64_t next, uintptr_t pc, uintptr_t addr, unsigned size,
                             unsigned flags, uint32_t race)
{
    *last_step_of(self, pc) = (struct rf_last_step){ old, next, pc, rf_hot.top, rf_hot.top[-1].node, self->locks,
                                                     how_of(addr, size, flags), (uint32_t)rf_hot.first, race };
}

/* The bytes of an access that lie in one granule, whatever its history is. The thread is busy. */
static __attribute__((noinline)) void slow_granule(struct rf_step *step, uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size)
{
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (repeats_plainly(word, mask, step->flags))
        return;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0)) {
        step->now = rf_moment_now(step->self, pc, step->flags, size);
        if (__builtin_expect(!step->now, 0))
            return;
        rf_policy_step(place, mask, step);
        touch(place);
        if ((*place & RF_ODD_BIT) && !step->race && !rf_policy_no_hot)
            rf_seen_put(addr, mask, step->flags);
        return;
    }
    if (__builtin_expect(rf_accu, 0)) /* the locks of the last write are asked for soon, and are far away */
        __builtin_prefetch((const struct rf_noted *)RF_NOTES + RF_WORD_X(word));
    if (!repeats(place, word, mask, step->flags) && !joins(step, place, word, mask, pc, size)) {
        step->now = rf_moment_at_hand(step->self, rf_access_key(pc, step->flags, size));
        if (!step->now && !(step->now = rf_moment_now(step->self, pc, step->flags, size)))
            return;
        step_granule(place, word, mask, step);
        touch(place);
        if (step->made && addr % RF_GRANULE + size <= RF_GRANULE && rf_accu_tells_once() && rf_hot.top > step->self->frames && rf_hot.top[-1].node)
            keep_step(step->self, step->old, step->made, pc, addr, size, step->flags, step->race); /* a race is going to be told */
    }
    if (!step->race && !repeats_plainly(*place, mask, step->flags)) /* hooks would not see it */
        rf_seen_put(addr, mask, step->flags);
}

/* The end of an access that came to slow_granule(). */
static void slow_end(const struct rf_step *step, uintptr_t addr, unsigned size, uintptr_t pc)
{
    struct rf_self *self = step->self;
    if (__builtin_expect(step->race, 0)) {
        end_with_race(self, addr, size, step, pc);
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
        tell_race(self, addr, size, flags, pc, &race);
}

/* The step stays in registers. Where hooks would not see afterwards that the access was made, it is kept for them. */
static inline __attribute__((always_inline)) bool at_once(struct rf_self *self, uintptr_t addr, unsigned mask, uintptr_t pc, unsigned size,
                                                          unsigned flags)
{
    struct rf_step step = { .self = self, .flags = flags };
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    if (rf_hot.top > self->frames && !rf_hot.top[-1].node) /* the first access in a function that was entered */
        rf_depot_node(self);
    if (RF_WORD_Y(word) - rf_hot.first < rf_hot.span) {
        if (!joins(&step, place, word, mask, pc, size))
            return false;
        if (mask == 0xff && (*place & RF_ODD_BIT))
            rf_seen_put(addr, mask, flags);
        return true;
    }
    if (rf_word_has_units(word)) {
        bool done = rf_units_access(self, place, word, mask, pc, size, flags);
        if (done)
            rf_seen_put(addr, mask, flags);
        return done;
    }
    if ((word & RF_ODD_BIT) || !(step.now = rf_moment_at_hand(self, rf_access_key(pc, flags, size))) ||
        !rf_word_quick(&step, word, mask, &next) ||
        !__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    touch(place);
    if (RF_WORD_Y(next) != step.now)
        rf_seen_put(addr, mask, flags);
    else
        keep_step(self, word, next, pc, addr, size, flags, 0);
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
    touch(place);
    rf_busy_end(self);
}

static void any_access(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags);

/* Where the hot hooks go on. Here is the step on a word like the one that the last step was on, without a call and without the stack; all
 * else is in any_access(). */
void rf_slow_access(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
    struct rf_self *self = rf_hot.self;
    const struct rf_last_step *last = self ? last_step_of(self, pc) : NULL;
    if (__builtin_expect(!self, 0) || last->pc != pc ||
        (self->inside | self->busy | self->ignore_reads | self->ignore_writes | self->in_txn) ||
        __builtin_expect(rf_world_fences || rf_tap || rf_detour, 0)) {
        any_access(addr, pc, size, flags);
        return;
    }
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED); /* as rf_busy_begin(), but nobody waits here */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint32_t how = how_of(addr, size, flags);
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_RELAXED), next = last->next;
    bool same = word == last->old && last->how == how;
    if (!same && !((word ^ next) << 8) && !((last->how ^ how) << 16)) { /* but for M, and for the offset */
        uint64_t mask = (uint64_t)((1u << size) - 1) << addr % RF_GRANULE;
        next = word | mask << 56;
        same = mask <= 0xff && RF_WORD_M(next) != 0xff && /* else X changes */
               (__builtin_expect(!rf_accu, 1) || !(rf_cell_is_pair(RF_WORD_X(next)) || (last->race && flags & RF_A_WRITE)));
    }
    bool done = same && !__atomic_load_n(&rf_world_stopping, __ATOMIC_ACQUIRE) && last->pc == pc && last->first == rf_hot.first &&
                last->top == rf_hot.top && last->node == rf_hot.top[-1].node && last->locks == self->locks &&
                (__builtin_expect(!last->race, 1) || !rf_step_ordered(&(struct rf_step){ .self = self }, last->race)) &&
                __atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (done)
        fetch_for_writing(place + 16); /* the next ones are likely to be last written by another core: one line is replaced, one is on its way */
    if (__builtin_expect(done && *rf_touched(place) != 1, 0)) {
        end_touching(self, place);
        return;
    }
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(!done, 0))
        any_access(addr, pc, size, flags);
    else if (__builtin_expect(self->pending_signals, 0))
        rf_signals_deliver();
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
    rf_busy_begin(self);
    if (__builtin_expect(mask > 0xff || !at_once(self, addr, mask, pc, size, flags), 0)) {
        struct rf_step step = { .self = self, .flags = flags };
        slow_access(&step, addr, mask, pc, size);
        return;
    }
    rf_busy_end(self);
}

void rf_word_touch(uint64_t *place)
{
    touch(place);
}

void rf_word_clear(uint64_t *place)
{
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    while (word && !rf_word_has_units(word))
        if (__atomic_compare_exchange_n(place, &word, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return;
    if (!word)
        return;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0))
        rf_policy_clear(place, 0xff);
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    rf_word_hold(word);
    if (rf_word_has_units(word)) {
        struct rf_slices slices;
        struct rf_step step = { .stripe = stripe };
        rf_slices_of(word, &slices);
        rf_word_end_record(stripe, word);
        end_units(&slices, &step);
    }
    __atomic_store_n(place, 0, __ATOMIC_RELEASE);
    rf_word_let_go(word);
    rf_spin_unlock(&stripe->lock);
}

/* Some bytes of a granule are new, the others are not. */
static void clear_bytes(uint64_t *place, unsigned mask)
{
    if (!__atomic_load_n(place, __ATOMIC_RELAXED))
        return;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0))
        rf_policy_clear(place, mask);
    struct rf_stripe *stripe = rf_stripe_of(place);
    struct rf_step step = { .stripe = stripe, .self = rf_hot.self };
    rf_spin_lock(&stripe->lock);
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE), held = word;
    rf_word_hold(held);
    for (;;) {
        uint64_t next = rf_word_without(&step, word, mask), old = word;
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            rf_record_end_unless(stripe, old, next);
            break;
        }
        rf_word_end_record(stripe, next); /* only a word without units can have changed under us */
    }
    rf_word_let_go(held);
    rf_spin_unlock(&stripe->lock);
}

/* Of memory that is new, so that nobody has it yet. An access by whoever had it before, and still uses it, may be forgotten with the
 * rest; if it is just then making units for the word, they are lost. */
static void set_words(uint64_t *from, uint64_t *to, uint64_t word)
{
    for (; from + 4 <= to; from += 4) {
        uint64_t any = from[0] | from[1] | from[2] | from[3];
        if (!(any | word)) /* a page that is only looked at needs no memory */
            continue;
        if (__builtin_expect(any & RF_ODD_BIT, 0))
            for (unsigned i = 0; i < 4; i++)
                rf_word_clear(&from[i]);
        for (unsigned i = 0; i < 4; i++)
            __atomic_store_n(&from[i], word, __ATOMIC_RELAXED);
    }
    for (; from < to; from++) {
        if (__builtin_expect(*from & RF_ODD_BIT, 0))
            rf_word_clear(from);
        if (*from | word)
            __atomic_store_n(from, word, __ATOMIC_RELAXED);
    }
}

#define GIVE_BACK (RF_PATCH * 4) /* ranges of words from here on go back to the kernel */

/* A patch is marked as untouched first. Whoever sets a word of it in the meantime (a mapping that took the place of one whose history
 * goes late) touches the patch afterwards: so either the word is cleared here, or the mark comes back. A mark without a word costs
 * a look; a word without a mark would be passed over by sweeps, and name somebody else's moment one day. */
static void clear_words(uint64_t *from, uint64_t *to, bool give_back)
{
    for (uint64_t *next; from < to; from = next) {
        next = (uint64_t *)(((uintptr_t)from | (RF_PATCH - 1)) + 1);
        uint8_t *touched = rf_touched(from);
        bool whole = next <= to && !((uintptr_t)from & (RF_PATCH - 1));
        if (next > to)
            next = to;
        if (!*touched)
            continue;
        if (whole && give_back) {
            __atomic_store_n(touched, 0, __ATOMIC_RELAXED);
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
        }
        if (__builtin_expect(rf_pacer, 0))
            rf_pacer_clear(from, next);
        else
            set_words(from, next, 0);
        if (whole && give_back)
            RF_SYSCALL(SYS_madvise, from, (char *)next - (char *)from, MADV_DONTNEED);
    }
}

void rf_range_clear(uintptr_t addr, size_t size)
{
    struct rf_self *self = rf_hot.self;
    if (!self || !size || self->busy)
        return;
    if (__builtin_expect(rf_tap != NULL, 0) && rf_tap_memory(self, RF_ALLOC, addr, size, 0))
        return;
    uintptr_t end = addr + size;
    rf_seen_forget();
    if (__builtin_expect(rf_pacer, 0) && rf_pacer_knows_nothing(addr, size))
        return;
    rf_busy_begin(self);
    if (addr % RF_GRANULE) {
        unsigned mask = 0xffu << addr % RF_GRANULE & 0xff;
        if (end < (addr | (RF_GRANULE - 1)) + 1)
            mask &= (1u << end % RF_GRANULE) - 1;
        clear_bytes(rf_word(addr), mask);
        addr = (addr | (RF_GRANULE - 1)) + 1;
    }
    if (addr < end && end % RF_GRANULE) {
        clear_bytes(rf_word(end), (1u << end % RF_GRANULE) - 1);
        end &= ~(uintptr_t)(RF_GRANULE - 1);
    }
    if (addr < end)
        clear_words(rf_word(addr), rf_word(addr) + (end - addr) / RF_GRANULE, end - addr >= GIVE_BACK);
    rf_busy_end(self);
}

uint32_t rf_range_fresh(uintptr_t addr, size_t size, size_t written, uintptr_t pc)
{
    struct rf_self *self = rf_hot.self;
    written &= ~(size_t)(RF_GRANULE - 1);
    if (!self || self->busy || self->inside || self->ignore_writes || !written) {
        rf_range_clear(addr, size);
        return 0;
    }
    if (__builtin_expect(self->in_txn, 0))
        rf_txn_new_memory(self, addr, size);
    if (__builtin_expect(rf_tap != NULL, 0) && rf_tap_memory(self, RF_ALLOC, addr, size, pc)) {
        rf_tap_access(self, addr, written, RF_A_WRITE, pc);
        return 0;
    }
    if (__builtin_expect(rf_detour, 0) && rf_pacer_outside()) {
        rf_range_clear(addr, size);
        return 0;
    }
    rf_busy_begin(self);
    uint32_t now = rf_moment_now(self, pc, RF_A_WRITE, written);
    uint64_t word = now ? RF_WORD(0xff, now, 0) | RF_WRITES_BIT : 0, *from = rf_word(addr), *to = from + written / RF_GRANULE;
    set_words(from, to, word);
    touch_range(from, to);
    rf_busy_end(self);
    if (size > written)
        rf_range_clear(addr + written, size - written);
    if (__builtin_expect(self->wants_sweep, 0))
        rf_sweep(self);
    if (__builtin_expect(self->in_txn, 0))
        rf_epoch_begin(self); /* accesses to it belong to the transaction */
    return now ? rf_moment_note(now) : 0;
}

uint32_t rf_range_free(uintptr_t addr, size_t size, uintptr_t pc)
{
    struct rf_self *self = rf_hot.self;
    if (!self || self->busy)
        return 0;
    if (is_ignored(self, RF_A_WRITE)) {
        rf_objects_forget(addr, size); /* a lock that lay there is no more, whoever looks */
        return 0;
    }
    if (__builtin_expect(self->in_txn, 0)) { /* libitm's doing, at a commit or a roll-back; what the program frees guest/itm.c tells */
        rf_txn_new_memory(self, addr, size);
        rf_objects_forget(addr, size);
        return 0;
    }
    if (__builtin_expect(rf_tap != NULL, 0) && rf_tap_memory(self, RF_FREE, addr, size, pc)) {
        rf_objects_forget(addr, size);
        return 0;
    }
    if (__builtin_expect(rf_detour, 0) && rf_pacer_outside()) {
        rf_seen_forget();
        if (!rf_pacer_knows_nothing(addr, size))
            rf_pacer_access(self, addr, size, RF_A_WRITE | RF_A_FREE, pc);
        rf_objects_forget(addr, size);
        return 0;
    }
    rf_seen_forget(); /* the block's next owner makes its history forget what this thread has done in this epoch */
    struct rf_step step = { .self = self, .flags = RF_A_WRITE | RF_A_FREE };
    rf_busy_begin(self);
    step.now = rf_moment_now(self, pc, step.flags, size);
    uint32_t note = step.now ? rf_moment_note(step.now) : 0;
    uint64_t word = RF_WORD(0xff, step.now, 0) | RF_WRITES_BIT, *place = rf_word(addr);
    uintptr_t at = addr;
    /* What this thread wrote in this epoch it may overwrite without a look: whoever comes between saw that it was written. */
    for (; step.now && at % RF_GRANULE == 0 && at + RF_GRANULE <= addr + size; at += RF_GRANULE, place++) {
        uint64_t old = __atomic_load_n(place, __ATOMIC_RELAXED);
        if (!repeats_plainly(old, 0xff, RF_A_WRITE))
            break;
        /* pacer: who thinks that no period has begun may be forgetting it, and its line */
        if (__builtin_expect(!rf_pacer, 1))
            __atomic_store_n(place, word, __ATOMIC_RELAXED);
        else if (!__atomic_compare_exchange_n(place, &old, word, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            break;
    }
    rf_busy_end(self);
    rf_access(at, addr + size - at, step.flags, pc);
    rf_objects_forget(addr, size);
    return note;
}

bool rf_range_touched(uintptr_t addr, size_t size)
{
    const uint8_t *last = rf_touched(rf_word(addr + size - 1));
    for (const uint8_t *patch = rf_touched(rf_word(addr)); patch <= last; patch++)
        if (*patch)
            return true;
    return false;
}

void rf_range_return(uintptr_t addr, size_t size)
{
    rf_range_clear(addr, size);
    rf_objects_forget(addr, size);
}
