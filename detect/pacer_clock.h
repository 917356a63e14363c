/* PACER's clocks: versioned, and shared while time stands still (section 3.2; Algorithms 9-11 and 16; appendix A, Tables
 * 5-7).
 *
 * 1. In a non-sampling period no time passes: clocks only meet. So the same values come up again and again; versions find
 *    that out without looking at the values, and objects share clocks in place of copying them.
 * 2. A version v@s stands for one value of the clock of the thread with slot s, and versions of a slot only grow. If t has
 *    received v@s (t.versions[s] >= v) then that value is ⊑ t's clock. (Lemma 7)
 * 3. A clock with several holders is never changed; whoever must change it takes a clone first.
 * 4. While sampling, nobody knows of a thread's present time but itself: C_u[t] < C_t[t]. (Definition 2, strict
 *    well-formedness: sbegin advances every thread, and then each operation that hands knowledge on.)
 * 5. A slot goes to a new thread only if its parent knows all that the old one knew at its end, as happens when it joined it;
 *    versions and times go on from there. So 2 holds over the change, and the two are ordered like one thread. Of the old one's
 *    own time it need know only what was handed on, if no access came after that (RF_JOIN_QUIET).
 * 6. A thread whose time or version reaches the limit goes on under a fresh slot; nothing wraps.
 * 7. Unless all commits are ordered, times advance by two and are odd exactly inside transactions (core/order.h,
 *    invariant 5).
 */
#ifndef RF_DETECT_PACER_CLOCK_H
#define RF_DETECT_PACER_CLOCK_H

#include "core/clock.h"
#include "core/detector.h"
#include "core/map.h"
#include "core/order.h"

#define PC_NO_VERSION UINT32_MAX /* the null version epoch, ⊤: the clock is not the value of one thread */

struct pc_clock {
    uint32_t holders;
    struct rf_clock times;
};

struct pc_thread {
    uint32_t index;
    uint32_t slot;
    rf_epoch epoch; /* epoch(t): the slot, and the clock's time for it */
    struct pc_clock *clock;
    struct rf_clock versions; /* ver_t, by slot */
    uint32_t live_at;         /* its place among the live threads */
    uint32_t handed;          /* its time when it last handed its clock on; before that, what the slot's last owner had */
    bool joined, in_transaction;
};

/* What one object hands on: clock_o and vepoch_o. Without a clock it never received any (⊥). */
struct pc_object {
    struct pc_clock *clock;
    uint32_t slot, version;
};

/* A lock, a volatile, a signal, or a variable of transactions. `readers`: what only an exclusive acquire receives. */
struct pc_sync {
    struct pc_object released, readers;
};

struct pc_slot {
    struct rf_owner *owners;
    uint32_t count, cap;
    uint32_t time, version; /* the last ones, once the owner was joined */
    uint32_t needed;        /* and the time that the parent of the next one must know, */
    struct pc_clock *last;  /* beside the rest of its last clock */
};

/* Table 3, for non-sampling and for sampling periods. */
struct pc_clock_counts {
    uint64_t slow_joins, fast_joins, deep_copies, shallow_copies, operations;
};

struct pc_clocks {
    struct rf_engine *engine;
    bool sampling;
    struct pc_thread **threads;
    uint32_t thread_cap;
    struct pc_thread **live;
    uint32_t live_count, live_cap;
    struct pc_slot *slots;
    uint32_t slot_count, slot_cap;
    uint32_t *idle;
    uint32_t idle_count, idle_cap;
    struct rf_map objects[RF_SPACES]; /* key -> struct pc_sync * */
    struct pc_sync everything;        /* RF_TXN_ALL: the one object of all commits */
    struct rf_clock past;             /* what happens before every thread, even one that nobody forked */
    uint32_t tick, limit;
    struct pc_clock_counts counts[2];
};

