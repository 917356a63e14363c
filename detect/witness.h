/* Two earlier accesses of a variable, so that a detector without clocks can name the other side of its warning.
 *
 * 1. The two are of different threads; the second is there once two threads have accessed the variable.
 * 2. If one thread has written, one of the two is a write of its; if several have, both are writes.
 * So whenever an earlier access of another thread conflicts with the present one, at least one of the two does.
 */
#ifndef RF_DETECT_WITNESS_H
#define RF_DETECT_WITNESS_H

#include "core/detector.h"

struct wi_access {
    uint32_t who; /* (thread + 1) * 2, and 1 more for a write; 0: no access */
    uint32_t note;
};

struct wi_pair {
    struct wi_access a, b;
};

static inline bool wi_writes(struct wi_access access)
{
    return access.who & 1;
}

static inline bool wi_same_thread(struct wi_access x, struct wi_access y)
{
    return x.who >> 1 == y.who >> 1;
}

/* An access of a thread that neither of the two is of: what it replaces must keep both invariants. */
static __attribute__((noinline, unused)) void wi_remember_new(struct wi_pair *pair, struct wi_access now)
{
    if (!pair->a.who || (!wi_writes(pair->a) && wi_writes(pair->b))) {
        pair->a = now;
    } else if (!wi_writes(pair->b)) { /* a read, or none */
        pair->b = now;
    } else if (wi_writes(now)) {
        pair->b = pair->a;
        pair->a = now;
    }
}

static inline void wi_remember(struct wi_pair *pair, uint32_t thread, bool write, uint32_t note)
{
    struct wi_access now = { (thread + 1) << 1 | write, note };
    struct wi_access *mine = wi_same_thread(pair->a, now) ? &pair->a : &pair->b;
    if (!wi_same_thread(*mine, now))
        wi_remember_new(pair, now);
    else if (write || !wi_writes(*mine)) /* a read does not take a write's place */
        *mine = now;
}

static inline bool wi_conflicts(struct wi_access access, uint32_t thread, bool write)
{
    return access.who && access.who >> 1 != thread + 1 && (write || wi_writes(access));
}

/* Makes engine.first an earlier access that conflicts with this one: a write if there is one, unknown if none does. */
static __attribute__((noinline, unused)) void wi_blame(struct rf_engine *engine, const struct wi_pair *pair, uint32_t thread,
                                                       bool write)
{
    struct wi_access found = wi_conflicts(pair->a, thread, write) ? pair->a : pair->b;
    if (wi_conflicts(pair->b, thread, write) && wi_writes(pair->b) && !wi_writes(found))
        found = pair->b;
    engine->first = (struct rf_side){ .thread = RF_UNKNOWN, .predictive = true, .locks = RF_ALL_LOCKS };
    if (wi_conflicts(found, thread, write)) {
        engine->first.thread = (found.who >> 1) - 1;
        engine->first.note = found.note;
        engine->first.known = true;
        engine->first.writes = wi_writes(found);
    }
}

#endif
