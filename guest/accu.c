#include "guest/accu.h"

#include "guest/access.h"
#include "guest/depot.h"
#include "guest/memory.h"
#include "guest/moments.h"
#include "guest/options.h"
#include "guest/text.h"
#include "guest/threads.h"
#include "guest/transactions.h"

RF_MODE bool rf_accu, rf_multi;

bool rf_accu_begin(void)
{
    bool multi = rf_text_same(rf_options.detector, "multilock"), alone = !rf_options.stats && rf_options.on_race[0] == 'r';
    rf_accu = (multi || rf_text_same(rf_options.detector, "acculock")) && alone;
    rf_multi = multi && rf_accu;
    return rf_accu;
}

/* ---- what locks hand on ---- */

void rf_accu_publish(struct rf_clock *to, const struct rf_clock *clock)
{
    for (uint32_t i = 0; i + 1 < clock->cap && i < clock->len; i += 2) {
        uint32_t strong = clock->times[i], full = clock->times[i + 1];
        to->times[i] = 0;
        to->times[i + 1] = strong > full ? strong : full;
    }
    to->len = (clock->len + 1) & ~1u;
}

struct rf_thread *rf_accu_published(struct rf_self *self)
{
    if (!rf_accu)
        return &self->thread;
    self->published.index = self->thread.index;
    self->published.slot = self->thread.slot;
    rf_clock_room(&self->published.clock, (self->thread.clock.len + 1) & ~1u);
    rf_accu_publish(&self->published.clock, &self->thread.clock);
    return &self->published;
}

void rf_accu_thread_end(struct rf_self *self)
{
    rf_clock_give(&self->published.clock);
    if (self->told)
        rf_give(self->told, RF_ACCU_TOLD * sizeof *self->told);
    self->told = NULL;
}

/* ---- locksets of moments ---- */

rf_lockset rf_accu_locks(struct rf_self *self, uint32_t moment, bool writes)
{
    uint32_t locks = rf_moment_locks(moment);
    if (locks & AL_SEVERAL)
        return locks & ~AL_SEVERAL;
    bool transaction = __builtin_expect(rf_txn_used, 0) && rf_note_flags(rf_moment_note(moment)) & RF_A_TXN;
    return __builtin_expect(rf_locks_have_modes || transaction, 0) ? rf_locks_protecting(self, locks, writes, transaction) : locks;
}

uint32_t rf_accu_several(struct rf_self *self, uint32_t moment, rf_lockset locks)
{
    uint32_t note = rf_note_with_locks(rf_moment_note(moment), rf_accu_shown(moment)), several = rf_moment_for(self, note, locks);
    return several ? several : moment;
}

uint32_t rf_accu_shown(uint32_t moment)
{
    uint32_t locks = rf_moment_locks(moment);
    return locks & AL_SEVERAL ? rf_note_locks(rf_moment_note(moment)) : locks;
}
