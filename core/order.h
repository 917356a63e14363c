/* Happens-before by vector clocks: what every detector that orders threads shares (PACER, Algorithms 1-4, 14 and 15;
 * Wood, Figure 2.3; AccuLock, Algorithms 4-9, 12 and 13).
 *
 * 1. A thread is known in clocks by a slot. Its epoch is (slot, time) with time = clock[slot] >= 1.
 * 2. A slot changes hands only if the end of its last owner happens before the start of the next one (the forker's clock says
 *    so). Then the two are ordered like one thread's past and future: nothing is missed, nothing is invented. The end is the last
 *    time that the owner handed something on, if it made no access after that (RF_JOIN_QUIET).
 * 3. When a thread's time would pass the limit it goes on under a fresh slot and keeps its old entry at the limit: the same as
 *    a fork that its parent does not survive. So no time ever wraps.
 * 4. A slot number may pass the limit of a detector's narrow cells; `overflow` is set then, and the detector must widen its
 *    cells before the next access.
 * 5. Unless all commits are ordered (RF_TXN_ALL), times advance by two, and they are odd exactly inside a transaction: so an
 *    epoch tells whether its accesses were transactional. RF_TXN_SHARED needs it, too: a copy moves what a transaction did
 *    to another variable, which the next transaction may touch without having one in common with the first.
 * 6. Every operation that hands knowledge on (release-like) starts a new epoch. `tick_releases` off: a lock release does not
 *    (MultiLock-HB). `tick_acquires` on: receiving starts one, too (MultiLock-HB, Algorithms 17-19 and 24).
 */
#ifndef RF_CORE_ORDER_H
#define RF_CORE_ORDER_H

#include "core/clock.h"
#include "core/detector.h"
#include "core/map.h"

struct rf_thread {
    uint32_t index;       /* the thread's number in the trace */
    uint32_t slot, since; /* and its first time there */
    uint32_t handed;      /* the last time there that it handed on; before that, what the slot's last owner had */
    rf_epoch epoch;
    uint32_t narrow; /* the epoch in 32 bits, for detectors with narrow cells; valid while !overflow */
    bool in_transaction;
    bool joined;
    struct rf_clock clock;
};

/* One object that orders threads. `released` is what an acquire receives; `readers` what only an exclusive acquire does. */
struct rf_sync {
    struct rf_clock released, readers;
    uint32_t
        last; /* index + 1 of who knows all of `released`, since it published or acquired it last: it need not join it */
};

struct rf_owner {
    uint32_t since; /* the first time of this owner in the slot */
    uint32_t thread;
};

struct rf_slot {
    struct rf_owner *owners;
    uint32_t count, cap;
    uint32_t last;   /* the last time used, once the owner has ended */
    uint32_t needed; /* and what the forker of the next owner must know */
    bool spent;      /* times are used up; it has no next owner */
};

enum { RF_SPACE_LOCK, RF_SPACE_VOLATILE, RF_SPACE_SIGNAL, RF_SPACE_TRANSACTION, RF_SPACES };

struct rf_order {
    struct rf_engine *engine;
    struct rf_thread **threads;
    uint32_t thread_cap;
    size_t thread_size; /* of a detector's own struct that begins with a struct rf_thread */
    struct rf_slot *slots;
    uint32_t slot_count, slot_cap;
    uint32_t *idle; /* slots whose owner was joined */
    uint32_t idle_count, idle_cap;
    struct rf_map objects[RF_SPACES]; /* key -> struct rf_sync * */
    struct rf_sync everything;        /* RF_TXN_ALL: the one object of all commits */
    uint32_t slot_limit, time_limit;
    uint32_t narrow_bits; /* of the time in a narrow epoch */
    uint32_t tick;
    bool locks_order; /* off (AccuLock): locks do not order, nor do commits, whose lock is RF_TRANSACTION_LOCK */
    bool volatiles_order, tick_releases, tick_acquires;
    bool overflow;
    uint64_t clock_operations; /* O(n) ones, on synchronisation objects: Tables III and IV */
};

