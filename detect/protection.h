/* Which locks protect each thread's accesses now: what LockSet, Eraser and MultiRace have in common.
 *
 * 1. A read is protected by the locks its thread holds in either mode, a write by those it holds exclusively (Savage et al.,
 *    section 2.3). Inside a transaction both are protected by RF_TRANSACTION_LOCK, too.
 * 2. With `readers_lock` every read holds RF_READERS_LOCK, so that reads alone never empty a set (AccuLock, Algorithm 3).
 * 3. The two sets change at synchronisation and not at accesses, so that an access has them at hand.
 */
#ifndef RF_DETECT_PROTECTION_H
#define RF_DETECT_PROTECTION_H

#include "core/detector.h"

struct pr_thread {
    uint32_t index;
    bool in_transaction;
    rf_lockset read, write; /* what protects a read, a write */
    struct rf_held held;
};

struct pr {
    struct rf_memory *memory;
    struct rf_locksets locksets;
    struct pr_thread **threads;
    uint32_t thread_cap;
    bool readers_lock;
};

static inline void pr_refresh(struct pr *p, struct pr_thread *t)
{
    t->read = t->held.any;
    t->write = t->held.exclusive;
    if (p->readers_lock)
        t->read = rf_lockset_add(&p->locksets, t->read, RF_READERS_LOCK);
    if (t->in_transaction) {
        t->read = rf_lockset_add(&p->locksets, t->read, RF_TRANSACTION_LOCK);
        t->write = rf_lockset_add(&p->locksets, t->write, RF_TRANSACTION_LOCK);
    }
}

static inline void pr_init(struct pr *p, struct rf_memory *memory, bool readers_lock)
{
    rf_locksets_init(&p->locksets, memory);
    p->memory = memory;
    p->readers_lock = readers_lock;
}

/* `size` is that of the detector's own thread, which begins with a struct pr_thread. */
static inline void *pr_thread_at(struct pr *p, uint32_t index, size_t size)
{
    if (index < p->thread_cap && p->threads[index])
        return p->threads[index];
    p->threads = rf_grow(p->memory, p->threads, &p->thread_cap, (size_t)index + 1, sizeof *p->threads);
    struct pr_thread *t = p->threads[index] = rf_alloc(p->memory, size);
    t->index = index;
    pr_refresh(p, t);
    return t;
}

/* After each event: if that was the last of a thread, what is kept of it goes. `size`: as above. */
static inline void pr_gone(struct pr *p, const struct rf_event *event, size_t size)
{
    uint32_t index = (uint32_t)event->addr;
    if (event->op != RF_JOIN || !(event->addr & RF_JOIN_LAST) || index >= p->thread_cap || !p->threads[index])
        return;
    rf_held_end(&p->threads[index]->held, &p->locksets);
    rf_free(p->memory, p->threads[index], size);
    p->threads[index] = NULL;
}

static inline void pr_sync(struct pr *p, struct pr_thread *t, const struct rf_event *event)
{
    switch ((enum rf_op)event->op) {
    case RF_ACQUIRE:
    case RF_READ_ACQUIRE:
        rf_held_acquire(&t->held, &p->locksets, event->addr, event->op == RF_ACQUIRE);
        break;
    case RF_RELEASE:
    case RF_READ_RELEASE:
        rf_held_release(&t->held, &p->locksets, event->addr, event->op == RF_RELEASE);
        break;
    case RF_COMMIT:
        t->in_transaction = true;
        break;
    default:
        return;
    }
    pr_refresh(p, t);
}

static inline void pr_commit_end(struct pr *p, struct pr_thread *t)
{
    t->in_transaction = false;
    pr_refresh(p, t);
}

/* AccuLock's Table IV. */
static inline void pr_statistics(const struct pr *p, rf_statistic_fn *emit, void *context)
{
    emit(context, "lockset lookups", p->locksets.lookups);
    emit(context, "lockset intersects", p->locksets.intersects);
    emit(context, "lockset inserts", p->locksets.inserts);
}

#endif
