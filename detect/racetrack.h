/* RaceTrack: a lockset first, and the set of threads that access concurrently once the lockset is empty (Yu, Rodeheffer,
 * Chen: RaceTrack, SOSP 2005: its algorithm with threadsets and the adaptive states; AccuLock, sections 4.3 and 6).
 *
 * The threadset S of a variable has an epoch for each thread that accesses it concurrently. An access by t first takes out
 * of S all that happens before it, then puts t's own epoch in ("merge"). What happens before is what fork, join and the
 * other edges of accu-hb order; locks do not. C is the variable's lockset, L what protects the access. These are the rules:
 *
 *   Virgin            never accessed; an access by t makes it t's: Exclusive0.
 *   Exclusive0        t's accesses change nothing. Another thread's starts S with it alone: Exclusive1. The first thread's
 *                     past is forgotten, so that a variable may be initialised and then handed over.
 *   Exclusive1        merges. While one thread is left, nothing else. As soon as there are two, C := L, and the variable
 *                     becomes Shared by a read, Shared-Modified by a write.
 *   Shared            C := C ∩ L. A write makes it Shared-Modified; reads never report.
 *   Shared-Modified1  C := C ∩ L, while it is not empty.
 *   Shared-Modified2  entered whenever a Shared-Modified variable's C is empty; the access that enters it starts S anew,
 *                     alone. An access merges: if others are left in S beside its thread, it is a race. If there were others
 *                     and all of them happen before it, the variable is one thread's again: Exclusive1.
 *
 * 1. Only Exclusive1 and Shared-Modified2 keep S, only Shared and Shared-Modified1 keep C. So a race is reported at the
 *    fourth access at the earliest: RaceTrack looks for races only after it has "observed some racy evidence" (4.3).
 * 2. S has at most one epoch a thread.
 * 3. From Exclusive1 on, the last write and the last one of another thread are remembered, to say what a race is with. If
 *    both are missing or the current thread's own, then nobody else wrote, and an entry of S is a read.
 */
#ifndef RF_DETECT_RACETRACK_H
#define RF_DETECT_RACETRACK_H

#include "detect/accu.h"
#include "detect/pairs.h"

enum rt_state { RT_VIRGIN, RT_EXCLUSIVE0, RT_EXCLUSIVE1, RT_SHARED, RT_SHARED_MODIFIED1, RT_SHARED_MODIFIED2, RT_STATES };

struct rt {
    struct rf_engine engine;
    struct rf_accu accu;
    uint64_t entered[RT_STATES]; /* accesses that found the variable in this state */
};

#define rt_thread rf_accu_thread

struct rt_writer {
    uint32_t thread_plus_1, note;
};

struct rt_cell {
    uint32_t state; /* enum rt_state */
    uint32_t owner; /* Exclusive0: the thread */
    rf_lockset locks;
    struct rf_pairs threads;
    struct rt_writer last, other; /* writes; `other` is the last one by another thread than `last` */
};

/* Merges; true if other threads are left. *ended: how many others were taken out. */
static inline bool rt_merge(struct rt *d, const struct rf_accu_thread *t, struct rt_cell *cell, rf_lockset locks,
                            uint32_t note, uint32_t *ended)
{
    struct rf_held_epoch *list = rf_pairs_list(&cell->threads);
    uint32_t kept = 0;
    *ended = 0;
    for (uint32_t i = 0; i < cell->threads.count; i++) {
        if (!rf_epoch_leq(list[i].epoch, &t->order.clock))
            list[kept++] = list[i];
        else
            *ended += rf_order_owner(&d->accu.order, list[i].epoch) != t->order.index;
    }
    cell->threads.count = kept;
    rf_pairs_add(&cell->threads, d->engine.memory, (struct rf_held_epoch){ t->order.epoch, locks, note });
    return kept;
}

static inline void rt_start_alone(struct rt *d, const struct rf_accu_thread *t, struct rt_cell *cell, rf_lockset locks,
                                  uint32_t note)
{
    cell->threads.count = 0;
    rf_pairs_add(&cell->threads, d->engine.memory, (struct rf_held_epoch){ t->order.epoch, locks, note });
}

/* The variable is shared and C is up to date. */
static inline void rt_share(struct rt *d, const struct rf_accu_thread *t, struct rt_cell *cell, rf_lockset locks, bool write,
                            uint32_t note)
{
    if (!write && cell->state != RT_SHARED_MODIFIED1) {
        cell->state = RT_SHARED;
    } else if (cell->locks) {
        cell->state = RT_SHARED_MODIFIED1;
    } else {
        cell->state = RT_SHARED_MODIFIED2;
        rt_start_alone(d, t, cell, locks, note);
    }
}

