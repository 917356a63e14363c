/* Goldilocks, Figure 5 as it stands: every lockset is a list of names, and every synchronisation event updates all of them.
 * Far too slow for more than tests, which compare the lazy evaluation with it (options.eager).
 *
 * 1. A variable has a lockset for its last write and one for the last read of each thread since (section 5: the distinction
 *    of reads and writes). A set is as its rule leaves it: {t} after an access, {t, TL} after one in a transaction.
 * 2. Rule 9 comes in two parts, and the accesses of the transaction between them: before them LS ∩ (R ∪ W) ≠ ∅ adds t,
 *    after them t ∈ LS adds R ∪ W. (Figure 8 enqueues the commit first and gives its accesses {t} after it, which loses the
 *    R ∪ W that Figure 5 adds to their locksets in its last step.) Variables are bytes here.
 */
#ifndef RF_DETECT_GOLDILOCKS_EAGER_H
#define RF_DETECT_GOLDILOCKS_EAGER_H

#include "detect/goldilocks_list.h"

struct gle_name {
    enum gl_kind kind;
    uint64_t key;
};

struct gle_set {
    bool live;
    uint32_t thread; /* whose access */
    struct gle_name *names;
    uint32_t count, cap;
};

static inline bool gle_has(const struct gle_set *set, enum gl_kind kind, uint64_t key)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->names[i].kind == kind && set->names[i].key == key)
            return true;
    return false;
}

static inline void gle_add(struct gl *d, struct gle_set *set, enum gl_kind kind, uint64_t key)
{
    if (gle_has(set, kind, key))
        return;
    set->names = rf_grow(d->engine.memory, set->names, &set->cap, set->count + 1, sizeof *set->names);
    set->names[set->count++] = (struct gle_name){ kind, key };
}

/* foreach (o', d): if from ∈ LS(o', d), add to */
static inline void gle_update(struct gl *d, enum gl_kind from, uint64_t from_key, enum gl_kind to, uint64_t to_key)
{
    for (uint32_t i = 1; i < d->set_count; i++)
        if (d->sets[i].live && gle_has(&d->sets[i], from, from_key))
            gle_add(d, &d->sets[i], to, to_key);
}

static inline uint32_t gle_set_new(struct gl *d, uint32_t thread)
{
    uint32_t i = 1;
    while (i < d->set_count && d->sets[i].live)
        i++;
    d->sets = rf_grow(d->engine.memory, d->sets, &d->set_cap, i + 1, sizeof *d->sets);
    if (i >= d->set_count)
        d->set_count = i + 1;
    d->sets[i].live = true;
    d->sets[i].thread = thread;
    d->sets[i].count = 0;
    return i;
}

/* LS := {t}, or {t, TL} in a transaction (rules 1 and 9) */
static inline uint32_t gle_access(struct gl *d, const struct gl_thread *t)
{
    uint32_t i = gle_set_new(d, t->index);
    gle_add(d, &d->sets[i], GL_THREAD, t->index);
    if (t->xact)
        gle_add(d, &d->sets[i], GL_TL, 0);
    return i;
}

static inline bool gle_ordered(const struct gl *d, uint32_t set, const struct gl_thread *t)
{
    return gle_has(&d->sets[set], GL_THREAD, t->index) || (t->xact && gle_has(&d->sets[set], GL_TL, 0));
}

static inline uint32_t gle_copy(struct gl *d, uint32_t from)
{
    uint32_t i = gle_set_new(d, d->sets[from].thread);
    for (uint32_t j = 0; j < d->sets[from].count; j++)
        gle_add(d, &d->sets[i], d->sets[from].names[j].kind, d->sets[from].names[j].key);
    return i;
}

static inline void gle_commit(struct gl *d, uint32_t t, const struct rf_event *event, bool before)
{
    enum rf_transactions order = d->engine.options->transactions;
    if (order == RF_TXN_ALL && before)
        gle_update(d, GL_ALL, 0, GL_THREAD, t);
    else if (order == RF_TXN_ALL)
        gle_update(d, GL_THREAD, t, GL_ALL, 0);
    for (uint32_t i = 1; order != RF_TXN_ALL && i <= event->size; i++) {
        if (order == RF_TXN_WRITES && event[i].op != (before ? RF_COMMIT_READ : RF_COMMIT_WRITE))
            continue;
        for (uint64_t byte = event[i].addr; byte < event[i].addr + event[i].size; byte++) {
            if (before)
                gle_update(d, GL_BYTE, byte, GL_THREAD, t);
            else
                gle_update(d, GL_THREAD, t, GL_BYTE, byte);
        }
    }
}

static inline void gle_sync(struct gl *d, uint32_t t, const struct rf_event *event)
{
    uint64_t o = event->addr;
    switch ((enum rf_op)event->op) {
    case RF_VOLATILE_READ: /* rule 2 */
        gle_update(d, GL_VOLATILE, o, GL_THREAD, t);
        break;
    case RF_VOLATILE_WRITE: /* rule 3 */
        gle_update(d, GL_THREAD, t, GL_VOLATILE, o);
        break;
    case RF_ACQUIRE: /* rule 4 */
        gle_update(d, GL_LOCK, o, GL_THREAD, t);
        gle_update(d, GL_READERS, o, GL_THREAD, t);
        break;
    case RF_READ_ACQUIRE:
        gle_update(d, GL_LOCK, o, GL_THREAD, t);
        break;
    case RF_RELEASE: /* rule 5 */
        gle_update(d, GL_THREAD, t, GL_LOCK, o);
        break;
    case RF_READ_RELEASE:
        gle_update(d, GL_THREAD, t, GL_READERS, o);
        break;
    case RF_FORK: /* rule 6 */
        gle_update(d, GL_THREAD, t, GL_THREAD, o);
        break;
    case RF_JOIN: /* rule 7 */
        gle_update(d, GL_THREAD, o, GL_THREAD, t);
        break;
    case RF_SIGNAL:
        gle_update(d, GL_THREAD, t, GL_SIGNAL, o);
        break;
    case RF_WAIT:
        gle_update(d, GL_SIGNAL, o, GL_THREAD, t);
        break;
    case RF_FORGET:
        for (uint32_t i = 1; i < d->set_count; i++)
            for (uint32_t j = 0; j < d->sets[i].count; j++)
                if (d->sets[i].names[j].kind == GL_SIGNAL && d->sets[i].names[j].key == o)
                    d->sets[i].names[j--] = d->sets[i].names[--d->sets[i].count];
        break;
    case RF_COMMIT:
        gle_commit(d, t, event, true);
        break;
    default:
        break;
    }
}

#endif
