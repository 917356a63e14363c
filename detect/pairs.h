/* A set of accesses, each as its epoch and lockset: what MultiLock-HB's R and W are made of, and RaceTrack's threadset.
 *
 * 1. All zero is the empty set.
 * 2. One pair lies in the set itself, since most variables never need a second; then `more` has all of them.
 * 3. The order of the pairs is that in which they were added.
 */
#ifndef RF_DETECT_PAIRS_H
#define RF_DETECT_PAIRS_H

#include "core/clock.h"
#include "core/lockset.h"

struct rf_held_epoch {
    rf_epoch epoch;
    rf_lockset locks;
    uint32_t note;
};

struct rf_pairs {
    struct rf_held_epoch one;
    struct rf_held_epoch *more;
    uint32_t count, cap; /* cap is 0 while `one` is in use */
};

static inline struct rf_held_epoch *rf_pairs_list(struct rf_pairs *pairs)
{
    return pairs->cap ? pairs->more : &pairs->one;
}

static inline void rf_pairs_add(struct rf_pairs *pairs, struct rf_memory *memory, struct rf_held_epoch pair)
{
    if (pairs->count && pairs->count >= pairs->cap) {
        bool first = !pairs->cap;
        pairs->more = rf_grow(memory, pairs->more, &pairs->cap, pairs->count + 1, sizeof pair);
        if (first)
            pairs->more[0] = pairs->one;
    }
    rf_pairs_list(pairs)[pairs->count++] = pair;
}

static inline void rf_pairs_clear(struct rf_pairs *pairs, struct rf_memory *memory)
{
    rf_free(memory, pairs->more, pairs->cap * sizeof *pairs->more);
    *pairs = (struct rf_pairs){ 0 };
}

/* `to` is empty and has no memory. */
static inline void rf_pairs_copy(struct rf_pairs *to, struct rf_memory *memory, const struct rf_pairs *from)
{
    *to = *from;
    if (!from->cap)
        return;
    to->more = rf_alloc(memory, to->cap * sizeof *to->more);
    memcpy(to->more, from->more, from->count * sizeof *to->more);
}

#endif
