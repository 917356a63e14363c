/* Eraser (Savage, Burrows, Nelson, Sobalvarro and Anderson, 1997): the lockset discipline behind a state machine, which
 * forgives initialisation by one thread and reading by many. AccuLock discusses it in section 2.3.
 *
 *   Virgin           never accessed
 *   Exclusive        accessed by one thread; C(x) is still the set of all locks
 *   Shared           another thread has read it, and nobody has written it since: C(x) is refined, but not reported
 *   Shared-Modified  written by another thread, or by any after it was shared: C(x) is refined, and reported when empty
 *
 * 1. The access that leaves Exclusive is the first that C(x) is refined with. What the first thread did before is forgiven,
 *    which makes Eraser miss real races (Figure 4 of AccuLock).
 * 2. C(x) is refined at a read with the locks held in either mode, at a write with those held exclusively (Savage et al.,
 *    section 2.3).
 * 3. No state is ever left for one further up.
 *
 * The machine stands apart from the detector, because MultiRace runs it, too.
 */
#ifndef RF_DETECT_ERASER_H
#define RF_DETECT_ERASER_H

#include "detect/protection.h"
#include "detect/witness.h"

enum er_state { ER_VIRGIN, ER_EXCLUSIVE, ER_SHARED, ER_SHARED_MODIFIED };

struct er_variable {
    uint32_t owner_and_state; /* who accessed it first, times 4, and an enum er_state */
    rf_lockset candidates;    /* C(x), from Shared on; before, C(x) is the set of all locks */
};

struct er_counts {
    uint64_t entered[ER_SHARED_MODIFIED + 1];
};

static inline enum er_state er_state(const struct er_variable *x)
{
    return (enum er_state)(x->owner_and_state & 3);
}

/* C(x) */
static inline rf_lockset er_candidates(const struct er_variable *x)
{
    return er_state(x) < ER_SHARED ? RF_ALL_LOCKS : x->candidates;
}

static inline void er_enter(struct er_variable *x, struct er_counts *counts, enum er_state state)
{
    x->owner_and_state = (x->owner_and_state & ~3u) | state;
    counts->entered[state]++;
}

/* Every access that Exclusive does not absorb. */
static __attribute__((noinline, unused)) void er_step_slow(struct er_variable *x, struct er_counts *counts,
                                                           struct rf_locksets *locksets, const struct pr_thread *t,
                                                           bool write)
{
    enum er_state state = er_state(x);
    if (state == ER_VIRGIN) {
        x->owner_and_state = t->index << 2;
        er_enter(x, counts, ER_EXCLUSIVE);
        return;
    }
    x->candidates = rf_lockset_intersect(locksets, er_candidates(x), write ? t->write : t->read);
    if (write && state != ER_SHARED_MODIFIED)
        er_enter(x, counts, ER_SHARED_MODIFIED);
    else if (state == ER_EXCLUSIVE)
        er_enter(x, counts, ER_SHARED);
}

/* The state machine, and the refinement of C(x). */
static inline void er_step(struct er_variable *x, struct er_counts *counts, struct rf_locksets *locksets,
                           const struct pr_thread *t, bool write)
{
    if (x->owner_and_state == (t->index << 2 | ER_EXCLUSIVE))
        return;
    er_step_slow(x, counts, locksets, t, write);
}

struct er {
    struct rf_engine engine;
    struct pr protection;
    struct er_counts counts;
};

#define er_thread pr_thread

struct er_cell {
    struct er_variable x;
    struct wi_pair before;
};

static inline void er_init(struct er *d)
{
    pr_init(&d->protection, d->engine.memory, false);
}

static inline struct pr_thread *er_thread_at(struct er *d, uint32_t thread)
{
    return pr_thread_at(&d->protection, thread, sizeof(struct pr_thread));
}

static inline bool er_access(struct er *d, struct pr_thread *t, struct er_cell *cell, bool write, uint32_t note)
{
    er_step(&cell->x, &d->counts, &d->protection.locksets, t, write);
    bool race = er_state(&cell->x) == ER_SHARED_MODIFIED && cell->x.candidates == RF_NO_LOCKS;
    if (__builtin_expect(race, 0))
        wi_blame(&d->engine, &cell->before, t->index, write);
    wi_remember(&cell->before, t->index, write, note);
    return race;
}

static inline bool er_read(struct er *d, struct pr_thread *t, struct er_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return er_access(d, t, cell, false, note);
}

static inline bool er_write(struct er *d, struct pr_thread *t, struct er_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return er_access(d, t, cell, true, note);
}

static inline void er_sync(struct er *d, struct pr_thread *t, const struct rf_event *event)
{
    pr_sync(&d->protection, t, event);
    pr_gone(&d->protection, event, sizeof *t);
}

static inline void er_commit_end(struct er *d, struct pr_thread *t, const struct rf_event *event)
{
    (void)event;
    pr_commit_end(&d->protection, t);
}

static inline void er_copy(struct er *d, struct er_cell *to, const struct er_cell *from)
{
    (void)d;
    *to = *from;
}

static inline void er_clear(struct er *d, struct er_cell *cell)
{
    (void)d;
    memset(cell, 0, sizeof *cell);
}

static inline bool er_must_widen(const struct er *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *er_locksets(const struct er *d)
{
    return &d->protection.locksets;
}

static inline rf_lockset er_held(const struct pr_thread *t, bool write)
{
    return write ? t->write : t->read;
}

/* Variables that entered each state, and Table IV. */
static inline void er_state_statistics(const struct er_counts *counts, rf_statistic_fn *emit, void *context)
{
    emit(context, "exclusive", counts->entered[ER_EXCLUSIVE]);
    emit(context, "shared", counts->entered[ER_SHARED]);
    emit(context, "shared modified", counts->entered[ER_SHARED_MODIFIED]);
}

static inline void er_statistics(const struct er *d, rf_statistic_fn *emit, void *context)
{
    er_state_statistics(&d->counts, emit, context);
    pr_statistics(&d->protection, emit, context);
}

#endif
