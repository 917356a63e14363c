/* MultiLock-HB: every access that is not redundant, so that exactly the ∅-races of the execution are found (Xie, Xue, Zhang:
 * AccuLock, section 3.5, Algorithms 14-25).
 *
 * 1. Every access so far is in R or W, as a pair of its epoch and lockset, or redundant with respect to one that is: what
 *    races with it later races with that one, too.
 * 2. An epoch lasts from one operation that induces an accu-hb edge to the next (order.tick_acquires; lock releases do not
 *    end it). So no thread learns of an access before its epoch has ended.
 *
 * Let a be an earlier access, b the current one, c any later one. Call a fit to stand for b if both read, both write, or a
 * writes and b reads: then whatever conflicts with b conflicts with a.
 *
 * 3. b is left out if some a of the same epoch is fit to stand for it and lockset(a) is a subset of lockset(b) (Theorem 1).
 *    If c races with b, the two are unordered and have no lock in common; by 2, c is unordered with a as well, and it has no
 *    lock in common with a. Nor has b anything to report: an access between a and b that races with b was reported against
 *    a, and one before a was reported at a.
 * 4. a is taken out if b is fit to stand for it, a happens before b, and lockset(b) is a subset of lockset(a). Algorithms 22
 *    and 23 ask for one epoch; but if c is unordered with a, it is unordered with b, for b before c would mean a before c.
 *    So a may be of any earlier epoch and of any thread.
 * 5. 3 and 4 only use that an access has one lockset and that a race needs disjoint ones. So they hold for read-write locks,
 *    with all locks held for a read and the exclusive ones for a write.
 * 6. a is taken out if ML_PETALS later accesses of its slot are fit to stand for it, any two of which have the same locks in common,
 *    those and no others, which lockset(a) has, too; and if nobody holds as many as ML_PETALS locks. If c races with a, it is
 *    unordered with all of them, and has none of the locks that they have in common. Each of its locks is in one of the others'
 *    sets at most; so there is one that has none of them, and c races with that one. A variable that is accessed under one lock and,
 *    beneath it, under each of a thousand others would have a thousand pairs otherwise. What was taken out before somebody came to
 *    hold that many locks may be missed: by him, if he holds one of each of the sets.
 *
 * As printed, the first loops of Algorithms 22 and 23 insert the new pair inside the loop: for each pair that does not
 * subsume it, even if a later one does, and never into empty sets. It is inserted here once, after no pair subsumed it (the
 * text of section 3.5 says the same), and after the second loop, which would otherwise take the new pair out again.
 *
 * detect/multilock.inc holds the rules: for these cells, and for the words of the runtime (guest/multi.h).
 */
#ifndef RF_DETECT_MULTILOCK_H
#define RF_DETECT_MULTILOCK_H

#include "detect/accu.h"
#include "detect/kinds.h"
#include "detect/pairs.h"

/* How many accesses were redundant, and how many are or were in R and W. */
struct ml_counts {
    uint64_t read_redundant, read_recorded;
    uint64_t write_redundant, write_recorded;
};

/* What the rules work on; Hybrid has one, too. */
struct ml_rules {
    struct rf_accu accu;
    struct ml_counts counts;
};

struct ml {
    struct rf_engine engine;
    struct ml_rules rules;
};

#define ml_thread rf_accu_thread

struct ml_cell {
    struct rf_pairs reads, writes;
};

#define ML(name) ml_rules_##name
#define ML_STATE struct ml_rules
#define ML_THREAD struct rf_accu_thread
#define ML_CELL struct ml_cell
#define ML_LIST struct rf_pairs
#define ML_ITEM struct rf_held_epoch
#define ML_WRITES(cell, kinds) ((kinds)&ML_WRITE ? &(cell)->writes : NULL)
#define ML_READS(cell, kinds) ((kinds)&ML_READ ? &(cell)->reads : NULL)
#define ML_ITEMS(list) rf_pairs_list(list)
#define ML_IS(item, kinds) ((kinds) != 0)
#define ML_PARTS(item) 1u
#define ML_LEAVE(item, parts) ((parts) == 0)
#define ML_IS_NOW(t, item) ((item)->epoch == (t)->order.epoch)
#define ML_ORDERED(t, item) rf_epoch_leq((item)->epoch, &(t)->order.clock)
#define ML_LOCKS(d, item) ((item)->locks)
#define ML_HELD(d, t, kind) ((kind) == ML_READ ? (t)->held.any : (t)->held.exclusive)
#define ML_SUBSET(d, a, b) rf_lockset_subset(&(d)->accu.locksets, a, b)
#define ML_DISJOINT(d, a, b) rf_lockset_disjoint(&(d)->accu.locksets, a, b)
#define ML_COMMON(d, a, b) rf_lockset_intersect(&(d)->accu.locksets, a, b)
#define ML_MOST(d) ((d)->accu.locksets.most)
#define ML_SLOT(item) rf_epoch_slot((item)->epoch)
#define ML_TIME(item) rf_epoch_time((item)->epoch)
#define ML_MY_SLOT(t) ((t)->order.slot)
#define ML_RACE(d, t, item, kinds) rf_accu_race(&(d)->accu, t, (item)->epoch, (item)->note, (kinds)&ML_WRITE, (item)->locks)
#define ML_ADD(d, t, cell, kind, parts, note)                                                                               \
    rf_pairs_add((kind) == ML_READ ? &(cell)->reads : &(cell)->writes, (d)->accu.order.engine->memory,                      \
                 (struct rf_held_epoch){ (t)->order.epoch, ML_HELD(d, t, kind), note })
