/* LiteHB and FullHB (Biswas et al.: Lightweight data race detection for production runs, sections 7.1 and 8.2): the races
 * of one pair of sites <s1, s2>, by RaceMob's optimised tracking of happens-before.
 *
 * 1. A cell holds accesses at s1 only: for each slot its last read and its last write, those inside transactions apart. One
 *    thread's earlier access is unordered with now only if its last one is, too; so nothing else is needed.
 * 2. An access at s2 (which may be s1) races with the entries that conflict with it and do not happen before it. The pair is
 *    ordered: an access at s1 after one at s2 is not looked at.
 * 3. While not tracking, no thread seen so far can race with an executed instance of s1: none was executed, or the clocks of
 *    all threads that may still act happen after all of them. So an access at s2 need not be checked.
 * 4. Tracking starts with the first instance of s1 after that. Edges from before it order nothing that matters, and clocks
 *    and objects need not begin anew: none of them can know the present time of another thread, since whatever hands that
 *    on, tracked or not, starts a new one.
 * 5. A thread that nobody forked may turn up after tracking has stopped, and races with every instance of s1 that no edge
 *    leads it to. Therefore each stretch of tracking, once it has stopped, becomes one event of an imaginary thread,
 *    LH_PAST, at a time that is the number of the stretch. All threads know it then; while not tracking a release does no
 *    more than note it in its object; and when such a newcomer arrives, tracking starts. Before the first instance of s1,
 *    nothing is noted.
 *
 * So Lite and Full find the same races, those of the definition: each worker may decide by itself when to track.
 * options.full: FullHB, which tracks always.
 */
#ifndef RF_DETECT_LITEHB_H
#define RF_DETECT_LITEHB_H

#include "core/order.h"

#define LH_PAST 0u /* the slot of invariant 5 */

/* Classes of sites (options.site_class). */
#define LH_FIRST 1u
#define LH_SECOND 2u

struct lh_entry {
    uint32_t slot, time, note;
    uint32_t stretch; /* of tracking */
    bool writes, transactional;
};

struct lh_cell {
    struct lh_entry *entries;
    uint32_t count, cap;
};

struct lh_thread {
    struct rf_thread base;
    bool counted;    /* among the threads that may still act */
    uint64_t caught; /* up with all instances up to this one */
};

struct lh {
    struct rf_engine engine;
    struct rf_order order;
    bool tracking;
    uint32_t stretch;         /* the present one, or the next if not tracking; from 1 on */
    uint64_t instances;       /* epochs in which s1 was executed */
    struct rf_clock executed; /* these epochs, in this stretch, and the past */
    uint32_t live, caught_up; /* threads that may still act; those of them whose clocks happen after `executed` */
    uint64_t first_accesses, second_accesses, tracked, untracked, starts;
};

static inline void lh_init(struct lh *d)
{
    rf_order_init(&d->order, &d->engine);
    d->order.thread_size = sizeof(struct lh_thread);
    d->order.slots = rf_grow(d->engine.memory, NULL, &d->order.slot_cap, 1, sizeof *d->order.slots);
    d->order.slot_count = LH_PAST + 1;
    d->tracking = d->engine.options->full;
    d->stretch = 1;
}

static inline uint32_t lh_class(const struct lh *d, uint32_t site)
{
    const struct rf_options *options = d->engine.options;
    return options->site_class ? options->site_class(options->names, site) : 0;
}

/* ---- when to track ---- */

/* Each thread that exists, and has not been joined. */
static inline struct lh_thread *lh_next(const struct lh *d, uint32_t *index)
{
    while (*index < d->order.thread_cap) {
        struct rf_thread *thread = d->order.threads[(*index)++];
        if (thread && !thread->joined)
            return (struct lh_thread *)thread;
    }
    return NULL;
}

static inline void lh_start(struct lh *d)
{
    d->tracking = true;
    d->starts++;
    d->instances++; /* nobody is known to have caught up */
    d->caught_up = 0;
    rf_clock_clear(&d->executed);
    rf_clock_set(&d->executed, d->engine.memory, LH_PAST, d->stretch - 1);
}

static inline void lh_stop(struct lh *d)
{
    struct lh_thread *thread;
    d->tracking = false;
    for (uint32_t i = 0; (thread = lh_next(d, &i));)
        rf_clock_set(&thread->base.clock, d->engine.memory, LH_PAST, d->stretch);
    d->stretch++;
}

