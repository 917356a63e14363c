#include "guest/slots.h"

#include "guest/accu.h"
#include "guest/memory.h"
#include "guest/policy.h"
#include "guest/spin.h"
#include "guest/threads.h"
#include "guest/versions.h"

enum { OWNED, IDLE, FORGOTTEN, DEAD, SPENT }; /* a slot's state */

struct slot {
    struct rf_owner *owners;
    uint32_t count, cap;
    uint32_t last;
    uint32_t state;
    uint32_t next_moment, block_end; /* invariant 3; both 0: nothing is left */
};

uint32_t rf_slots_lock;
static struct slot *slots;
static uint32_t slot_count, slot_cap;
static uint32_t *idle; /* those that are IDLE or FORGOTTEN */
static uint32_t idle_count, idle_cap;

static void *grow(void *array, uint32_t *cap, uint32_t need, size_t element)
{
    if (need <= *cap)
        return array;
    uint32_t wanted = *cap ? *cap : 4;
    while (wanted < need)
        wanted *= 2;
    char *larger = rf_take(wanted * element);
    if (array)
        memcpy(larger, array, *cap * element);
    rf_give(array, *cap * element);
    *cap = wanted;
    return larger;
}

static void own(uint32_t slot, struct rf_thread *thread)
{
    struct slot *s = &slots[slot];
    uint32_t since = s->last + 1;
    s->state = OWNED;
    s->owners = grow(s->owners, &s->cap, s->count + 1, sizeof *s->owners);
    s->owners[s->count++] = (struct rf_owner){ since, thread->index };
    thread->slot = slot;
    thread->since = since;
    rf_clock_room(&thread->clock, slot + (rf_accu ? 2 : 1));
    rf_clock_set(&thread->clock, NULL, slot, s->last);
    thread->epoch = rf_epoch_make(slot, s->last);
}

static void take_fresh(struct rf_thread *thread)
{
    uint32_t slot = slot_count;
    slot_count += rf_accu ? 2 : 1; /* guest/accu.h, 2: the odd ones are nobody's */
    slots = grow(slots, &slot_cap, slot_count, sizeof *slots);
    slots[slot_count - 1].state = SPENT;
    own(slot, thread);
}

/* Invariant 2. Whose end the parent has seen is likely to be among those that ended last. */
void rf_slot_take(struct rf_self *self, const struct rf_clock *parent)
{
    for (uint32_t i = idle_count, least = i > 64 ? i - 64 : 0; i-- > least;) {
        uint32_t slot = idle[i];
        struct slot *s = &slots[slot];
        bool ordered = s->state == FORGOTTEN || (parent && rf_clock_get(parent, slot) >= s->last);
        if (!ordered || s->last >= RF_TIME_LIMIT - 2)
            continue;
        idle[i] = idle[--idle_count];
        own(slot, &self->thread);
        self->next_moment = s->next_moment;
        self->block_end = s->block_end;
        self->block_slot = slot;
        s->next_moment = s->block_end = 0;
        return;
    }
    take_fresh(&self->thread);
}

static void make_idle(uint32_t slot, uint32_t state)
{
    struct slot *s = &slots[slot];
    if (s->last >= RF_TIME_LIMIT - 2) { /* it has no next owner */
        s->state = SPENT;
        return;
    }
    s->state = state;
    idle = grow(idle, &idle_cap, idle_count + 1, sizeof *idle);
    idle[idle_count++] = slot;
}

void rf_slot_leave(struct rf_self *self, bool joined)
{
    const struct rf_thread *thread = &self->thread;
    struct slot *s = &slots[thread->slot];
    rf_policy_slot_left(thread->slot);
    rf_policy_thread_ends(self);
    s->last = thread->clock.times[thread->slot];
    if (self->block_slot == thread->slot) {
        s->next_moment = self->next_moment;
        s->block_end = self->block_end;
    }
    if (joined)
        make_idle(thread->slot, IDLE);
    else
        s->state = DEAD;
}

void rf_slot_joined(uint32_t slot)
{
    if (slots[slot].state == DEAD)
        make_idle(slot, IDLE);
}

void rf_thread_fresh_slot(struct rf_self *self)
{
    rf_spin_lock(&rf_slots_lock);
    struct slot *s = &slots[self->thread.slot];
    rf_policy_slot_left(self->thread.slot);
    s->last = self->thread.clock.times[self->thread.slot];
    s->state = SPENT;
    take_fresh(&self->thread);
    rf_version_ends(self);
    rf_spin_unlock(&rf_slots_lock);
}

uint32_t rf_thread_of(uint32_t slot, uint32_t time)
{
    uint32_t thread = 0;
    bool mine = rf_busy_enter(rf_hot.self);
    rf_spin_lock(&rf_slots_lock);
    if (slot < slot_count) {
        const struct slot *s = &slots[slot];
        uint32_t low = 0, high = s->count; /* the owner is at low or above, and below high: there may be thousands */
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            if (s->owners[middle].since > time)
                high = middle;
            else
                low = middle;
        }
        thread = s->owners[low].thread;
    }
    rf_spin_unlock(&rf_slots_lock);
    rf_busy_leave(rf_hot.self, mine);
    return thread;
}

void rf_slots_dead(void (*f)(uint32_t slot, void *), void *context)
{
    for (uint32_t slot = 0; slot < slot_count; slot++)
        slots[slot].next_moment = slots[slot].block_end = 0;
    for (uint32_t slot = 0; slot < slot_count; slot++)
        if (slots[slot].state == DEAD || slots[slot].state == IDLE)
            f(slot, context);
}

void rf_slot_reclaim(uint32_t slot)
{
    rf_spin_lock(&rf_slots_lock);
    if (slots[slot].state == DEAD)
        make_idle(slot, FORGOTTEN);
    else if (slots[slot].state == IDLE)
        slots[slot].state = FORGOTTEN;
    rf_spin_unlock(&rf_slots_lock);
}

void rf_slots_past(struct rf_thread *thread)
{
    rf_clock_room(&thread->clock, slot_count);
    for (uint32_t slot = 0; slot < slot_count; slot++)
        if (slot != thread->slot && rf_clock_get(&thread->clock, slot) < slots[slot].last)
            rf_clock_set(&thread->clock, NULL, slot, slots[slot].last);
}

void rf_slots_inherit(struct rf_thread *thread)
{
    rf_slots_past(thread);
    for (uint32_t slot = 0; slot < slot_count; slot++)
        if (slot != thread->slot && slots[slot].state == DEAD)
            make_idle(slot, IDLE);
}
