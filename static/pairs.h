/* The pairs of sites that may race: two accesses, at least one a write, not both atomic, of one object that two threads can reach, in
 * code that may run at the same time. */
#ifndef RF_STATIC_PAIRS_H
#define RF_STATIC_PAIRS_H

#include "static/threads.h"

struct rf_static_pairs {
    uint64_t *pairs; /* the smaller site << 32 | the larger one; sorted, each once */
    size_t count, capacity;
    uint64_t shared, objects; /* how many objects two threads can reach, of all */
};

/* The objects that two threads can reach. */
void rf_static_shared(const struct rf_program_ir *program, struct rf_set *shared);
void rf_static_pairs_find(struct rf_static_pairs *pairs, const struct rf_program_ir *program,
                          const struct rf_threads *threads);

#endif
