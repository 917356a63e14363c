/* Not every race is told: some were declared benign, some a following acquire of the same operation orders after all. */
#include "guest/verdict.h"

#include "guest/access.h"
#include "guest/accu.h"
#include "guest/annotations.h"
#include "guest/atomics.h"
#include "guest/granule.h"
#include "guest/moments.h"
#include "guest/nearby.h"
#include "guest/ompt.h"
#include "guest/refusal.h"
#include "guest/report.h"
#include "guest/threads.h"
#include "guest/transactions.h"
#include "guest/vectors.h"

/* AccuLock leaves locks out: happens-before may order the two all the same. What commits order is not kept. */
static bool is_predicted(const struct rf_step *step)
{
    uint32_t full = rf_moment_slot(step->race) + 1;
    return rf_accu && (rf_txn_used || rf_moment_time(step->race) <= rf_clock_get(&step->self->thread.clock, full));
}

struct rf_found rf_found_by(const struct rf_step *step, uintptr_t addr, size_t size, uint32_t note)
{
    return (struct rf_found){ .addr = addr,
                              .size = size,
                              .flags = step->flags,
                              .note = note,
                              .locks = step->self->locks,
                              .moment = step->race,
                              .earlier = rf_moment_note(step->race),
                              .earlier_locks = rf_accu_shown(step->race),
                              .slot = rf_moment_slot(step->race),
                              .time = rf_moment_time(step->race),
                              .mask = step->race_mask,
                              .writes = step->race_writes,
                              .predicted = is_predicted(step) };
}

/* Where the earlier access began, as far as the bytes that it left in the granule of `addr` tell. Others may have come over some of
 * them since: then it is taken to have been aligned, if that fits. */
static uintptr_t began(uintptr_t addr, unsigned mask, size_t size)
{
    if (!mask)
        return addr;
    unsigned first = (unsigned)__builtin_ctz(mask), last = 31 - (unsigned)__builtin_clz(mask);
    bool whole = (size_t)__builtin_popcount(mask) >= size;
    if (!whole && size <= RF_GRANULE && !(size & (size - 1)) && last / size == first / size)
        first -= first % (unsigned)size;
    return (addr & ~(uintptr_t)(RF_GRANULE - 1)) + first;
}

/* The place of the earlier access, and its locks: what is kept of these very bytes, or else the moment's own, of the right kind at least.
 * A sweep since then has emptied what is kept. */
static uint32_t earlier_note(const struct rf_found *race, uint32_t thread)
{
    unsigned offset = race->addr % RF_GRANULE;
    unsigned length = race->size < RF_GRANULE - offset ? (unsigned)race->size : RF_GRANULE - offset;
    uint32_t exact = rf_nearby_note(thread, rf_word(race->addr), ((1u << length) - 1) << offset, race->moment, race->writes);
    if (exact && rf_note_locks(exact)) /* others than the moment's */
        return exact;
    return rf_note_with_locks(exact ? exact : rf_note_of_kind(race->earlier, race->writes), race->earlier_locks);
}

enum told { UNDECIDED, TOLD, REFUSED /* both sides are known */ };

static enum told tell(struct rf_self *self, const struct rf_found *race, struct rf_report_side sides[2])
{
    uint32_t thread = rf_thread_of(race->slot, race->time), note = earlier_note(race, thread);
    size_t size = rf_note_size(note);
    if (size > RF_GRANULE && race->mask && !(rf_note_flags(note) & RF_A_FREE))
        size = (size_t)__builtin_popcount(race->mask); /* of a long range, what lies here */
    uint32_t second_note = rf_note_with_locks(race->note, race->locks);
    struct rf_report_side second = { race->addr, race->size, second_note, self->number, false, race->predicted, false };
    struct rf_report_side first = { began(race->addr, race->mask, size), size, note, thread, true, false, false };
    if ((race->flags & RF_A_ATOMIC) && rf_atomic_defer(self, &second, &first, race->slot, race->time))
        return UNDECIDED;
    if (rf_benign(race->addr, race->size) || rf_ompt_internal(second.note) || rf_ompt_internal(first.note))
        return TOLD;
    if (rf_refuses) {
        sides[0] = second;
        sides[1] = first;
        return REFUSED;
    }
    rf_report_race(&second, &first);
    return TOLD;
}

bool rf_race_found(struct rf_self *self, const struct rf_found *race)
{
    self->inside++; /* locks are taken: no handler of the program may come in between */
    struct rf_report_side sides[2];
    struct rf_vectors vectors;
    rf_vectors_keep(&vectors);
    enum told told = tell(self, race, sides);
    self->inside--;
    if (self->pending_signals) /* one came meanwhile */
        rf_signals_deliver();
    if (told == REFUSED)
        rf_refused(self, &sides[0], &sides[1]);
    rf_vectors_back(&vectors);
    return told != UNDECIDED;
}
