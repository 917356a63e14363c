#include "guest/policy.h"

#include "guest/escape.h"
#include "guest/memory.h"
#include "guest/options.h"
#include "guest/seen.h"
#include "guest/spin.h"
#include "guest/text.h"
#include "guest/threads.h"
#include "sync/cas.h"
#include "sync/none.h"
#include "sync/spin.h"

RF_MODE uint32_t rf_policy;
RF_MODE bool rf_policy_no_hot, rf_detour;

static uint64_t ended_counts[RF_TRANSITIONS]; /* the counts of threads that have ended; atomic additions */

void rf_policy_begin(void)
{
    const char *name = rf_options.sync;
    rf_policy = rf_text_same(name, "none")   ? RF_POLICY_NONE
                : rf_text_same(name, "spin") ? RF_POLICY_SPIN
                : rf_text_same(name, "fib")  ? RF_POLICY_FIB
                : rf_options.stats   ? RF_POLICY_CAS_COUNTED
                                     : RF_POLICY_CAS;
    if (rf_policy != RF_POLICY_CAS && !rf_text_same(rf_options.detector, "fasttrack")) {
        if (rf_policy != RF_POLICY_CAS_COUNTED)
            rf_die("--sync=%s is for --detector=fasttrack; %s has locks of its own", name, rf_options.detector);
        rf_policy = RF_POLICY_CAS;
        rf_escape_begin();
        return;
    }
    rf_policy_no_hot = rf_policy == RF_POLICY_SPIN || rf_options.stats;
    rf_detour |= rf_policy != RF_POLICY_CAS || rf_options.escape;
    rf_seen_off |= rf_policy_no_hot || rf_options.escape;
    if (rf_policy == RF_POLICY_FIB)
        rf_fib_begin();
    rf_escape_begin();
}

uint64_t rf_policy_next(uint64_t *place, uint64_t old, unsigned mask, struct rf_step *step)
{
    uint64_t next;
    step->race = 0;
    if (!rf_word_has_units(old) && !(step->flags & RF_A_ATOMIC) && rf_word_quick(step, old, mask, &next))
        return next;
    struct rf_slices slices;
    struct rf_stripe *stripe = step->stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    if (!rf_locked_quick(place, step, old, mask, &next)) {
        rf_slices_of(old, &slices);
        if (rf_step_refuses(step) && rf_slices_race(&slices, mask, step)) {
            next = old;
        } else {
            rf_slices_step(&slices, mask, step);
            next = rf_slices_word(&slices, step, old);
        }
    }
    rf_record_end_unless(stripe, old, next);
    rf_spin_unlock(&stripe->lock);
    step->stripe = NULL;
    return next;
}

struct quick_access {
    struct rf_step *step;
    unsigned mask;
    bool needs_units; /* the step must be done under the stripe's lock */
};

static inline __attribute__((always_inline)) uint64_t quick(void *argument, uint64_t old)
{
    struct quick_access *access = argument;
    uint64_t next = old;
    access->needs_units = rf_word_has_units(old) || (access->step->flags & RF_A_ATOMIC) ||
                          !rf_word_quick(access->step, old, access->mask, &next);
    return access->needs_units ? old : next;
}

/* What the step is for a protocol that knows owners, whether it is used or not. */
static enum rf_transition kind_of(uint64_t word, unsigned mask, const struct rf_step *step)
{
    uint32_t slot = step->self->thread.slot;
    if (!word)
        return RF_T_FIRST;
    if (rf_word_is_record(word))
        return RF_T_RECORD;
    if (rf_word_has_units(word)) {
        if (step->flags & RF_A_WRITE || mask != RF_WORD_M(word))
            return RF_T_MULTIPLE;
        struct rf_readers *readers = rf_readers_at(RF_WORD_Y(word));
        for (uint32_t i = 0; i < RF_FEW && i < readers->count && !readers->is_many; i++)
            if (rf_moment_slot(readers->few[i]) == slot)
                return RF_T_LOCAL;
        return RF_T_FENCE;
    }
    return rf_moment_slot(RF_WORD_Y(word) ? RF_WORD_Y(word) : RF_WORD_X(word)) == slot ? RF_T_LOCAL : RF_T_SINGLE;
}

bool rf_policy_repeats(struct rf_self *self, const uint64_t *place, uint64_t word, unsigned mask, unsigned flags)
{
    if (!rf_policy_no_hot)
        return rf_word_repeats(place, word, mask, flags);
    /* The hooks find an empty epoch. Here it is what it is: the thread is busy, so no handler comes in between. */
    rf_hot.span = self->next_moment - (uint32_t)rf_hot.first;
    bool repeats = rf_word_repeats(place, word, mask, flags);
    rf_hot.span = 0;
    return repeats;
}

static void count_step(struct rf_self *self, enum rf_transition kind)
{
    self->transitions[kind]++;
}