/* Invariant 3. S has another thread's entry, the first one. */
static inline bool rt_race(struct rt *d, const struct rf_accu_thread *t, struct rt_cell *cell)
{
    uint32_t me = t->order.index + 1;
    const struct rt_writer *write = cell->last.thread_plus_1 && cell->last.thread_plus_1 != me ? &cell->last : &cell->other;
    struct rf_held_epoch first = *rf_pairs_list(&cell->threads);
    if (write->thread_plus_1 && write->thread_plus_1 != me)
        d->engine.first = (struct rf_side){ .thread = write->thread_plus_1 - 1,
                                            .note = write->note,
                                            .known = true,
                                            .writes = true,
                                            .predictive = true,
                                            .locks = RF_ALL_LOCKS };
    else
        rf_accu_race(&d->accu, t, first.epoch, first.note, false, first.locks);
    return true;
}

static inline void rt_remember_write(const struct rf_accu_thread *t, struct rt_cell *cell, uint32_t note)
{
    if (cell->last.thread_plus_1 != t->order.index + 1)
        cell->other = cell->last;
    cell->last = (struct rt_writer){ t->order.index + 1, note };
}

/* An access to a variable that two threads have accessed. */
static __attribute__((noinline, unused)) bool rt_step(struct rt *d, struct rf_accu_thread *t, struct rt_cell *cell,
                                                      bool write, uint32_t note)
{
    rf_lockset locks = rf_accu_held(t, write);
    bool race = false;
    uint32_t ended;
    switch ((enum rt_state)cell->state) {
    case RT_EXCLUSIVE0:
        cell->state = RT_EXCLUSIVE1;
        rt_start_alone(d, t, cell, locks, note);
        break;
    case RT_EXCLUSIVE1:
        if (rt_merge(d, t, cell, locks, note, &ended)) {
            cell->locks = locks;
            rt_share(d, t, cell, locks, write, note);
        }
        break;
    case RT_SHARED:
    case RT_SHARED_MODIFIED1:
        cell->locks = rf_lockset_intersect(&d->accu.locksets, cell->locks, locks);
        rt_share(d, t, cell, locks, write, note);
        break;
    default: /* RT_SHARED_MODIFIED2 */
        race = rt_merge(d, t, cell, locks, note, &ended) && rt_race(d, t, cell);
        if (!race && ended)
            cell->state = RT_EXCLUSIVE1;
    }
    if (write)
        rt_remember_write(t, cell, note);
    return race;
}

static inline bool rt_access(struct rt *d, struct rf_accu_thread *t, struct rt_cell *cell, bool write, uint32_t note)
{
    d->entered[cell->state]++;
    if (cell->state == RT_VIRGIN) {
        cell->state = RT_EXCLUSIVE0;
        cell->owner = t->order.index;
    }
    if (cell->state == RT_EXCLUSIVE0 && cell->owner == t->order.index)
        return false;
    return rt_step(d, t, cell, write, note);
}

static inline void rt_init(struct rt *d)
{
    rf_accu_init(&d->accu, &d->engine, sizeof(struct rf_accu_thread));
    d->accu.order.tick_releases = false; /* S asks for threads, not for critical sections */
}

static inline struct rf_accu_thread *rt_thread_at(struct rt *d, uint32_t thread)
{
    return rf_accu_thread_at(&d->accu, thread);
}

static inline bool rt_read(struct rt *d, struct rf_accu_thread *t, struct rt_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return rt_access(d, t, cell, false, note);
}

static inline bool rt_write(struct rt *d, struct rf_accu_thread *t, struct rt_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return rt_access(d, t, cell, true, note);
}

static inline void rt_sync(struct rt *d, struct rf_accu_thread *t, const struct rf_event *event)
{
    rf_accu_sync(&d->accu, t, event);
}

static inline void rt_commit_end(struct rt *d, struct rf_accu_thread *t, const struct rf_event *event)
{
    (void)event;
    rf_accu_commit_end(&d->accu, t);
}

static inline void rt_copy(struct rt *d, struct rt_cell *to, const struct rt_cell *from)
{
    *to = *from;
    rf_pairs_copy(&to->threads, d->engine.memory, &from->threads);
}

static inline void rt_clear(struct rt *d, struct rt_cell *cell)
{
    rf_pairs_clear(&cell->threads, d->engine.memory);
    memset(cell, 0, sizeof *cell);
}

static inline bool rt_must_widen(const struct rt *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *rt_locksets(const struct rt *d)
{
    return &d->accu.locksets;
}

static inline rf_lockset rt_held(const struct rf_accu_thread *t, bool write)
{
    return rf_accu_held(t, write);
}

static inline void rt_statistics(const struct rt *d, rf_statistic_fn *emit, void *context)
{
    static const char *const names[RT_STATES] = { "virgin", "exclusive 0",       "exclusive 1",
                                                  "shared", "shared-modified 1", "shared-modified 2" };
    for (int i = 0; i < RT_STATES; i++)
        emit(context, names[i], d->entered[i]);
    rf_accu_statistics(&d->accu, emit, context);
}

#endif