static inline void rf_order_init(struct rf_order *order, struct rf_engine *engine)
{
    memset(order, 0, sizeof *order);
    order->engine = engine;
    order->thread_size = sizeof(struct rf_thread);
    for (int i = 0; i < RF_SPACES; i++)
        rf_map_init(&order->objects[i], engine->memory);
    order->slot_limit = UINT32_MAX / 2; /* RF_TAG must stay free */
    order->time_limit = UINT32_MAX - 3;
    order->tick = engine->options->transactions == RF_TXN_ALL ? 1 : 2;
    order->locks_order = order->volatiles_order = order->tick_releases = true;
}

/* Narrow epochs: times below 2^time_bits, slots below 2^slot_bits. Tests may ask for less through the options. */
static inline void rf_order_narrow(struct rf_order *order, uint32_t slot_bits, uint32_t time_bits)
{
    const struct rf_options *options = order->engine->options;
    order->narrow_bits = time_bits;
    order->slot_limit = options->slot_limit ? options->slot_limit : 1u << slot_bits;
    order->time_limit = options->time_limit ? options->time_limit : (1u << time_bits) - 2; /* 5. adds one */
}

static inline void rf_order_widen(struct rf_order *order)
{
    order->slot_limit = UINT32_MAX / 2;
    order->time_limit = UINT32_MAX - 3;
    order->overflow = false;
}

static inline void rf_thread_refresh(struct rf_order *order, struct rf_thread *thread)
{
    uint32_t time = thread->clock.times[thread->slot];
    thread->epoch = rf_epoch_make(thread->slot, time);
    /* A slot past the limit has no narrow epoch; this one is none, so that nobody gets far with it. */
    thread->narrow = thread->slot < order->slot_limit ? thread->slot << order->narrow_bits | time : UINT32_MAX;
}

static inline void rf_slot_own(struct rf_order *order, uint32_t slot, struct rf_thread *thread, uint32_t since)
{
    struct rf_slot *s = &order->slots[slot];
    s->owners = rf_grow(order->engine->memory, s->owners, &s->cap, s->count + 1, sizeof *s->owners);
    s->owners[s->count++] = (struct rf_owner){ since, thread->index };
    thread->slot = slot;
    thread->since = since;
    thread->handed = s->needed;
    rf_clock_set(&thread->clock, order->engine->memory, slot, since);
    rf_thread_refresh(order, thread);
}

static __attribute__((noinline, unused)) void rf_slot_fresh(struct rf_order *order, struct rf_thread *thread)
{
    uint32_t slot = order->slot_count++;
    order->slots = rf_grow(order->engine->memory, order->slots, &order->slot_cap, order->slot_count, sizeof *order->slots);
    if (slot >= order->slot_limit)
        order->overflow = true;
    rf_slot_own(order, slot, thread, order->tick == 2 ? 2 : 1);
}

/* Invariant 2. parent is NULL for a thread that nobody forked. */
static __attribute__((noinline, unused)) void rf_slot_choose(struct rf_order *order, struct rf_thread *thread,
                                                             const struct rf_thread *parent)
{
    /* Whose end the forker has seen is likely to be among those that ended last. */
    for (uint32_t i = order->idle_count, least = i > 16 ? i - 16 : 0; parent && i-- > least;) {
        uint32_t slot = order->idle[i];
        const struct rf_slot *s = &order->slots[slot];
        if (rf_clock_get(&parent->clock, slot) < s->needed || s->last + 2 * order->tick >= order->time_limit)
            continue;
        order->idle[i] = order->idle[--order->idle_count];
        rf_slot_own(order, slot, thread, s->last + order->tick);
        return;
    }
    rf_slot_fresh(order, thread);
}

static __attribute__((noinline, unused)) struct rf_thread *rf_thread_new(struct rf_order *order, uint32_t index,
                                                                         const struct rf_thread *parent)
{
    struct rf_memory *memory = order->engine->memory;
    order->threads = rf_grow(memory, order->threads, &order->thread_cap, (size_t)index + 1, sizeof *order->threads);
    struct rf_thread *thread = order->threads[index] = rf_alloc(memory, order->thread_size);
    thread->index = index;
    rf_slot_choose(order, thread, parent);
    return thread;
}

