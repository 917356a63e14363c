/* The past of one variable as vectors: each thread's last read and last write (R_x and W_x in PACER, Algorithms 5 and 6, in
 * Wood's Figure 2.3 and in AccuLock, section 2.1.2). What Generic, DJIT+ and MultiRace have in common.
 *
 * 1. An entry belongs to a slot and holds the time and the note of the last access recorded for it; time 0 means none.
 * 2. A later access of a slot replaces an earlier one. Nothing is lost: the earlier happens before the later, even if the
 *    slot has changed hands (core/order.h, invariant 2), so whoever is unordered with the earlier is so with the later.
 * 3. Accesses inside transactions have vectors of their own. Two of them never race, ordered or not; so a transactional
 *    access must still find a thread's last plain access after that thread made a transactional one.
 */
#ifndef RF_DETECT_VECTORS_H
#define RF_DETECT_VECTORS_H

#include "core/order.h"

struct vc_entry {
    uint32_t time, note;
};

struct vc_vector {
    struct vc_entry *entries; /* by slot */
    uint32_t len;
};

struct vc_past {
    struct vc_vector reads[2], writes[2]; /* [1]: inside transactions */
};

static inline struct vc_vector *vc_mine(struct vc_past *past, const struct rf_thread *t, bool write)
{
    return write ? &past->writes[t->in_transaction] : &past->reads[t->in_transaction];
}

/* V(t) <- C_t(t). The variable gets its vectors with its first access. */
static inline void vc_record(struct rf_memory *memory, struct vc_past **past, const struct rf_thread *t, bool write,
                             uint32_t note)
{
    if (!*past)
        *past = rf_alloc(memory, sizeof **past);
    struct vc_vector *v = vc_mine(*past, t, write);
    v->entries = rf_grow(memory, v->entries, &v->len, t->slot + 1, sizeof *v->entries);
    v->entries[t->slot] = (struct vc_entry){ rf_epoch_time(t->epoch), note };
}

/* An access of the same kind is recorded for this epoch already. */
static inline bool vc_same_epoch(struct vc_past *past, const struct rf_thread *t, bool write)
{
    if (!past)
        return false;
    const struct vc_vector *v = vc_mine(past, t, write);
    return t->slot < v->len && v->entries[t->slot].time == rf_epoch_time(t->epoch);
}

/* V ⊑ C_t; if not, engine.first is an access that does not happen before now: of several that of the first thread in the trace,
 * since workers may give slots in other orders. */
static inline bool vc_ordered(struct rf_engine *engine, const struct rf_order *order, const struct vc_vector *v,
                              const struct rf_thread *t, bool writes)
{
    bool ordered = true;
    for (uint32_t slot = 0; slot < v->len; slot++) {
        const struct vc_entry *entry = &v->entries[slot];
        if (__builtin_expect(entry->time <= rf_clock_get(&t->clock, slot), 1))
            continue;
        uint32_t thread = rf_order_owner(order, rf_epoch_make(slot, entry->time));
        if (!ordered && thread > engine->first.thread)
            continue;
        ordered = false;
        engine->first = (struct rf_side){
            .thread = thread, .note = entry->note, .known = true, .writes = writes, .locks = RF_ALL_LOCKS
        };
    }
    return ordered;
}

/* The check of a read: W_x ⊑ C_t; of a write: R_x ⊑ C_t, as well. Writes come first: a race with one is the graver. */
static inline bool vc_races(struct rf_engine *engine, const struct rf_order *order, const struct vc_past *past,
                            const struct rf_thread *t, bool write)
{
    if (!past)
        return false;
    int kinds = t->in_transaction ? 1 : 2; /* invariant 3 */
    for (int i = 0; i < kinds; i++)
        if (!vc_ordered(engine, order, &past->writes[i], t, true))
            return true;
    for (int i = 0; write && i < kinds; i++)
        if (!vc_ordered(engine, order, &past->reads[i], t, false))
            return true;
    return false;
}

static inline struct vc_vector vc_vector_copy(struct rf_memory *memory, const struct vc_vector *from)
{
    struct vc_vector to = { NULL, from->len };
    if (to.len) {
        to.entries = rf_alloc(memory, to.len * sizeof *to.entries);
        memcpy(to.entries, from->entries, to.len * sizeof *to.entries);
    }
    return to;
}

static inline struct vc_past *vc_copy(struct rf_memory *memory, const struct vc_past *from)
{
    if (!from)
        return NULL;
    struct vc_past *to = rf_alloc(memory, sizeof *to);
    for (int i = 0; i < 2; i++) {
        to->reads[i] = vc_vector_copy(memory, &from->reads[i]);
        to->writes[i] = vc_vector_copy(memory, &from->writes[i]);
    }
    return to;
}

static inline void vc_end(struct rf_memory *memory, struct vc_past *past)
{
    if (!past)
        return;
    for (int i = 0; i < 2; i++) {
        rf_free(memory, past->reads[i].entries, past->reads[i].len * sizeof(struct vc_entry));
        rf_free(memory, past->writes[i].entries, past->writes[i].len * sizeof(struct vc_entry));
    }
    rf_free(memory, past, sizeof *past);
}

/* Full-width clocks. Tests may ask for tiny times: a thread then changes its slot often, and nothing else may change. */
static inline void vc_order_init(struct rf_order *order, struct rf_engine *engine)
{
    rf_order_init(order, engine);
    if (engine->options->time_limit)
        order->time_limit = engine->options->time_limit;
}

#endif
