/* Whether two accesses that accu-hb leaves unordered are unordered by happens-before, too: then their race is one of this execution,
 * not only of another. For reports of AccuLock, MultiLock-HB, RaceTrack and Hybrid; options.certainty asks for it.
 *
 * 1. A thread's `full` clock is what it knows by happens-before, locks included, in terms of the epochs of accu-hb: of each slot the
 *    last time of which an access can happen before now. It is kept beside the detector, which never looks at it.
 * 2. Times of accu-hb advance at every release of a lock, or else (MultiLock-HB) only where messages are sent. In the second case an
 *    epoch may go on after a release: an access then counts as handed on with it though it came later. So a race may be called a
 *    prediction that was one of this execution; never the other way round.
 */
#ifndef RF_DETECT_CERTAINTY_H
#define RF_DETECT_CERTAINTY_H

#include "core/order.h"

struct rf_certainty {
    struct rf_memory *memory; /* NULL: nobody asked */
    struct rf_map objects[2]; /* locks, all others: key -> struct rf_sync * */
};

static inline void rf_certainty_init(struct rf_certainty *c, const struct rf_engine *engine)
{
    c->memory = engine->options->certainty ? engine->memory : NULL;
    for (int i = 0; i < 2; i++)
        rf_map_init(&c->objects[i], engine->memory);
}

static inline struct rf_sync *rf_certainty_object(struct rf_certainty *c, bool lock, uint64_t key)
{
    uint64_t *place = rf_map_at(&c->objects[!lock], key);
    if (!*place)
        *place = (uint64_t)(uintptr_t)rf_alloc(c->memory, sizeof(struct rf_sync));
    return (struct rf_sync *)(uintptr_t)*place;
}

static inline void rf_certainty_forget(struct rf_certainty *c, uint64_t key)
{
    uint64_t *place = rf_map_find(&c->objects[1], key);
    if (!place)
        return;
    struct rf_sync *sync = (struct rf_sync *)(uintptr_t)*place;
    rf_clock_end(&sync->released, c->memory);
    rf_free(c->memory, sync, sizeof *sync);
    rf_map_remove(&c->objects[1], key);
}

/* Before accu-hb's own step, which may begin a new epoch. FORK and JOIN are the caller's: full clocks lie in its threads. */
static inline void rf_certainty_sync(struct rf_certainty *c, const struct rf_thread *t, struct rf_clock *full,
                                     const struct rf_event *event)
{
    enum rf_op op = (enum rf_op)event->op;
    rf_clock_set(full, c->memory, t->slot, rf_epoch_time(t->epoch));
    switch (op) {
    case RF_ACQUIRE:
    case RF_READ_ACQUIRE: {
        const struct rf_sync *lock = rf_certainty_object(c, true, event->addr);
        rf_clock_join(full, c->memory, &lock->released);
        if (op == RF_ACQUIRE)
            rf_clock_join(full, c->memory, &lock->readers);
        break;
    }
    case RF_RELEASE:
        rf_clock_join(&rf_certainty_object(c, true, event->addr)->released, c->memory, full);
        break;
    case RF_READ_RELEASE:
        rf_clock_join(&rf_certainty_object(c, true, event->addr)->readers, c->memory, full);
        break;
    case RF_VOLATILE_READ:
    case RF_WAIT:
        rf_clock_join(full, c->memory, &rf_certainty_object(c, false, event->addr)->released);
        break;
    case RF_VOLATILE_WRITE:
    case RF_SIGNAL:
        rf_clock_join(&rf_certainty_object(c, false, event->addr)->released, c->memory, full);
        break;
    case RF_FORGET:
        rf_certainty_forget(c, event->addr);
        break;
    default:
        break;
    }
}

/* May the access of this epoch happen before now, by happens-before? */
static inline bool rf_certainty_ordered(const struct rf_certainty *c, const struct rf_clock *full, rf_epoch earlier)
{
    return !c->memory || rf_epoch_leq(earlier, full);
}

#endif