static inline void pc_clocks_init(struct pc_clocks *c, struct rf_engine *engine)
{
    c->engine = engine;
    for (int i = 0; i < RF_SPACES; i++)
        rf_map_init(&c->objects[i], engine->memory);
    c->tick = engine->options->transactions == RF_TXN_ALL ? 1 : 2;
    c->limit = engine->options->time_limit ? engine->options->time_limit : UINT32_MAX - 4;
}

/* ---- shared clocks (invariant 3) ---- */

static inline void pc_clock_drop(struct pc_clocks *c, struct pc_clock *clock)
{
    if (!clock || --clock->holders)
        return;
    rf_clock_end(&clock->times, c->engine->memory);
    rf_free(c->engine->memory, clock, sizeof *clock);
}

static inline struct pc_clock *pc_clock_new(struct pc_clocks *c)
{
    struct pc_clock *clock = rf_alloc(c->engine->memory, sizeof *clock);
    clock->holders = 1;
    return clock;
}

/* Before *clock is changed. */
static inline void pc_clock_own(struct pc_clocks *c, struct pc_clock **clock)
{
    if ((*clock)->holders == 1)
        return;
    struct pc_clock *clone = pc_clock_new(c);
    rf_clock_copy(&clone->times, c->engine->memory, &(*clock)->times);
    (*clock)->holders--;
    *clock = clone;
}

/* ---- slots and threads ---- */

static inline void pc_slot_own(struct pc_clocks *c, struct pc_thread *t, uint32_t slot, uint32_t time, uint32_t version)
{
    struct rf_memory *memory = c->engine->memory;
    struct pc_slot *s = &c->slots[slot];
    s->owners = rf_grow(memory, s->owners, &s->cap, s->count + 1, sizeof *s->owners);
    s->owners[s->count++] = (struct rf_owner){ time, t->index };
    t->slot = slot;
    t->handed = s->needed;
    rf_clock_set(&t->clock->times, memory, slot, time);
    rf_clock_set(&t->versions, memory, slot, version);
    t->epoch = rf_epoch_make(slot, time);
}

static inline void pc_slot_fresh(struct pc_clocks *c, struct pc_thread *t)
{
    uint32_t slot = c->slot_count++;
    c->slots = rf_grow(c->engine->memory, c->slots, &c->slot_cap, c->slot_count, sizeof *c->slots);
    pc_slot_own(c, t, slot, c->tick, 1); /* equation 7: both begin at one, as rules for "not known" need 0 */
}

/* Does the parent know what the last owner of an idle slot knew? */
static inline bool pc_slot_known(const struct pc_slot *s, uint32_t slot, const struct pc_thread *parent)
{
    const struct rf_clock *last = &s->last->times, *known = &parent->clock->times;
    if (rf_clock_get(known, slot) < s->needed)
        return false;
    for (uint32_t i = 0; i < last->len; i++)
        if (i != slot && last->times[i] > rf_clock_get(known, i))
            return false;
    return true;
}

/* Invariant 5. parent is NULL for a thread that nobody forked. */
static inline void pc_slot_choose(struct pc_clocks *c, struct pc_thread *t, const struct pc_thread *parent)
{
    for (uint32_t i = 0; parent && i < c->idle_count && i < 16; i++) {
        uint32_t slot = c->idle[i];
        struct pc_slot *s = &c->slots[slot];
        if (s->time + 2 * c->tick > c->limit || s->version + 2 > c->limit || !pc_slot_known(s, slot, parent))
            continue;
        pc_clock_drop(c, s->last);
        s->last = NULL;
        c->idle[i] = c->idle[--c->idle_count];
        pc_slot_own(c, t, slot, s->time + c->tick, s->version + 1);
        return;
    }
    pc_slot_fresh(c, t);
}