#define ML_COUNT(d, kind, redundant)                                                                                        \
    ((kind) == ML_READ ? (redundant) ? (d)->counts.read_redundant++ : (d)->counts.read_recorded++                           \
     : (redundant)     ? (d)->counts.write_redundant++                                                                      \
                       : (d)->counts.write_recorded++)
#include "detect/multilock.inc"

/* Algorithms 20 and 22. */
static inline bool ml_rules_read(struct ml_rules *m, struct rf_accu_thread *t, struct ml_cell *cell, uint32_t note)
{
    return ml_rules_access(m, t, cell, ML_READ, 1, note);
}

/* Algorithms 21 and 23. */
static inline bool ml_rules_write(struct ml_rules *m, struct rf_accu_thread *t, struct ml_cell *cell, uint32_t note)
{
    return ml_rules_access(m, t, cell, ML_WRITE, 1, note);
}

static inline void ml_rules_init(struct ml_rules *m, struct rf_engine *engine)
{
    rf_accu_init(&m->accu, engine, sizeof(struct rf_accu_thread));
    m->accu.order.tick_releases = false;
    m->accu.order.tick_acquires = true;
}

static inline void ml_rules_copy(struct ml_rules *m, struct ml_cell *to, const struct ml_cell *from)
{
    rf_pairs_copy(&to->reads, m->accu.order.engine->memory, &from->reads);
    rf_pairs_copy(&to->writes, m->accu.order.engine->memory, &from->writes);
}

static inline void ml_rules_clear(struct ml_rules *m, struct ml_cell *cell)
{
    rf_pairs_clear(&cell->reads, m->accu.order.engine->memory);
    rf_pairs_clear(&cell->writes, m->accu.order.engine->memory);
}

static inline void ml_rules_statistics(const struct ml_rules *m, rf_statistic_fn *emit, void *context)
{
    emit(context, "read redundant", m->counts.read_redundant);
    emit(context, "read recorded", m->counts.read_recorded);
    emit(context, "write redundant", m->counts.write_redundant);
    emit(context, "write recorded", m->counts.write_recorded);
    rf_accu_statistics(&m->accu, emit, context);
}

/* ---- the detector ---- */

static inline void ml_init(struct ml *d)
{
    ml_rules_init(&d->rules, &d->engine);
}

static inline struct rf_accu_thread *ml_thread_at(struct ml *d, uint32_t thread)
{
    return rf_accu_thread_at(&d->rules.accu, thread);
}

static inline bool ml_read(struct ml *d, struct rf_accu_thread *t, struct ml_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return ml_rules_read(&d->rules, t, cell, note);
}

static inline bool ml_write(struct ml *d, struct rf_accu_thread *t, struct ml_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return ml_rules_write(&d->rules, t, cell, note);
}

static inline void ml_sync(struct ml *d, struct rf_accu_thread *t, const struct rf_event *event)
{
    rf_accu_sync(&d->rules.accu, t, event);
}

static inline void ml_commit_end(struct ml *d, struct rf_accu_thread *t, const struct rf_event *event)
{
    (void)event;
    rf_accu_commit_end(&d->rules.accu, t);
}

static inline void ml_copy(struct ml *d, struct ml_cell *to, const struct ml_cell *from)
{
    ml_rules_copy(&d->rules, to, from);
}

static inline void ml_clear(struct ml *d, struct ml_cell *cell)
{
    ml_rules_clear(&d->rules, cell);
}

static inline bool ml_must_widen(const struct ml *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *ml_locksets(const struct ml *d)
{
    return &d->rules.accu.locksets;
}

static inline rf_lockset ml_held(const struct rf_accu_thread *t, bool write)
{
    return rf_accu_held(t, write);
}

static inline void ml_statistics(const struct ml *d, rf_statistic_fn *emit, void *context)
{
    ml_rules_statistics(&d->rules, emit, context);
}

#endif
