/* What the detectors behind the tap have found is told when nothing is held. See guest/online_parts.h. */
#include "guest/online_parts.h"

#include "guest/access.h"
#include "guest/annotations.h"
#include "guest/depot.h"
#include "guest/ompt.h"
#include "guest/options.h"
#include "guest/threads.h"
#include "guest/vectors.h"

/* Predictions come in crowds: where a block is handed over by a lock, each access to it is one, from the same two places. */
static bool was_told(struct rf_listener *me, const struct rf_online_race *race)
{
    uint64_t notes = (uint64_t)race->first.note << 32 | race->note;
    uint32_t how = (uint32_t)race->first.known << 2 | (uint32_t)race->first.predictive << 1 | race->first.writes;
    if (rf_refuses || rf_benign_any || !rf_options.suppress_equal_stacks)
        return false;
    struct rf_told *told = &me->told[(notes * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
    bool same = told->notes == notes && told->how == how;
    *told = (struct rf_told){ notes, how };
    return same;
}

void rf_online_found(struct rf_self *self, struct rf_listener *me, const struct rf_online_access *access,
                     struct rf_online_race *race, uintptr_t addr, size_t size)
{
    race->second_addr = addr;
    race->second_size = (uint32_t)size;
    race->note = access->note;
    race->flags = access->flags;
    if (rf_online_detector->pairs)
        rf_pairs_keep(race, self->number);
    else if (self->races < RF_PENDING && !was_told(me, race))
        me->races[self->races++] = *race;
}

/* By `number`. True: it is to be refused. */
static bool tell(struct rf_self *self, const struct rf_online_race *race, uint32_t number, struct rf_report_side sides[2])
{
    rf_busy_begin(self);
    rf_spin_lock(&rf_online_lock);
    uint32_t thread = rf_online_number(race->first.thread, number);
    rf_spin_unlock(&rf_online_lock);
    rf_busy_end(self);
    uint32_t note = race->first.known ? race->first.note : 0;
    size_t size = note ? rf_note_size(note) : 0;
    struct rf_report_side second = { .addr = race->second_addr, .size = race->second_size, .note = race->note, .thread = number };
    struct rf_report_side first = {
        .addr = race->addr, .size = race->size, .note = note, .thread = thread, .previous = true
    };
    first.size = size < race->size ? size : race->size;
    second.predicted = race->first.predictive;
    second.past = rf_online_detector->pairs;
    if (rf_benign(race->addr, race->size) || rf_ompt_internal(second.note) || (note && rf_ompt_internal(note)))
        return false;
    if (rf_refuses && !second.predicted) {
        sides[0] = second;
        sides[1] = first;
        return true;
    }
    rf_report_race(&second, &first);
    return false;
}

/* It was refused, and then allowed. */
static void record_allowed(struct rf_self *self, const struct rf_refused_access *refused)
{
    if (!refused->size)
        return;
    rf_hear_unseen(); /* others may race with it again, who had accessed the same before: their filters would not tell */
    self->late++;     /* it is not compared again */
    bool mine = rf_busy_enter(self);
    if (refused->flags & RF_A_FREE)
        rf_hear_memory(self, RF_FREE, refused->addr, refused->size, refused->pc);
    else
        rf_hear_access(self, refused->addr, refused->size, refused->flags, refused->pc);
    self->races = 0; /* these were told */
    rf_busy_leave(self, mine);
    self->late--;
}

void rf_online_tell(struct rf_self *self)
{
    struct rf_listener *me = self->online;
    struct rf_online_race races[RF_PENDING];
    uint32_t count = self->races;
    self->races = 0; /* a report may call the user, who may come here */
    for (uint32_t i = 0; i < count; i++)
        races[i] = me->races[i];
    struct rf_report_side sides[2];
    struct rf_refused_access refused = me->refused;
    me->refused.size = 0;
    bool refuse = false;
    struct rf_vectors vectors;
    rf_vectors_keep(&vectors);
    self->inside++; /* locks are taken: no handler of the program may come in between */
    for (uint32_t i = 0; i < count && !refuse; i++)
        refuse = tell(self, &races[i], self->number, sides);
    self->inside--;
    if (self->pending_signals) /* one came meanwhile */
        rf_signals_deliver();
    if (refuse)
        rf_refused(self, &sides[0], &sides[1]);
    rf_vectors_back(&vectors);
    record_allowed(self, &refused);
}

/* guest/online_pairs.h, 2. There may still be other threads. */
void rf_online_finish(struct rf_self *self)
{
    struct rf_online_race race;
    struct rf_report_side sides[2];
    uint32_t at = 0, number;
    if (!rf_online_detector || !rf_online_detector->pairs || !self)
        return;
    if (rf_options.pairs[0]) {
        if (!rf_pairs_write(rf_options.pairs))
            rf_say("%s: the pairs cannot be written", rf_options.pairs);
        return;
    }
    for (;;) {
        bool mine = rf_busy_enter(self);
        rf_spin_lock(&rf_online_lock);
        bool more = rf_pairs_next(&at, &race, &number);
        rf_spin_unlock(&rf_online_lock);
        rf_busy_leave(self, mine);
        if (!more)
            return;
        tell(self, &race, number, sides);
    }
}
