/* Accesses of any size, granule by granule; and the step under the lock of a stripe.
 *
 * 1. One step on a granule is atomic: a word is replaced by compare-and-swap, and one that has units (guest/units.h), or is to have
 *    any, under the lock of its stripe. So of two racing accesses the hook that comes second sees what the first one left.
 * 2. A moment is in RF_NOTES and rf_moment_blocks before a word names it; on x86 nobody sees these stores in another order.
 * 3. The thread is busy (guest/self.h) from the look at the word to its replacement: sweeps and signal handlers wait that long.
 */
#include "guest/access.h"

#include "guest/escape.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/refusal.h"
#include "guest/steps.h"
#include "guest/sweep.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/transactions.h"
#include "guest/verdict.h"

/* Of its patch, or, with 2 in its place, every time. */
__attribute__((noinline)) void rf_touch_first(uint64_t *word, uint8_t *touched)
{
    if (*touched != 1 + rf_pacer) {
        *touched = 1 + rf_pacer;
        rf_districts[((uintptr_t)touched - RF_TOUCHED) >> 12] = 1;
    }
    if (rf_pacer)
        rf_pacer_sets(rf_hot.self, word);
}

void rf_word_end_record(struct rf_stripe *stripe, uint64_t word)
{
    if (rf_word_has_lanes(word))
        rf_lane_end(stripe, RF_WORD_X(word));
    else if (rf_word_is_record(word) && RF_WORD_M(word)) /* not RF_CLOSED */
        rf_record_end(stripe, RF_WORD_X(word), RF_WORD_M(word));
}

void rf_record_end_unless(struct rf_stripe *stripe, uint64_t old, uint64_t next)
{
    bool same_kind = rf_word_has_lanes(old) ? rf_word_has_lanes(next)
                                            : rf_word_is_record(next) &&
                                                  (RF_WORD_M(old) > RF_RECORD_FEW) == (RF_WORD_M(next) > RF_RECORD_FEW);
    if (!same_kind || RF_WORD_X(old) != RF_WORD_X(next))
        rf_word_end_record(stripe, old);
}

__attribute__((noinline)) void rf_step_locked(uint64_t *place, unsigned mask, struct rf_step *step)
{
    struct rf_slices slices;
    struct rf_stripe *stripe = step->stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    uint64_t word = rf_lanes_settled(place), quick, held = word;
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
        rf_slices_end(&slices, step);
    }
    rf_word_let_go(held);
    rf_spin_unlock(&stripe->lock);
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
        self->told = self->told ? self->told : rf_take(RF_ACCU_TOLD * sizeof *self->told);
        rf_busy_end(self);
    }
    struct rf_told *told = &self->told[((notes ^ (uint64_t)how << 50) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - RF_ACCU_TOLD_BITS)];
    bool same = told->notes == notes && told->how == how;
    *told = (struct rf_told){ notes, how };
    return same;
}

__attribute__((noinline)) void rf_tell_race(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc,
                                            const struct rf_found *race)
{
    if (!was_told(self, race) && rf_race_found(self, race) && rf_refuses && !self->late)
        rf_access_allowed(self, addr, size, flags, pc);
}

__attribute__((noinline)) void rf_end_with_race(struct rf_self *self, uintptr_t addr, size_t size, const struct rf_step *step,
                                                uintptr_t pc)
{
    struct rf_found race = race_of(step, addr, size);
    rf_busy_end(self);
    rf_tell_race(self, addr, size, step->flags, pc, &race);
    if (self->wants_sweep)
        rf_sweep(self);
}

/* How many words from here on say that all of their granules was accessed in this epoch. Neighbours often have equal words: those are
 * only compared. */
static size_t count_repeated(const uint64_t *word, size_t count, unsigned flags)
{
    size_t i = 0;
    while (i < count) {
        uint64_t first = __atomic_load_n(&word[i], __ATOMIC_RELAXED);
        if (!rf_word_repeats_plainly(first, 0xff, flags))
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

/* FastTrack's step on a word of one of the two plain forms, of earlier epochs, with which there is no race: what nearly all words of a range are
 * that are not repeated ones. Neither a detector nor a policy but this one is asked for. false: nothing was done. */
static inline bool step_quickly(const struct rf_step *step, uint64_t *place, uint64_t word, unsigned mask, uint64_t *next)
{
    return rf_word_quick(step, word, mask, next) &&
           __atomic_compare_exchange_n(place, &word, *next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static inline bool is_plain_and_old(uint64_t word)
{
    return !(word & RF_ODD_BIT) && RF_WORD_X(word) < RF_PAIRS_FIRST && !rf_moment_is_hot(RF_WORD_X(word)) &&
           !rf_moment_is_hot(RF_WORD_Y(word));
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
    bool quick = rf_policy == RF_POLICY_CAS && !rf_accu && !(flags & RF_A_ATOMIC);
    step->fasttrack = quick;
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
        bool old = quick && is_plain_and_old(word); /* so that it repeats nothing */
        if (rf_policy_no_hot || old || !rf_word_repeats(place, word, mask, flags)) {
            if (!step->now && (rf_policy_no_hot || !(step->now = rf_moment_at_hand(self, rf_access_key(pc, flags, size)))))
                step->now = rf_moment_now(self, pc, flags, size);
            if (old && step->now && step_quickly(step, place, word, mask, &next)) {
                alike = whole > 1;
            } else if (step->now) {
                alike = whole > 1 && runs && !rf_multi && !rf_word_has_units(word) && rf_word_quick(step, word, 0xff, &next);
                if (rf_step_granule(place, word, mask, step) && !races) {
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
        rf_touch(place);
        if (alike) {
            done += rf_policy == RF_POLICY_FIB && word ? rf_fib_equal(self, place + 1, whole - 1, word, next)
                                                       : replace_equal(place + 1, whole - 1, word, next);
            rf_touch_range(place, place + done);
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
        rf_touch(place);
        return false;
    }
    bool races = rf_step_granule(place, word, mask, step);
    rf_touch(place);
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
        races = rf_step_granule(place, __atomic_load_n(place, __ATOMIC_ACQUIRE), mask, &step);
        rf_touch(place);
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
    if (size < 2 * RF_GRANULE && size && !(flags & ~RF_A_WRITE) && rf_access_quickly(addr, (unsigned)size, flags, pc))
        return;
    if (__builtin_expect(!self || rf_is_ignored(self, flags) || self->busy || !size, 0)) {
        if (self || !rf_started || !(self = rf_self()) || rf_is_ignored(self, flags) || !size)
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
        rf_tell_race(self, addr, size, flags, pc, &race);
    if (__builtin_expect(self->wants_sweep, 0))
        rf_sweep(self);
    if (__builtin_expect(__atomic_load_n(&rf_fib_waiters, __ATOMIC_RELAXED), 0)) /* a step that found a repetition has not answered */
        rf_fib_yields();
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
    if (rf_refuses && self && !self->busy && !self->late && !rf_is_ignored(self, flags) && rf_would_race(self, addr, size, flags, pc, &race))
        rf_race_found(self, &race);
}