/* A thread that is new, or was joined and lives again: then its slot may have another owner (core/order.h). */
static inline void pc_thread_begin(struct pc_clocks *c, struct pc_thread *t, const struct pc_thread *parent)
{
    struct rf_memory *memory = c->engine->memory;
    pc_clock_own(c, &t->clock);
    rf_clock_join(&t->clock->times, memory, &c->past);
    pc_slot_choose(c, t, parent);
    t->joined = false;
    t->live_at = c->live_count++;
    c->live = rf_grow(memory, c->live, &c->live_cap, c->live_count, sizeof *c->live);
    c->live[t->live_at] = t;
}

static inline struct pc_thread *pc_thread_new(struct pc_clocks *c, uint32_t index, const struct pc_thread *parent)
{
    struct rf_memory *memory = c->engine->memory;
    c->threads = rf_grow(memory, c->threads, &c->thread_cap, (size_t)index + 1, sizeof *c->threads);
    struct pc_thread *t = c->threads[index] = rf_alloc(memory, sizeof *t);
    t->index = index;
    t->clock = pc_clock_new(c);
    pc_thread_begin(c, t, parent);
    return t;
}

static inline struct pc_thread *pc_known_thread(const struct pc_clocks *c, uint32_t index)
{
    return index < c->thread_cap ? c->threads[index] : NULL;
}

/* The thread, which is about to act. */
static inline struct pc_thread *pc_clocks_thread(struct pc_clocks *c, uint32_t index)
{
    struct pc_thread *t = pc_known_thread(c, index);
    if (!t)
        return pc_thread_new(c, index, NULL);
    if (t->joined)
        pc_thread_begin(c, t, NULL);
    return t;
}

static inline uint32_t pc_owner(const struct pc_clocks *c, rf_epoch epoch)
{
    const struct pc_slot *slot = &c->slots[rf_epoch_slot(epoch)];
    uint32_t i = slot->count;
    while (i > 1 && slot->owners[i - 1].since > rf_epoch_time(epoch))
        i--;
    return slot->owners[i - 1].thread;
}

static inline uint32_t pc_version(const struct pc_thread *t)
{
    return t->versions.times[t->slot];
}

/* t's clock has changed, and is t's alone. */
static inline void pc_new_version(struct pc_clocks *c, struct pc_thread *t)
{
    if (pc_version(t) + 1 > c->limit)
        pc_slot_fresh(c, t);
    else
        t->versions.times[t->slot]++;
}

/* ---- the operations on clocks ---- */

/* Algorithm 10, while sampling. */
static inline void pc_advance(struct pc_clocks *c, struct pc_thread *t, uint32_t by)
{
    pc_clock_own(c, &t->clock);
    uint32_t time = rf_epoch_time(t->epoch) + by;
    if (time > c->limit) {
        pc_slot_fresh(c, t);
        return;
    }
    t->clock->times.times[t->slot] = time;
    t->epoch = rf_epoch_make(t->slot, time);
    pc_new_version(c, t);
}

static inline void pc_tick(struct pc_clocks *c, struct pc_thread *t)
{
    if (c->sampling)
        pc_advance(c, t, c->tick);
}

/* The same, after t's clock was handed on. */
static inline void pc_handed(struct pc_clocks *c, struct pc_thread *t)
{
    t->handed = rf_epoch_time(t->epoch);
    pc_tick(c, t);
}

/* Algorithm 11 and Table 7, rules 4-6: t receives a clock that is version v@slot. */
static inline void pc_join(struct pc_clocks *c, struct pc_thread *t, const struct pc_clock *clock, uint32_t slot,
                           uint32_t version)
{
    struct pc_clock_counts *counts = &c->counts[c->sampling];
    if (version != PC_NO_VERSION && version <= rf_clock_get(&t->versions, slot)) {
        counts->fast_joins++;
        return;
    }
    counts->slow_joins++;
    if (!rf_clock_leq(&clock->times, &t->clock->times)) {
        pc_clock_own(c, &t->clock);
        rf_clock_join(&t->clock->times, c->engine->memory, &clock->times);
        pc_new_version(c, t);
    }
    if (version != PC_NO_VERSION)
        rf_clock_set(&t->versions, c->engine->memory, slot, version);
}