static inline struct rf_thread *rf_order_known_thread(const struct rf_order *order, uint32_t index)
{
    return index < order->thread_cap ? order->threads[index] : NULL;
}

/* A thread that was joined lives again: its name is used again, or the trace is wrong. Its slot may have another owner. */
static inline void rf_thread_revive(struct rf_order *order, struct rf_thread *thread, const struct rf_thread *parent)
{
    thread->joined = false;
    rf_slot_choose(order, thread, parent);
}

/* The thread, which is about to act. */
static inline struct rf_thread *rf_order_thread(struct rf_order *order, uint32_t index)
{
    struct rf_thread *thread = rf_order_known_thread(order, index);
    if (__builtin_expect(!thread, 0))
        return rf_thread_new(order, index, NULL);
    if (__builtin_expect(thread->joined, 0))
        rf_thread_revive(order, thread, NULL);
    return thread;
}

/* Which thread an epoch belongs to. */
static inline uint32_t rf_order_owner(const struct rf_order *order, rf_epoch epoch)
{
    const struct rf_slot *slot = &order->slots[rf_epoch_slot(epoch)];
    uint32_t low = 0, high = slot->count; /* the owner is at low or above, and below high: there may be thousands */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (slot->owners[middle].since > rf_epoch_time(epoch))
            high = middle;
        else
            low = middle;
    }
    return slot->owners[low].thread;
}

static inline void rf_thread_advance(struct rf_order *order, struct rf_thread *thread, uint32_t step)
{
    uint32_t time = thread->clock.times[thread->slot];
    if (time + step > order->time_limit) { /* invariant 3 */
        order->slots[thread->slot].spent = true;
        rf_slot_fresh(order, thread);
        return;
    }
    thread->clock.times[thread->slot] = time + step;
    rf_thread_refresh(order, thread);
}

/* Starts a new epoch. */
static inline void rf_thread_tick(struct rf_order *order, struct rf_thread *thread)
{
    rf_thread_advance(order, thread, order->tick);
}

/* The same, after the thread's clock was handed on. */
static inline void rf_thread_handed(struct rf_order *order, struct rf_thread *thread)
{
    thread->handed = thread->clock.times[thread->slot];
    rf_thread_tick(order, thread);
}

static inline struct rf_sync *rf_order_object(struct rf_order *order, int space, uint64_t key)
{
    uint64_t *place = rf_map_at(&order->objects[space], key);
    if (!*place)
        *place = (uint64_t)(uintptr_t)rf_alloc(order->engine->memory, sizeof(struct rf_sync));
    return (struct rf_sync *)(uintptr_t)*place;
}

static inline void rf_order_forget(struct rf_order *order, int space, uint64_t key)
{
    uint64_t *place = rf_map_find(&order->objects[space], key);
    if (!place)
        return;
    struct rf_sync *sync = (struct rf_sync *)(uintptr_t)*place;
    rf_clock_end(&sync->released, order->engine->memory);
    rf_clock_end(&sync->readers, order->engine->memory);
    rf_free(order->engine->memory, sync, sizeof *sync);
    rf_map_remove(&order->objects[space], key);
}

static inline void rf_order_receive(struct rf_order *order, struct rf_thread *thread, struct rf_sync *sync)
{
    if (sync->last != thread->index + 1 && sync->released.len) {
        order->clock_operations++;
        rf_clock_join(&thread->clock, order->engine->memory, &sync->released);
    }
    if (order->tick_acquires)
        rf_thread_tick(order, thread);
}

/* The object holds what was published before, as well: several threads may have published (volatiles, signals). */
static inline void rf_order_publish(struct rf_order *order, struct rf_thread *thread, struct rf_sync *sync)
{
    order->clock_operations++;
    uint32_t me = thread->index + 1;
    sync->last = sync->released.len && sync->last != me ? 0 : me;
    rf_clock_join(&sync->released, order->engine->memory, &thread->clock);
    rf_thread_handed(order, thread);
}

