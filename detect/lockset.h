/* LockSet, the plain lockset discipline (AccuLock, Algorithm 3 and section 2.3): every access to a variable must hold a lock
 * that all accesses to it have held. No states, no happens-before.
 *
 * 1. CL_x is the intersection of what protected each access to x so far, RF_READERS_LOCK included for reads; before the
 *    first access it is the set of all locks.
 * 2. An access that finds or makes CL_x empty is reported, be it the only thread there is ("false warning" in Figure 4). Two
 *    accesses that race share no lock, so wherever another detector finds a race on x, LockSet has reported x by then.
 */
#ifndef RF_DETECT_LOCKSET_H
#define RF_DETECT_LOCKSET_H

#include "detect/protection.h"
#include "detect/witness.h"

struct ls {
    struct rf_engine engine;
    struct pr protection;
};

#define ls_thread pr_thread

struct ls_cell {
    uint32_t candidates_plus_1; /* CL_x; so 0 is RF_ALL_LOCKS */
    struct wi_pair before;
};

static inline rf_lockset ls_candidates(const struct ls_cell *cell)
{
    return cell->candidates_plus_1 - 1;
}

static inline void ls_init(struct ls *d)
{
    pr_init(&d->protection, d->engine.memory, true);
}

static inline struct pr_thread *ls_thread_at(struct ls *d, uint32_t thread)
{
    return pr_thread_at(&d->protection, thread, sizeof(struct pr_thread));
}

/* Algorithm 3 */
static inline bool ls_access(struct ls *d, struct pr_thread *t, struct ls_cell *cell, bool write, uint32_t note)
{
    rf_lockset held = write ? t->write : t->read;
    rf_lockset candidates = rf_lockset_intersect(&d->protection.locksets, ls_candidates(cell), held);
    cell->candidates_plus_1 = candidates + 1;
    bool race = candidates == RF_NO_LOCKS;
    if (__builtin_expect(race, 0))
        wi_blame(&d->engine, &cell->before, t->index, write);
    wi_remember(&cell->before, t->index, write, note);
    return race;
}

static inline bool ls_read(struct ls *d, struct pr_thread *t, struct ls_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return ls_access(d, t, cell, false, note);
}

static inline bool ls_write(struct ls *d, struct pr_thread *t, struct ls_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return ls_access(d, t, cell, true, note);
}

static inline void ls_sync(struct ls *d, struct pr_thread *t, const struct rf_event *event)
{
    pr_sync(&d->protection, t, event);
    pr_gone(&d->protection, event, sizeof *t);
}

static inline void ls_commit_end(struct ls *d, struct pr_thread *t, const struct rf_event *event)
{
    (void)event;
    pr_commit_end(&d->protection, t);
}

static inline void ls_copy(struct ls *d, struct ls_cell *to, const struct ls_cell *from)
{
    (void)d;
    *to = *from;
}

static inline void ls_clear(struct ls *d, struct ls_cell *cell)
{
    (void)d;
    memset(cell, 0, sizeof *cell);
}

static inline bool ls_must_widen(const struct ls *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *ls_locksets(const struct ls *d)
{
    return &d->protection.locksets;
}

static inline rf_lockset ls_held(const struct pr_thread *t, bool write)
{
    return write ? t->write : t->read;
}

static inline void ls_statistics(const struct ls *d, rf_statistic_fn *emit, void *context)
{
    pr_statistics(&d->protection, emit, context);
}

#endif
