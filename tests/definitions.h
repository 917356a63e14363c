/* Detectors by their definitions, for one access and the whole past of its byte: LockSet, Eraser and Hybrid. */
#ifndef RF_TESTS_DEFINITIONS_H
#define RF_TESTS_DEFINITIONS_H

#include "core/race.h"
#include "tests/oracle.h"

/* LockSet by its definition: what all accesses so far, and this one, are protected by. */
#define READERS_BIT (UINT64_C(1) << 62)

static inline uint64_t protects(const struct oracle *o, uint32_t node, bool writes)
{
    return writes ? o->nodes[node].exclusive : o->nodes[node].any | READERS_BIT;
}

static inline bool lockset_says(const struct oracle *o, const struct oracle_access *access)
{
    uint64_t candidates = protects(o, access->node, access->writes);
    for (uint32_t a = 0; a <= access->node; a++) {
        if (oracle_has(access->reads, a))
            candidates &= protects(o, a, false);
        if (oracle_has(access->writers, a))
            candidates &= protects(o, a, true);
    }
    return !candidates;
}

/* Eraser by its states; the past is played again for each access. */
struct eraser {
    enum { VIRGIN, EXCLUSIVE, SHARED, SHARED_MODIFIED } state;
    uint32_t owner;
    uint64_t candidates;
};

static inline void eraser_step(struct eraser *x, const struct oracle *o, uint32_t node, bool writes)
{
    uint32_t thread = o->nodes[node].event->thread;
    if (x->state == VIRGIN)
        *x = (struct eraser){ EXCLUSIVE, thread, UINT64_MAX };
    else if (x->state == EXCLUSIVE && thread != x->owner)
        x->state = writes ? SHARED_MODIFIED : SHARED;
    else if (x->state == SHARED && writes)
        x->state = SHARED_MODIFIED;
    if (x->state >= SHARED)
        x->candidates &= writes ? o->nodes[node].exclusive : o->nodes[node].any;
}

static inline struct eraser eraser_after(const struct oracle *o, const struct oracle_access *access)
{
    struct eraser x = { VIRGIN, 0, UINT64_MAX };
    for (uint32_t a = 0; a <= access->node; a++) {
        if (oracle_has(access->reads, a))
            eraser_step(&x, o, a, false);
        if (oracle_has(access->writers, a))
            eraser_step(&x, o, a, true);
    }
    eraser_step(&x, o, access->node, access->writes);
    return x;
}

static inline bool eraser_says(const struct oracle *o, const struct oracle_access *access)
{
    struct eraser x = eraser_after(o, access);
    return x.state == SHARED_MODIFIED && !x.candidates;
}

/* Freeing what was never accessed is no access: it could race with nothing, and nothing could with it. */
static inline bool frees_nothing(const struct oracle *o, const struct oracle_access *access)
{
    uint64_t past = 0;
    for (uint32_t w = 0; w < o->words; w++)
        past |= access->reads[w] | access->writers[w];
    return o->nodes[access->node].event->op == RF_FREE && !past;
}

/* Hybrid: an ∅-race, but what the first thread did alone is forgiven. */
static inline bool hybrid_says(const struct oracle *o, const struct oracle_access *access)
{
    uint32_t owner = RF_UNKNOWN;
    bool shared = false;
    for (uint32_t a = 0; a < access->node; a++) {
        if (!oracle_has(access->reads, a) && !oracle_has(access->writers, a))
            continue;
        if (owner == RF_UNKNOWN)
            owner = o->nodes[a].event->thread;
        shared |= o->nodes[a].event->thread != owner;
        if (shared && oracle_has(access->races, a))
            return true;
    }
    return false;
}

#endif
