/* accu-hb and the locks held: what AccuLock, MultiLock-HB, Hybrid and RaceTrack know of threads (Xie, Xue, Zhang: AccuLock,
 * section 3.1, Algorithms 4-9 and 14-19; doc/semantics.md).
 *
 * 1. Locks and commits do not order. They change the set of locks held; a release, and the end of a commit, starts a new
 *    epoch if order.tick_releases says so.
 * 2. A read is protected by held.any, a write by held.exclusive. exclusive is a subset of any.
 * 3. Inside a transaction both sets also have RF_TRANSACTION_LOCK: so two transactional accesses never race, and accu-hb
 *    needs no edge between commits, whatever options.transactions says.
 * 4. Between two accesses of one thread in one epoch, with tick_releases on, no lock was given back: the sets only grew.
 */
#ifndef RF_DETECT_ACCU_H
#define RF_DETECT_ACCU_H

#include "core/order.h"
#include "detect/certainty.h"

struct rf_accu {
    struct rf_order order;
    struct rf_locksets locksets;
    struct rf_certainty certainty;
};

struct rf_accu_thread {
    struct rf_thread order;
    struct rf_held held;
    struct rf_clock full; /* detect/certainty.h */
};

static inline void rf_accu_init(struct rf_accu *accu, struct rf_engine *engine, size_t thread_size)
{
    rf_order_init(&accu->order, engine);
    accu->order.thread_size = thread_size;
    accu->order.locks_order = false;
    accu->order.tick = 1; /* by 3, no epoch needs to tell whether it was a transaction's */
    accu->order.volatiles_order = !engine->options->volatile_as_lock;
    rf_locksets_init(&accu->locksets, engine->memory);
    rf_certainty_init(&accu->certainty, engine);
}

static inline struct rf_accu_thread *rf_accu_thread_at(struct rf_accu *accu, uint32_t thread)
{
    return (struct rf_accu_thread *)rf_order_thread(&accu->order, thread);
}

/* What fork and join hand over by happens-before is what accu-hb hands over, and what locks had told the thread. */
static inline void rf_accu_hand_over(struct rf_accu *accu, struct rf_accu_thread *t, const struct rf_event *event)
{
    struct rf_accu_thread *other = (struct rf_accu_thread *)rf_order_known_thread(&accu->order, (uint32_t)event->addr);
    if (!other)
        return;
    if (event->op == RF_FORK) {
        rf_clock_join(&other->full, accu->certainty.memory, &t->full);
    } else {
        rf_clock_set(&other->full, accu->certainty.memory, other->order.slot, rf_epoch_time(other->order.epoch));
        rf_clock_join(&t->full, accu->certainty.memory, &other->full);
    }
}

static inline void rf_accu_gone(struct rf_accu *accu, uint32_t index)
{
    struct rf_accu_thread *t = (struct rf_accu_thread *)rf_order_known_thread(&accu->order, index);
    rf_held_end(&t->held, &accu->locksets);
    rf_clock_end(&t->full, accu->order.engine->memory);
    rf_order_gone(&accu->order, index);
}

static inline void rf_accu_sync(struct rf_accu *accu, struct rf_accu_thread *t, const struct rf_event *event)
{
    if (accu->certainty.memory)
        rf_certainty_sync(&accu->certainty, &t->order, &t->full, event);
    switch ((enum rf_op)event->op) {
    case RF_ACQUIRE:
    case RF_READ_ACQUIRE:
        rf_held_acquire(&t->held, &accu->locksets, event->addr, event->op == RF_ACQUIRE);
        break;
    case RF_RELEASE:
    case RF_READ_RELEASE:
        rf_held_release(&t->held, &accu->locksets, event->addr, event->op == RF_RELEASE);
        if (accu->order.tick_releases)
            rf_thread_tick(&accu->order, &t->order);
        break;
    case RF_COMMIT:
        accu->certainty.memory = NULL; /* what commits order is not kept: from here on every race is called a prediction */
        t->held.any = rf_lockset_add(&accu->locksets, t->held.any, RF_TRANSACTION_LOCK);
        t->held.exclusive = rf_lockset_add(&accu->locksets, t->held.exclusive, RF_TRANSACTION_LOCK);
        break;
    case RF_JOIN:
        rf_order_join(&accu->order, &t->order, event->addr);
        break;
    default:
        rf_order_sync(&accu->order, &t->order, event);
    }
    if (accu->certainty.memory && (event->op == RF_FORK || event->op == RF_JOIN))
        rf_accu_hand_over(accu, t, event);
    if (event->op == RF_JOIN && event->addr & RF_JOIN_LAST)
        rf_accu_gone(accu, (uint32_t)event->addr);
}

static inline void rf_accu_commit_end(struct rf_accu *accu, struct rf_accu_thread *t)
{
    t->held.any = rf_lockset_remove(&accu->locksets, t->held.any, RF_TRANSACTION_LOCK);
    t->held.exclusive = rf_lockset_remove(&accu->locksets, t->held.exclusive, RF_TRANSACTION_LOCK);
    if (accu->order.tick_releases)
        rf_thread_tick(&accu->order, &t->order);
}

static inline rf_lockset rf_accu_held(const struct rf_accu_thread *t, bool write)
{
    return write ? t->held.exclusive : t->held.any;
}

/* Says what t's access races with. accu-hb leaves locks out, so the pair may well be ordered in this execution. */
static inline bool rf_accu_race(struct rf_accu *accu, const struct rf_accu_thread *t, rf_epoch earlier, uint32_t note,
                                bool writes, rf_lockset locks)
{
    accu->order.engine->first = (struct rf_side){ .thread = rf_order_owner(&accu->order, earlier),
                                                  .note = note,
                                                  .known = true,
                                                  .writes = writes,
                                                  .predictive = rf_certainty_ordered(&accu->certainty, &t->full, earlier),
                                                  .locks = locks };
    return true;
}

/* The columns of AccuLock's Table IV that are about synchronisation. */
static inline void rf_accu_statistics(const struct rf_accu *accu, rf_statistic_fn *emit, void *context)
{
    emit(context, "clock operations", accu->order.clock_operations);
    emit(context, "lockset lookups", accu->locksets.lookups);
    emit(context, "lockset intersects", accu->locksets.intersects);
    emit(context, "lockset inserts", accu->locksets.inserts);
}

#endif