static inline void lh_stop_if_all_caught_up(struct lh *d)
{
    if (d->tracking && !d->engine.options->full && d->caught_up == d->live)
        lh_stop(d);
}

/* The thread may have learned of the last instances that it did not know. */
static inline void lh_catch_up(struct lh *d, struct lh_thread *t)
{
    if (!d->tracking || d->engine.options->full || !t->counted || t->caught == d->instances ||
        !rf_clock_leq(&d->executed, &t->base.clock))
        return;
    t->caught = d->instances;
    d->caught_up++;
    lh_stop_if_all_caught_up(d);
}

/* s1 is executed. Unless it was before in this epoch, nobody has caught up with it but, perhaps, its own thread. */
static inline void lh_instance(struct lh *d, struct lh_thread *t)
{
    uint32_t time = rf_epoch_time(t->base.epoch);
    if (d->engine.options->full || rf_clock_get(&d->executed, t->base.slot) == time)
        return;
    rf_clock_set(&d->executed, d->engine.memory, t->base.slot, time);
    d->instances++;
    d->caught_up = 0;
    lh_catch_up(d, t);
}

/* Invariant 5: a thread that does not know the past is a newcomer, and all others have caught up. */
static inline struct lh_thread *lh_count(struct lh *d, struct rf_thread *thread)
{
    struct lh_thread *t = (struct lh_thread *)thread, *other;
    if (t->counted || thread->joined)
        return t;
    t->counted = true;
    t->caught = UINT64_MAX;
    d->live++;
    if (!d->tracking && rf_clock_get(&thread->clock, LH_PAST) + 1 < d->stretch) {
        lh_start(d);
        for (uint32_t i = 0; (other = lh_next(d, &i));)
            lh_catch_up(d, other);
    }
    lh_catch_up(d, t);
    return t;
}

static inline struct lh_thread *lh_thread_at(struct lh *d, uint32_t thread)
{
    return lh_count(d, rf_order_thread(&d->order, thread));
}

/* ---- synchronisation ---- */

/* While not tracking: all threads know the past, and so does whoever receives from this object. */
static inline void lh_note_past(struct lh *d, int space, uint64_t key, bool to_readers)
{
    if (d->stretch == 1)
        return;
    struct rf_sync *sync = rf_order_object(&d->order, space, key);
    rf_clock_set(to_readers ? &sync->readers : &sync->released, d->engine.memory, LH_PAST, d->stretch - 1);
    sync->last = 0;
}

static inline void lh_sync_untracked(struct lh *d, struct lh_thread *t, const struct rf_event *event)
{
    switch ((enum rf_op)event->op) {
    case RF_RELEASE:
    case RF_READ_RELEASE:
        lh_note_past(d, RF_SPACE_LOCK, event->addr, event->op == RF_READ_RELEASE);
        break;
    case RF_VOLATILE_WRITE:
        lh_note_past(d, RF_SPACE_VOLATILE, event->addr, false);
        break;
    case RF_SIGNAL:
        lh_note_past(d, RF_SPACE_SIGNAL, event->addr, false);
        break;
    case RF_ACQUIRE:
    case RF_READ_ACQUIRE:
    case RF_VOLATILE_READ:
    case RF_WAIT:
        break;
    default: /* forks and joins bring threads and slots; a commit may contain s1 and start the tracking half-way */
        rf_order_sync(&d->order, &t->base, event);
        break;
    }
}

static inline void lh_sync(struct lh *d, struct lh_thread *t, const struct rf_event *event)
{
    d->tracked += d->tracking;
    d->untracked += !d->tracking;
    if (d->tracking)
        rf_order_sync(&d->order, &t->base, event);
    else
        lh_sync_untracked(d, t, event);
    if (event->op == RF_FORK)
        lh_count(d, d->order.threads[event->addr]);
    if (event->op == RF_JOIN) {
        struct lh_thread *child = (struct lh_thread *)d->order.threads[event->addr];
        if (child->counted && child->base.joined) {
            child->counted = false;
            d->live--;
            d->caught_up -= d->tracking && child->caught == d->instances;
            lh_stop_if_all_caught_up(d);
        }
    }
    lh_catch_up(d, t);
}

static inline void lh_commit_end(struct lh *d, struct lh_thread *t, const struct rf_event *event)
{
    rf_order_commit_end(&d->order, &t->base, event);
}

/* ---- accesses ---- */

