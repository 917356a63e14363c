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
 *
 * As printed, the first loops of Algorithms 22 and 23 insert the new pair inside the loop: for each pair that does not
 * subsume it, even if a later one does, and never into empty sets. It is inserted here once, after no pair subsumed it (the
 * text of section 3.5 says the same), and after the second loop, which would otherwise take the new pair out again.
 */
#ifndef RF_DETECT_MULTILOCK_H
#define RF_DETECT_MULTILOCK_H

#include "detect/accu.h"
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

/* Rule 3: a pair that makes an access with these locks redundant. The newest come first: they are the likely ones. */
static inline bool ml_covered(struct ml_rules *m, struct rf_pairs *pairs, rf_epoch now, rf_lockset locks)
{
    const struct rf_pair *list = rf_pairs_list(pairs);
    for (uint32_t i = pairs->count; i-- > 0;)
        if (list[i].epoch == now && rf_lockset_subset(&m->accu.locksets, list[i].locks, locks))
            return true;
    return false;
}

/* Rule 4: takes out the pairs that an access with these locks stands for. */
static inline void ml_take_out(struct ml_rules *m, struct rf_pairs *pairs, const struct rf_accu_thread *t, rf_lockset locks)
{
    struct rf_pair *list = rf_pairs_list(pairs);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pairs->count; i++)
        if (!rf_epoch_leq(list[i].epoch, &t->order.clock) || !rf_lockset_subset(&m->accu.locksets, locks, list[i].locks))
            list[kept++] = list[i];
    pairs->count = kept;
}

/* The loops of Algorithms 20 and 21: does a pair race with an access that has these locks? */
static inline bool ml_races(struct ml_rules *m, struct rf_pairs *pairs, const struct rf_accu_thread *t, rf_lockset locks,
                            bool writes)
{
    const struct rf_pair *list = rf_pairs_list(pairs);
    for (uint32_t i = 0; i < pairs->count; i++)
        if (!rf_epoch_leq(list[i].epoch, &t->order.clock) && rf_lockset_disjoint(&m->accu.locksets, list[i].locks, locks))
            return rf_accu_race(&m->accu, t, list[i].epoch, list[i].note, writes, list[i].locks);
    return false;
}

static inline void ml_add(struct ml_rules *m, struct rf_pairs *pairs, const struct rf_accu_thread *t, rf_lockset locks,
                          uint32_t note)
{
    rf_pairs_add(pairs, m->accu.order.engine->memory, (struct rf_pair){ t->order.epoch, locks, note });
}

static __attribute__((noinline, unused)) bool ml_record_read(struct ml_rules *m, struct rf_accu_thread *t,
                                                             struct ml_cell *cell, uint32_t note)
{
    m->counts.read_recorded++;
    ml_take_out(m, &cell->reads, t, t->held.any);
    ml_add(m, &cell->reads, t, t->held.any, note);
    return ml_races(m, &cell->writes, t, t->held.any, true);
}

static __attribute__((noinline, unused)) bool ml_record_write(struct ml_rules *m, struct rf_accu_thread *t,
                                                              struct ml_cell *cell, uint32_t note)
{
    rf_lockset locks = t->held.exclusive;
    m->counts.write_recorded++;
    ml_take_out(m, &cell->reads, t, locks);
    ml_take_out(m, &cell->writes, t, locks);
    bool race = ml_races(m, &cell->writes, t, locks, true) || ml_races(m, &cell->reads, t, locks, false);
    ml_add(m, &cell->writes, t, locks, note);
    return race;
}

/* Algorithms 20 and 22. */
static inline bool ml_rules_read(struct ml_rules *m, struct rf_accu_thread *t, struct ml_cell *cell, uint32_t note)
{
    if (ml_covered(m, &cell->reads, t->order.epoch, t->held.any) ||
        ml_covered(m, &cell->writes, t->order.epoch, t->held.any)) {
        m->counts.read_redundant++;
        return false;
    }
    return ml_record_read(m, t, cell, note);
}

/* Algorithms 21 and 23. */
static inline bool ml_rules_write(struct ml_rules *m, struct rf_accu_thread *t, struct ml_cell *cell, uint32_t note)
{
    if (ml_covered(m, &cell->writes, t->order.epoch, t->held.exclusive)) {
        m->counts.write_redundant++;
        return false;
    }
    return ml_record_write(m, t, cell, note);
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
