/* DJIT+ (Pozniansky and Schuster), as AccuLock compares it in its sections 4 and 6: vector clocks for every variable, but
 * only the first read and the first write of each time frame are checked and recorded. A time frame is an epoch: it ends
 * where the thread hands knowledge on.
 *
 * 1. W_x(t) and R_x(t) are the epochs of thread t's last write and last read of x, with the note of the first in that epoch.
 * 2. A second access of one kind in an epoch finds nothing new as long as the variable has not raced: an access of another
 *    thread between the two cannot happen after the first, for that takes a release, which ends the epoch; so it was itself
 *    reported, or did not conflict. Hence the first race on each variable is the one that Generic reports.
 */
#ifndef RF_DETECT_DJIT_H
#define RF_DETECT_DJIT_H

#include "detect/vectors.h"

struct dj {
    struct rf_engine engine;
    struct rf_order order;
    uint64_t read_same, read_first, write_same, write_first; /* accesses, by whether their epoch has had one like it */
};

#define dj_thread rf_thread

struct dj_cell {
    struct vc_past *past;
};

static inline void dj_init(struct dj *d)
{
    vc_order_init(&d->order, &d->engine);
}

static inline struct rf_thread *dj_thread_at(struct dj *d, uint32_t thread)
{
    return rf_order_thread(&d->order, thread);
}

static __attribute__((noinline, unused)) bool dj_first(struct dj *d, struct rf_thread *t, struct dj_cell *cell, bool write,
                                                       uint32_t note)
{
    bool race = vc_races(&d->engine, &d->order, cell->past, t, write);
    vc_record(d->engine.memory, &cell->past, t, write, note);
    return race;
}

static inline bool dj_read(struct dj *d, struct rf_thread *t, struct dj_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    if (vc_same_epoch(cell->past, t, false)) {
        d->read_same++;
        return false;
    }
    d->read_first++;
    return dj_first(d, t, cell, false, note);
}

static inline bool dj_write(struct dj *d, struct rf_thread *t, struct dj_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    if (vc_same_epoch(cell->past, t, true)) {
        d->write_same++;
        return false;
    }
    d->write_first++;
    return dj_first(d, t, cell, true, note);
}

static inline void dj_sync(struct dj *d, struct rf_thread *t, const struct rf_event *event)
{
    rf_order_sync(&d->order, t, event);
}

static inline void dj_commit_end(struct dj *d, struct rf_thread *t, const struct rf_event *event)
{
    rf_order_commit_end(&d->order, t, event);
}

static inline void dj_copy(struct dj *d, struct dj_cell *to, const struct dj_cell *from)
{
    to->past = vc_copy(d->engine.memory, from->past);
}

static inline void dj_clear(struct dj *d, struct dj_cell *cell)
{
    vc_end(d->engine.memory, cell->past);
    cell->past = NULL;
}

static inline bool dj_must_widen(const struct dj *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *dj_locksets(const struct dj *d)
{
    (void)d;
    return NULL;
}

static inline rf_lockset dj_held(const struct rf_thread *t, bool write)
{
    (void)t, (void)write;
    return RF_ALL_LOCKS;
}

static inline void dj_statistics(const struct dj *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "read same epoch", d->read_same);
    emit(context, "read checks", d->read_first);
    emit(context, "write same epoch", d->write_same);
    emit(context, "write checks", d->write_first);
    emit(context, "clock operations", d->order.clock_operations);
}

#endif