void rf_policy_step(uint64_t *place, unsigned mask, struct rf_step *step)
{
    if (rf_policy == RF_POLICY_FIB) {
        rf_fib_granule(place, mask, step);
        return;
    }
    struct rf_self *self = step->self;
    struct quick_access access = { step, mask, false };
    step->race = 0;
    if (rf_policy == RF_POLICY_SPIN) {
        uint64_t old = rf_spin_take(place, RF_CLOSED, rf_yield), next = old;
        bool repeats = rf_policy_repeats(self, &old, old, mask, step->flags);
        count_step(self, repeats ? RF_T_PURE : kind_of(old, mask, step));
        if (!repeats)
            next = rf_policy_next(place, old, mask, step);
        rf_spin_put(place, next);
        return;
    }
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (rf_policy_repeats(self, place, word, mask, step->flags)) {
        count_step(self, RF_T_PURE);
        return;
    }
    count_step(self, kind_of(word, mask, step));
    if (rf_policy == RF_POLICY_NONE)
        rf_none_step(place, quick, &access);
    else
        rf_cas_step(place, quick, &access);
    if (access.needs_units)
        rf_step_locked(place, mask, step);
}

void rf_policy_clear(uint64_t *place, unsigned mask)
{
    if (rf_policy == RF_POLICY_FIB)
        rf_fib_clear(place, mask);
    for (unsigned turns = 0; __atomic_load_n(place, __ATOMIC_ACQUIRE) == RF_CLOSED; turns++)
        if (turns > 64)
            rf_yield();
}

void rf_policy_parks(struct rf_self *self)
{
    if (self->busy || self->inside)
        return;
    rf_busy_begin(self);
    rf_fib_slot_parks(self->thread.slot);
    rf_busy_end(self);
}

void rf_policy_slot_left(uint32_t slot)
{
    if (rf_policy == RF_POLICY_FIB)
        rf_fib_slot_parks(slot);
}

/* ---- counts ---- */

void rf_policy_thread_ends(struct rf_self *self)
{
    for (unsigned i = 0; i < RF_TRANSITIONS; i++)
        __atomic_fetch_add(&ended_counts[i], self->transitions[i], __ATOMIC_RELAXED);
}

void rf_policy_fork_child(void)
{
    for (unsigned i = 0; i < RF_TRANSITIONS; i++)
        ended_counts[i] = 0;
}

static void add_counts(struct rf_self *self, void *totals)
{
    for (unsigned i = 0; i < RF_TRANSITIONS; i++)
        ((uint64_t *)totals)[i] += self->transitions[i];
}

/* A share with as many digits as tell it from nothing: shares of a millionth are what the table is about. */
static void share(char *text, size_t size, uint64_t part, uint64_t whole)
{
    uint64_t scaled = whole ? (uint64_t)((unsigned __int128)part * 1000000000 / whole) : 0; /* of 100%: 7 digits after the point */
    uint64_t fraction = scaled % 10000000;
    unsigned digits = 7;
    char tail[8];
    for (unsigned i = 7; i-- > 0; fraction /= 10)
        tail[i] = (char)('0' + fraction % 10);
    while (digits > 1 && tail[digits - 1] == '0')
        digits--;
    tail[digits] = 0;
    rf_format(text, size, "%zu.%s", (size_t)(scaled / 10000000), tail);
}

void rf_policy_print(void)
{
    static const char *const names[RF_TRANSITIONS] = {
        [RF_T_NOT_ESCAPED] = "not escaped",
        [RF_T_PURE] = "local, pure",
        [RF_T_LOCAL] = "local, updates",
        [RF_T_FENCE] = "fence",
        [RF_T_FIRST] = "first (CAS)",
        [RF_T_SINGLE] = "single conflict",
        [RF_T_SINGLE_SHARED] = "single conflict, Exclusive to Shared",
        [RF_T_MULTIPLE] = "multiple conflict",
        [RF_T_RECORD] = "granule in parts (lock)",
    };
    uint64_t totals[RF_TRANSITIONS], all = 0;
    if (rf_policy == RF_POLICY_CAS)
        return;
    for (unsigned i = 0; i < RF_TRANSITIONS; i++)
        totals[i] = __atomic_load_n(&ended_counts[i], __ATOMIC_RELAXED);
    rf_threads_each(add_counts, totals);
    for (unsigned i = 0; i < RF_TRANSITIONS; i++)
        all += totals[i];
    rf_say("statistics: %zu looks at a granule's history, --sync=%s", (size_t)all, rf_options.sync);
    for (unsigned i = 0; i < RF_TRANSITIONS; i++) {
        char text[32];
        share(text, sizeof text, totals[i], all);
        rf_say("statistics: %s: %zu %s%%", names[i], (size_t)totals[i], text);
    }
    if (rf_policy == RF_POLICY_FIB)
        rf_fib_print();
}