static inline void pc_receive(struct pc_clocks *c, struct pc_thread *t, const struct pc_object *from)
{
    if (from->clock)
        pc_join(c, t, from->clock, from->slot, from->version);
    else
        c->counts[c->sampling].fast_joins++;
}

/* Algorithm 9: the object's clock becomes t's. */
static inline void pc_copy_clock(struct pc_clocks *c, struct pc_object *to, struct pc_thread *t)
{
    if (!c->sampling) {
        c->counts[0].shallow_copies++;
        t->clock->holders++;
        pc_clock_drop(c, to->clock);
        to->clock = t->clock;
    } else { /* sharing would be useless: t's time advances next */
        c->counts[1].deep_copies++;
        if (!to->clock || to->clock->holders > 1) {
            pc_clock_drop(c, to->clock);
            to->clock = pc_clock_new(c);
        }
        rf_clock_copy(&to->clock->times, c->engine->memory, &t->clock->times);
    }
    to->slot = t->slot;
    to->version = pc_version(t);
}

/* Does t know all that the object hands on? */
static inline bool pc_subsumes(const struct pc_thread *t, const struct pc_object *object)
{
    return !object->clock ||
           (object->version != PC_NO_VERSION && object->version <= rf_clock_get(&t->versions, object->slot)) ||
           rf_clock_leq(&object->clock->times, &t->clock->times);
}

/* The object receives t's clock: Algorithm 16, as Table 7, rules 7-9, has it. The algorithm's text cannot be meant: it
 * tests for `sampling`, where appendix C says that the test is for non-sampling periods and Table 7 that it is for both;
 * it takes ver_t[u] < v, that is, t has *not* received the object's version, for "subsumes"; and its last branch leaves
 * out the join. A release of a lock does the same: its holder has received all that the lock hands on, so that it becomes
 * Algorithm 9; and whoever releases a lock without holding it takes nothing away. */
static inline void pc_publish(struct pc_clocks *c, struct pc_thread *t, struct pc_object *to)
{
    if (pc_subsumes(t, to)) {
        pc_copy_clock(c, to, t);
        return;
    }
    c->counts[c->sampling].slow_joins++;
    pc_clock_own(c, &to->clock);
    rf_clock_join(&to->clock->times, c->engine->memory, &t->clock->times);
    to->version = PC_NO_VERSION;
}

static inline void pc_object_end(struct pc_clocks *c, struct pc_object *object)
{
    pc_clock_drop(c, object->clock);
    *object = (struct pc_object){ 0 };
}

static inline struct pc_sync *pc_sync_at(struct pc_clocks *c, int space, uint64_t key)
{
    uint64_t *place = rf_map_at(&c->objects[space], key);
    if (!*place)
        *place = (uint64_t)(uintptr_t)rf_alloc(c->engine->memory, sizeof(struct pc_sync));
    return (struct pc_sync *)(uintptr_t)*place;
}

/* ---- periods (Table 5) ---- */

static inline void pc_sample_begin(struct pc_clocks *c)
{
    c->sampling = true;
    for (uint32_t i = 0; i < c->live_count; i++)
        pc_tick(c, c->live[i]);
}

/* Makes everything so far happen before everything from here on. */
static inline void pc_seal_past(struct pc_clocks *c)
{
    struct rf_memory *memory = c->engine->memory;
    for (uint32_t i = 0; i < c->thread_cap; i++)
        if (c->threads[i])
            rf_clock_join(&c->past, memory, &c->threads[i]->clock->times);
    for (uint32_t i = 0; i < c->idle_count; i++) /* of those that are gone */
        rf_clock_join(&c->past, memory, &c->slots[c->idle[i]].last->times);
    for (uint32_t i = 0; i < c->live_count; i++) {
        pc_clock_own(c, &c->live[i]->clock);
        rf_clock_join(&c->live[i]->clock->times, memory, &c->past);
        pc_new_version(c, c->live[i]);
    }
}

#endif
