/* Hybrid: locksets and limited happens-before, behind Eraser's state machine (O'Callahan, Choi: Hybrid Dynamic Data Race
 * Detection, PPoPP 2003; as AccuLock's section 4.3 has it).
 *
 * 1. A variable belongs to the first thread that touches it. While no other thread has touched it, its accesses are not
 *    recorded: initialisation gives no warning. This is Eraser's, and unsound: a race with such an access is not found.
 * 2. From the first access of a second thread on, every access is recorded and checked. Two of them race if limited
 *    happens-before, which is accu-hb (messages order; locks do not), leaves them unordered, one writes and no lock protects
 *    both. Eraser's Shared state, in which reading is fine, needs no rule of its own: reads do not race.
 * 3. Redundant accesses are left out by the lock-subset condition. The rules and the sets are MultiLock-HB's
 *    (detect/multilock.h): so the ∅-races among the accesses that 1 lets through are reported, exactly.
 */
#ifndef RF_DETECT_HYBRID_H
#define RF_DETECT_HYBRID_H

#include "detect/multilock.h"

struct hy {
    struct rf_engine engine;
    struct ml_rules rules;
    uint64_t exclusive; /* accesses that were not recorded */
};

#define hy_thread rf_accu_thread

#define HY_SHARED UINT32_MAX

struct hy_cell {
    struct ml_cell history;
    uint32_t owner_plus_1; /* the first thread; HY_SHARED once there was a second */
};

/* Rule 1; counts the access if it is not to be recorded. */
static inline bool hy_exclusive(struct hy *d, const struct rf_accu_thread *t, struct hy_cell *cell)
{
    if (cell->owner_plus_1 == HY_SHARED)
        return false;
    if (cell->owner_plus_1 && cell->owner_plus_1 != t->order.index + 1) {
        cell->owner_plus_1 = HY_SHARED;
        return false;
    }
    cell->owner_plus_1 = t->order.index + 1;
    d->exclusive++;
    return true;
}

static inline void hy_init(struct hy *d)
{
    ml_rules_init(&d->rules, &d->engine);
}

static inline struct rf_accu_thread *hy_thread_at(struct hy *d, uint32_t thread)
{
    return rf_accu_thread_at(&d->rules.accu, thread);
}

static inline bool hy_read(struct hy *d, struct rf_accu_thread *t, struct hy_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return !hy_exclusive(d, t, cell) && ml_rules_read(&d->rules, t, &cell->history, note);
}

static inline bool hy_write(struct hy *d, struct rf_accu_thread *t, struct hy_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return !hy_exclusive(d, t, cell) && ml_rules_write(&d->rules, t, &cell->history, note);
}

static inline void hy_sync(struct hy *d, struct rf_accu_thread *t, const struct rf_event *event)
{
    rf_accu_sync(&d->rules.accu, t, event);
}

static inline void hy_commit_end(struct hy *d, struct rf_accu_thread *t, const struct rf_event *event)
{
    (void)event;
    rf_accu_commit_end(&d->rules.accu, t);
}

static inline void hy_copy(struct hy *d, struct hy_cell *to, const struct hy_cell *from)
{
    ml_rules_copy(&d->rules, &to->history, &from->history);
    to->owner_plus_1 = from->owner_plus_1;
}

static inline void hy_clear(struct hy *d, struct hy_cell *cell)
{
    ml_rules_clear(&d->rules, &cell->history);
    cell->owner_plus_1 = 0;
}

static inline bool hy_must_widen(const struct hy *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *hy_locksets(const struct hy *d)
{
    return &d->rules.accu.locksets;
}

static inline rf_lockset hy_held(const struct rf_accu_thread *t, bool write)
{
    return rf_accu_held(t, write);
}

static inline void hy_statistics(const struct hy *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "exclusive", d->exclusive);
    ml_rules_statistics(&d->rules, emit, context);
}

#endif
