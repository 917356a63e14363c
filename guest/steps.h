/* Parts of a step that the files about accesses share: guest/access.c has any size, guest/slow_access.c what the hot hooks leave, and
 * guest/ranges.c memory that comes and goes. The callers are busy.
 */
#ifndef RF_GUEST_STEPS_H
#define RF_GUEST_STEPS_H

#include "guest/accu.h"
#include "guest/accu_units.h"
#include "guest/granule.h"
#include "guest/lanes.h"
#include "guest/multi.h"
#include "guest/pacer.h"
#include "guest/policy.h"

struct rf_found;

void rf_touch_first(uint64_t *word, uint8_t *touched);

/* After the word was set, by an instruction that is a fence, too: clear_words() of guest/ranges.c says why. */
static inline void rf_touch(uint64_t *word)
{
    uint8_t *touched = rf_touched(word);
    if (__builtin_expect(*touched != 1, 0))
        rf_touch_first(word, touched);
}

static inline void rf_touch_range(uint64_t *from, uint64_t *to)
{
    size_t step = (__builtin_expect(rf_pacer, 0) ? (size_t)1 << RF_LINE_BITS : RF_PATCH) / sizeof *from;
    for (uint64_t *word = from; word < to; word += step)
        rf_touch(word);
    rf_touch(to - 1);
}

static inline bool rf_is_ignored(const struct rf_self *self, unsigned flags)
{
    return self->inside || (flags & RF_A_WRITE ? self->ignore_writes : self->ignore_reads);
}

/* All bytes of the mask were accessed in this epoch, in a word of the two plain forms. */
static inline bool rf_word_repeats_plainly(uint64_t word, unsigned mask, unsigned flags)
{
    uint64_t moment = word >> 28 & RF_MOMENT_MASK;
    return !(mask & ~RF_WORD_M(word)) && !(word & RF_ODD_BIT) && moment - rf_hot.first < rf_hot.span &&
           (!(flags & RF_A_WRITE) || (word & RF_WRITES_BIT));
}

/* One granule. Returns the moment that the access races with, or 0. */
static inline uint32_t rf_step_granule(uint64_t *place, uint64_t word, unsigned mask, struct rf_step *step)
{
    uint64_t next;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0)) {
        rf_policy_step(place, mask, step);
        return step->race;
    }
    if (__builtin_expect(rf_multi, 0)) {
        rf_multi_step(place, word, mask, step);
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
    if (__builtin_expect(rf_accu && !(step->flags & (RF_A_WRITE | RF_A_ATOMIC)), 0) &&
        rf_accu_reads_map(place, word, mask, step))
        return 0;
    while (!rf_word_has_units(word) &&
           (atomic ? rf_word_atomic_quick(step, word, mask, &next) : rf_word_quick(step, word, mask, &next)))
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return 0;
    if (__builtin_expect(rf_accu, 0)) {
        if (atomic || !(rf_word_has_lanes(word) || rf_word_is_record(word)) || !rf_accu_units_step(place, word, mask, step))
            rf_step_locked(place, mask, step);
        return step->race;
    }
    if (!rf_word_has_lanes(word) || atomic || step->passes || !rf_lanes_step(place, word, mask, step))
        rf_step_locked(place, mask, step);
    return step->race;
}

/* The access races. If it is refused this does not come back, or it is allowed after all and recorded now. Not busy. */
void rf_tell_race(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc,
                  const struct rf_found *race);
/* The end of an access that races: the thread is not busy afterwards. */
void rf_end_with_race(struct rf_self *self, uintptr_t addr, size_t size, const struct rf_step *step, uintptr_t pc);

#endif