/* By its epoch, which objects handed on that saw it while it was tracked, or as a part of the past. */
static inline bool lh_ordered(const struct lh_thread *t, const struct lh_entry *entry)
{
    return entry->time <= rf_clock_get(&t->base.clock, entry->slot) ||
           entry->stretch <= rf_clock_get(&t->base.clock, LH_PAST);
}

/* The last access at s1 that races with this one. */
static inline bool lh_check(struct lh *d, const struct lh_thread *t, const struct lh_cell *cell, bool write, uint32_t now)
{
    const struct lh_entry *last = NULL;
    for (uint32_t i = 0; i < cell->count; i++) {
        const struct lh_entry *entry = &cell->entries[i];
        bool conflicts = (write || entry->writes) && !(t->base.in_transaction && entry->transactional);
        if (conflicts && !lh_ordered(t, entry) && (!last || now - entry->note < now - last->note))
            last = entry;
    }
    if (!last)
        return false;
    d->engine.first = (struct rf_side){ .thread = rf_order_owner(&d->order, rf_epoch_make(last->slot, last->time)),
                                        .note = last->note,
                                        .known = true,
                                        .writes = last->writes,
                                        .locks = RF_ALL_LOCKS };
    return true;
}

static inline void lh_record(struct lh *d, const struct lh_thread *t, struct lh_cell *cell, bool write, uint32_t note)
{
    bool transactional = t->base.in_transaction;
    uint32_t i = 0;
    while (i < cell->count && (cell->entries[i].slot != t->base.slot || cell->entries[i].writes != write ||
                               cell->entries[i].transactional != transactional))
        i++;
    if (i == cell->count)
        cell->entries = rf_grow(d->engine.memory, cell->entries, &cell->cap, ++cell->count, sizeof *cell->entries);
    cell->entries[i] = (struct lh_entry){ .slot = t->base.slot,
                                          .time = rf_epoch_time(t->base.epoch),
                                          .note = note,
                                          .stretch = d->stretch,
                                          .writes = write,
                                          .transactional = transactional };
}

static __attribute__((noinline, unused)) bool lh_access(struct lh *d, struct lh_thread *t, struct lh_cell *cell,
                                                        uint32_t class, bool write, uint32_t note)
{
    bool race = false;
    if (class & LH_SECOND) {
        d->second_accesses++;
        race = d->tracking && lh_check(d, t, cell, write, note);
    }
    if (class & LH_FIRST) {
        d->first_accesses++;
        if (!d->tracking)
            lh_start(d);
        lh_record(d, t, cell, write, note);
        lh_instance(d, t);
    }
    return race;
}

static inline bool lh_read(struct lh *d, struct lh_thread *t, struct lh_cell *cell, uint32_t site, uint32_t note)
{
    uint32_t class = lh_class(d, site);
    return __builtin_expect(class != 0, 0) && lh_access(d, t, cell, class, false, note);
}

static inline bool lh_write(struct lh *d, struct lh_thread *t, struct lh_cell *cell, uint32_t site, uint32_t note)
{
    uint32_t class = lh_class(d, site);
    return __builtin_expect(class != 0, 0) && lh_access(d, t, cell, class, true, note);
}

static inline void lh_copy(struct lh *d, struct lh_cell *to, const struct lh_cell *from)
{
    *to = (struct lh_cell){ .count = from->count };
    to->entries = rf_grow(d->engine.memory, NULL, &to->cap, from->count, sizeof *to->entries);
    if (from->count)
        memcpy(to->entries, from->entries, from->count * sizeof *to->entries);
}

static inline void lh_clear(struct lh *d, struct lh_cell *cell)
{
    rf_free(d->engine.memory, cell->entries, cell->cap * sizeof *cell->entries);
    *cell = (struct lh_cell){ 0 };
}

static inline bool lh_must_widen(const struct lh *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *lh_locksets(const struct lh *d)
{
    (void)d;
    return NULL;
}

static inline rf_lockset lh_held(const struct lh_thread *t, bool write)
{
    (void)t, (void)write;
    return RF_ALL_LOCKS;
}

static inline void lh_statistics(const struct lh *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "accesses at the first site", d->first_accesses);
    emit(context, "accesses at the second site", d->second_accesses);
    emit(context, "synchronisations tracked", d->tracked);
    emit(context, "synchronisations not tracked", d->untracked);
    emit(context, "tracking started", d->starts);
    emit(context, "clock operations", d->order.clock_operations);
}

#endif
