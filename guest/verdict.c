/* Not every race is told: some were declared benign, some a following acquire of the same operation orders after all. */
#include "guest/verdict.h"

#include "guest/access.h"
#include "guest/annotations.h"
#include "guest/atomics.h"
#include "guest/moments.h"
#include "guest/nearby.h"
#include "guest/ompt.h"
#include "guest/report.h"
#include "guest/threads.h"

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

/* The place of the earlier access: what is kept of these very bytes, or else the moment's own, of the right kind at least. */
static uint32_t earlier_note(uintptr_t addr, size_t size, uint32_t earlier, bool writes, uint32_t thread)
{
    unsigned offset = addr % RF_GRANULE, length = size < RF_GRANULE - offset ? (unsigned)size : RF_GRANULE - offset;
    uint32_t note = rf_moment_note(earlier);
    uint32_t exact = rf_nearby_note(thread, rf_word(addr), ((1u << length) - 1) << offset, earlier, writes);
    return exact ? exact : rf_note_of_kind(note, writes);
}

void rf_race_found(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uint32_t now, uint32_t earlier,
                   unsigned earlier_mask, bool earlier_writes)
{
    uint32_t slot = rf_moment_slot(earlier), time = rf_moment_time(earlier), thread = rf_thread_of(slot, time);
    uint32_t note = earlier_note(addr, size, earlier, earlier_writes, thread);
    struct rf_report_side second = { addr, size, rf_moment_note(now), self->number, false };
    size_t earlier_size = rf_note_size(note);
    if (earlier_size > RF_GRANULE && earlier_mask && !(rf_note_flags(note) & RF_A_FREE))
        earlier_size = (size_t)__builtin_popcount(earlier_mask); /* of a long range, what lies here */
    struct rf_report_side first = { began(addr, earlier_mask, earlier_size), earlier_size, note, thread, true };
    if ((flags & RF_A_ATOMIC) && rf_atomic_defer(self, &second, &first, slot, time))
        return;
    if (rf_benign(addr, size) || rf_ompt_internal(second.note) || rf_ompt_internal(first.note))
        return;
    self->inside++;
    rf_report_race(&second, &first);
    self->inside--;
    if (self->pending_signals) /* one came meanwhile */
        rf_signals_deliver();
}