/* A lock was taken: what it orders. */
static inline void rf_order_lock(struct rf_order *order, struct rf_thread *thread, struct rf_sync *sync, bool exclusive)
{
    rf_order_receive(order, thread, sync);
    if (!exclusive)
        return;
    if (sync->readers.len) {
        order->clock_operations++;
        rf_clock_join(&thread->clock, order->engine->memory, &sync->readers);
    }
    sync->last = thread->index + 1;
}

/* And it is given back. The new epoch that follows is the caller's. */
static inline void rf_order_unlock(struct rf_order *order, struct rf_thread *thread, struct rf_sync *sync, bool exclusive)
{
    uint32_t me = thread->index + 1;
    order->clock_operations++;
    if (exclusive) {
        /* Algorithm 2 copies. The holder received all that the lock knew, so joining is the same; and in a trace that
         * releases a lock nobody holds, it still means that every release comes before every later acquire. */
        rf_clock_join(&sync->released, order->engine->memory, &thread->clock);
        if (sync->last == me)
            rf_clock_clear(&sync->readers);
        else
            sync->last = 0;
    } else {
        rf_clock_join(&sync->readers, order->engine->memory, &thread->clock);
        if (sync->last != me)
            sync->last = 0;
    }
}

static inline void rf_order_acquire(struct rf_order *order, struct rf_thread *thread, uint64_t key, bool exclusive)
{
    if (order->locks_order)
        rf_order_lock(order, thread, rf_order_object(order, RF_SPACE_LOCK, key), exclusive);
}

static inline void rf_order_release(struct rf_order *order, struct rf_thread *thread, uint64_t key, bool exclusive)
{
    if (order->locks_order)
        rf_order_unlock(order, thread, rf_order_object(order, RF_SPACE_LOCK, key), exclusive);
    if (order->tick_releases)
        rf_thread_tick(order, thread);
}

static inline void rf_order_fork(struct rf_order *order, struct rf_thread *parent, uint32_t index)
{
    struct rf_thread *child = rf_order_known_thread(order, index);
    if (!child)
        child = rf_thread_new(order, index, parent);
    else if (child->joined)
        rf_thread_revive(order, child, parent);
    uint32_t own = child->clock.times[child->slot];
    order->clock_operations++;
    rf_clock_join(&child->clock, order->engine->memory, &parent->clock);
    child->clock.times[child->slot] = own; /* a reused slot: the parent knows it up to its last owner's end, which is less */
    rf_thread_refresh(order, child);
    rf_thread_handed(order, parent);
}

/* `key` is the index of who is joined, and flags (core/event.h). */
static inline void rf_order_join(struct rf_order *order, struct rf_thread *thread, uint64_t key)
{
    uint32_t index = (uint32_t)key;
    struct rf_thread *child = rf_order_known_thread(order, index);
    if (!child)
        child = rf_thread_new(order, index, NULL);
    order->clock_operations++;
    rf_clock_join(&thread->clock, order->engine->memory, &child->clock);
    if (!child->joined && child != thread) {
        child->joined = true;
        struct rf_slot *slot = &order->slots[child->slot];
        slot->last = child->clock.times[child->slot];
        slot->needed = key & RF_JOIN_QUIET ? child->handed : slot->last;
        order->idle =
            rf_grow(order->engine->memory, order->idle, &order->idle_cap, order->idle_count + 1, sizeof *order->idle);
        order->idle[order->idle_count++] = child->slot;
    }
    if (order->tick_acquires)
        rf_thread_tick(order, thread);
}

/* RF_JOIN_LAST: its name stays, for reports. */
static inline void rf_order_gone(struct rf_order *order, uint32_t index)
{
    struct rf_thread *thread = order->threads[index];
    rf_clock_end(&thread->clock, order->engine->memory);
    rf_free(order->engine->memory, thread, order->thread_size);
    order->threads[index] = NULL;
}

static inline void rf_order_transaction(struct rf_order *order, struct rf_thread *thread, struct rf_sync *sync, bool begin)
{
    if (begin) {
        rf_order_receive(order, thread, sync);
        return;
    }
    order->clock_operations++;
    sync->last = 0;
    rf_clock_join(&sync->released, order->engine->memory, &thread->clock);
}

