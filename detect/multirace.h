/* MultiRace (Pozniansky and Schuster), as AccuLock's section 4 describes it: "exactly the same as DJIT+ except that only
 * accesses with an empty lockset concluded by ERASER are checked using VC operations". Happens-before has its lock edges, as
 * in DJIT+.
 *
 * The definition taken here:
 * 1. Eraser's state machine (detect/eraser.h) runs at every access; C(x) is what it says after that access.
 * 2. DJIT+ records the first read and the first write of each epoch, whatever C(x) is.
 * 3. Such an access is checked against the vectors if C(x) is empty, in Shared as well as in Shared-Modified. Before Shared,
 *    C(x) is the set of all locks.
 *
 * So MultiRace reports an access exactly if DJIT+ would and C(x) is empty: it is precise, since each report is a
 * happens-before race, but it is not sound. It misses a race whose second access holds locks while Eraser still forgives the
 * first (Figure 4: wr1 under l1, rd2 under l2), unless a later access of the variable empties C(x) and races itself.
 */
#ifndef RF_DETECT_MULTIRACE_H
#define RF_DETECT_MULTIRACE_H

#include "detect/eraser.h"
#include "detect/vectors.h"

struct mr {
    struct rf_engine engine;
    struct rf_order order;
    struct pr protection;
    struct er_counts counts;
    uint64_t same_epoch, unchecked, read_checks, write_checks;
};

struct mr_thread {
    struct pr_thread locks;
    struct rf_thread *clock;
};

struct mr_cell {
    struct vc_past *past;
    struct er_variable x;
};

static inline void mr_init(struct mr *d)
{
    vc_order_init(&d->order, &d->engine);
    pr_init(&d->protection, d->engine.memory, false);
}

static inline struct mr_thread *mr_thread_at(struct mr *d, uint32_t thread)
{
    struct mr_thread *t = pr_thread_at(&d->protection, thread, sizeof *t);
    t->clock = rf_order_thread(&d->order, thread); /* always: it tells a thread that was joined and lives again */
    return t;
}

static __attribute__((noinline, unused)) bool mr_first(struct mr *d, struct mr_thread *t, struct mr_cell *cell, bool write,
                                                       uint32_t note)
{
    bool race = false;
    if (er_candidates(&cell->x) != RF_NO_LOCKS) {
        d->unchecked++;
    } else {
        *(write ? &d->write_checks : &d->read_checks) += 1;
        race = vc_races(&d->engine, &d->order, cell->past, t->clock, write);
    }
    vc_record(d->engine.memory, &cell->past, t->clock, write, note);
    return race;
}

static inline bool mr_access(struct mr *d, struct mr_thread *t, struct mr_cell *cell, bool write, uint32_t note)
{
    er_step(&cell->x, &d->counts, &d->protection.locksets, &t->locks, write);
    if (vc_same_epoch(cell->past, t->clock, write)) {
        d->same_epoch++;
        return false;
    }
    return mr_first(d, t, cell, write, note);
}

static inline bool mr_read(struct mr *d, struct mr_thread *t, struct mr_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return mr_access(d, t, cell, false, note);
}

static inline bool mr_write(struct mr *d, struct mr_thread *t, struct mr_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return mr_access(d, t, cell, true, note);
}

static inline void mr_sync(struct mr *d, struct mr_thread *t, const struct rf_event *event)
{
    pr_sync(&d->protection, &t->locks, event);
    rf_order_sync(&d->order, t->clock, event);
    pr_gone(&d->protection, event, sizeof *t);
}

static inline void mr_commit_end(struct mr *d, struct mr_thread *t, const struct rf_event *event)
{
    pr_commit_end(&d->protection, &t->locks);
    rf_order_commit_end(&d->order, t->clock, event);
}

static inline void mr_copy(struct mr *d, struct mr_cell *to, const struct mr_cell *from)
{
    to->past = vc_copy(d->engine.memory, from->past);
    to->x = from->x;
}

static inline void mr_clear(struct mr *d, struct mr_cell *cell)
{
    vc_end(d->engine.memory, cell->past);
    memset(cell, 0, sizeof *cell);
}

static inline bool mr_must_widen(const struct mr *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *mr_locksets(const struct mr *d)
{
    return &d->protection.locksets;
}

static inline rf_lockset mr_held(const struct mr_thread *t, bool write)
{
    return write ? t->locks.write : t->locks.read;
}

static inline void mr_statistics(const struct mr *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "same epoch", d->same_epoch);
    emit(context, "lockset not empty", d->unchecked);
    emit(context, "read checks", d->read_checks);
    emit(context, "write checks", d->write_checks);
    emit(context, "clock operations", d->order.clock_operations);
    er_state_statistics(&d->counts, emit, context);
    pr_statistics(&d->protection, emit, context);
}

#endif
