/* Generic: the vector-clock detector that all the others are measured against (PACER, Algorithms 1-6; Wood, Figure 2.3;
 * AccuLock, section 2.1). Two vectors a variable, O(n) at every access, and on purpose no shortcut for an epoch seen before.
 *
 * 1. W_x(t) and R_x(t) are the times of thread t's last write and last read of x: every access is recorded, whether it raced
 *    or not. So every access that races with any earlier one is reported, not only the first on a variable: Generic says
 *    exactly what the definition of a race says, under each interpretation of transactions.
 */
#ifndef RF_DETECT_GENERIC_H
#define RF_DETECT_GENERIC_H

#include "detect/vectors.h"

struct gen {
    struct rf_engine engine;
    struct rf_order order;
    uint64_t read_checks, write_checks;
};

#define gen_thread rf_thread

struct gen_cell {
    struct vc_past *past;
};

static inline void gen_init(struct gen *d)
{
    vc_order_init(&d->order, &d->engine);
}

static inline struct rf_thread *gen_thread_at(struct gen *d, uint32_t thread)
{
    return rf_order_thread(&d->order, thread);
}

/* Algorithm 5, [VC READ] */
static inline bool gen_read(struct gen *d, struct rf_thread *t, struct gen_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    d->read_checks++;
    bool race = vc_races(&d->engine, &d->order, cell->past, t, false);
    vc_record(d->engine.memory, &cell->past, t, false, note);
    return race;
}

/* Algorithm 6, [VC WRITE] */
static inline bool gen_write(struct gen *d, struct rf_thread *t, struct gen_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    d->write_checks++;
    bool race = vc_races(&d->engine, &d->order, cell->past, t, true);
    vc_record(d->engine.memory, &cell->past, t, true, note);
    return race;
}

/* Algorithms 1-4: [VC ACQUIRE], [VC RELEASE], [VC FORK], [VC JOIN] */
static inline void gen_sync(struct gen *d, struct rf_thread *t, const struct rf_event *event)
{
    rf_order_sync(&d->order, t, event);
}

static inline void gen_commit_end(struct gen *d, struct rf_thread *t, const struct rf_event *event)
{
    rf_order_commit_end(&d->order, t, event);
}

static inline void gen_copy(struct gen *d, struct gen_cell *to, const struct gen_cell *from)
{
    to->past = vc_copy(d->engine.memory, from->past);
}

static inline void gen_clear(struct gen *d, struct gen_cell *cell)
{
    vc_end(d->engine.memory, cell->past);
    cell->past = NULL;
}

static inline bool gen_must_widen(const struct gen *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *gen_locksets(const struct gen *d)
{
    (void)d;
    return NULL;
}

static inline rf_lockset gen_held(const struct rf_thread *t, bool write)
{
    (void)t, (void)write;
    return RF_ALL_LOCKS;
}

static inline void gen_statistics(const struct gen *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "read checks", d->read_checks);
    emit(context, "write checks", d->write_checks);
    emit(context, "clock operations", d->order.clock_operations);
}

#endif
