/* Not every race is told: some were declared benign, some a following acquire of the same operation orders after all. */
#include "guest/verdict.h"

#include "guest/access.h"
#include "guest/annotations.h"
#include "guest/atomics.h"
#include "guest/moments.h"
#include "guest/ompt.h"
#include "guest/report.h"
#include "guest/threads.h"

void rf_race_found(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uint32_t now, uint32_t earlier)
{
    uint32_t slot = rf_moment_slot(earlier), time = rf_moment_time(earlier), note = rf_moment_note(earlier);
    struct rf_report_side second = { addr, size, rf_moment_note(now), self->number, false };
    struct rf_report_side first = { addr, rf_note_size(note), note, rf_thread_of(slot, time), true };
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
