/* The pairs of sites that may race: two accesses, at least one a write, not both atomic, of one object that two threads can reach, in
 * code that may run at the same time.
 *
 * 1. They are a matrix of bits, a row for each site that is in some pair: a large program has a hundred million of them.
 * 2. Sites that may race with the same ones, and only these, are a group. A group pairs up with another, or with itself, as a whole or
 *    not at all, so that the groups and which of them go together say all that the matrix does.
 */
#ifndef RF_STATIC_PAIRS_H
#define RF_STATIC_PAIRS_H

#include "static/threads.h"

struct rf_static_pairs {
    uint32_t *sites; /* by row, in order */
    uint32_t rows;
    size_t words;             /* of a row */
    uint64_t *bits;           /* symmetric */
    uint64_t count;           /* pairs, each once */
    uint64_t shared, objects; /* how many objects two threads can reach, of all */
    uint32_t *group;          /* by row, from 0 on, in the order of their first rows */
    uint32_t groups;
};

/* The objects that two threads can reach. */
void rf_static_shared(const struct rf_program_ir *program, struct rf_set *shared);
void rf_static_pairs_find(struct rf_static_pairs *pairs, const struct rf_program_ir *program,
                          const struct rf_threads *threads);
/* May two sites race? By row. */
static inline bool rf_static_pair(const struct rf_static_pairs *pairs, uint32_t one, uint32_t other)
{
    return pairs->bits[one * pairs->words + other / 64] >> other % 64 & 1;
}

#endif