/* Receives, or hands over, what is known through the variables of a commit: its bytes, as parts of different commits may
 * overlap; with RF_TXN_ALL through one object, even if the commit has no variables. */
static inline void rf_order_transactions(struct rf_order *order, struct rf_thread *thread, const struct rf_event *event,
                                         bool begin)
{
    enum rf_transactions mode = order->engine->options->transactions;
    enum rf_op meets = begin ? RF_COMMIT_READ : RF_COMMIT_WRITE; /* RF_TXN_WRITES: an earlier W and a later R' */
    if (!order->locks_order)
        return;
    if (mode == RF_TXN_ALL) {
        rf_order_transaction(order, thread, &order->everything, begin);
        return;
    }
    for (uint32_t i = 1; i <= event->size; i++)
        for (uint32_t byte = 0; (mode != RF_TXN_WRITES || event[i].op == meets) && byte < event[i].size; byte++)
            rf_order_transaction(order, thread, rf_order_object(order, RF_SPACE_TRANSACTION, event[i].addr + byte), begin);
}

static inline void rf_order_commit_begin(struct rf_order *order, struct rf_thread *thread, const struct rf_event *event)
{
    rf_order_transactions(order, thread, event, true);
    thread->in_transaction = true;
    if (order->tick == 2) {
        rf_thread_tick(order, thread);
        thread->clock.times[thread->slot]++; /* invariant 5; the limit leaves room */
        rf_thread_refresh(order, thread);
    }
}

static inline void rf_order_commit_end(struct rf_order *order, struct rf_thread *thread, const struct rf_event *event)
{
    rf_order_transactions(order, thread, event, false);
    thread->in_transaction = false;
    if (order->tick == 2)
        rf_thread_advance(order, thread, 1); /* even again, and new: the odd time stays in the thread's past */
    else if (order->tick_releases)
        rf_thread_tick(order, thread);
}

/* Two accesses inside transactions are never a race, ordered or not (invariant 5). */
static inline bool rf_order_exempt(const struct rf_order *order, const struct rf_thread *thread, rf_epoch earlier)
{
    return order->tick == 2 && thread->in_transaction && (earlier & 1);
}

static __attribute__((noinline, unused)) void rf_order_sync(struct rf_order *order, struct rf_thread *thread,
                                                            const struct rf_event *event)
{
    switch ((enum rf_op)event->op) {
    case RF_ACQUIRE:
    case RF_READ_ACQUIRE:
        rf_order_acquire(order, thread, event->addr, event->op == RF_ACQUIRE);
        break;
    case RF_RELEASE:
    case RF_READ_RELEASE:
        rf_order_release(order, thread, event->addr, event->op == RF_RELEASE);
        break;
    case RF_FORK:
        rf_order_fork(order, thread, (uint32_t)event->addr);
        break;
    case RF_JOIN:
        rf_order_join(order, thread, event->addr);
        if (event->addr & RF_JOIN_LAST)
            rf_order_gone(order, (uint32_t)event->addr);
        break;
    case RF_VOLATILE_READ:
        if (order->volatiles_order)
            rf_order_receive(order, thread, rf_order_object(order, RF_SPACE_VOLATILE, event->addr));
        break;
    case RF_VOLATILE_WRITE:
        if (order->volatiles_order)
            rf_order_publish(order, thread, rf_order_object(order, RF_SPACE_VOLATILE, event->addr));
        else if (order->tick_releases)
            rf_thread_tick(order, thread);
        break;
    case RF_WAIT:
        rf_order_receive(order, thread, rf_order_object(order, RF_SPACE_SIGNAL, event->addr));
        break;
    case RF_SIGNAL:
        rf_order_publish(order, thread, rf_order_object(order, RF_SPACE_SIGNAL, event->addr));
        break;
    case RF_FORGET:
        rf_order_forget(order, RF_SPACE_SIGNAL, event->addr);
        break;
    case RF_COMMIT:
        rf_order_commit_begin(order, thread, event);
        break;
    default:
        break;
    }
}

#endif
