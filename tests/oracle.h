/* Ground truth: doc/semantics.md computed literally, for traces of some hundred events.
 *
 * 1. What happens before what is a set of pairs, closed under transitivity edge by edge. There are no clocks and no epochs
 *    here, and nothing of core/ but the vocabulary of events.
 * 2. The past of a byte is the set of all its accesses, reads and writes apart; alloc and free empty it, copy replaces it.
 * 3. Each access has its own answer: the set of earlier accesses that it races with, and the past that it met.
 * 4. After the first race of a byte detectors may differ, and a copy carries that freedom on. A copy of what a transaction
 *    touched gives it, too, unless all commits are ordered. Below `clean` the answer for a byte is binding.
 */
#ifndef RF_TESTS_ORACLE_H
#define RF_TESTS_ORACLE_H

#include "core/event.h"

/* Which order, and so which races: by happens-before, or ∅-races. */
enum oracle_order {
    ORACLE_SHARED, /* happens-before, --transactions shared */
    ORACLE_ALL,
    ORACLE_WRITES,
    ORACLE_ACCU,         /* accu-hb: ∅-races */
    ORACLE_ACCU_VOLATILE /* the same, with --volatile lock */
};

#define ORACLE_NODES 1024u
#define ORACLE_WORDS (ORACLE_NODES / 64)
#define ORACLE_GRANULES 64u
#define ORACLE_BYTES (ORACLE_GRANULES * RF_GRANULE)
#define ORACLE_NEVER UINT64_MAX

/* An event, or a commit or copy with its parts: what edges connect. */
struct oracle_node {
    const struct rf_event *event;
    uint64_t any, exclusive; /* locks that protect a read, and a write, here: one bit each; only for accu-hb */
    uint64_t *before;        /* the nodes that happen before this one */
    uint32_t access;         /* its accesses begin here in the list of all, and end where the next node's begin */
};

/* One access of one byte. */
struct oracle_access {
    uint32_t node, byte;
    bool writes;
    bool tainted;              /* the past of the byte had a race before */
    uint64_t *reads, *writers; /* its past: nodes that read, and that wrote */
    uint64_t *races;           /* nodes of the past that it races with */
};

struct oracle {
    enum oracle_order order;
    struct oracle_node nodes[ORACLE_NODES + 1];
    uint32_t node_count, words;
    uint64_t granules[ORACLE_GRANULES]; /* bytes are numbered by the first appearance of their granules */
    uint32_t granule_count;
    struct oracle_access *accesses;
    uint32_t access_count, access_cap;
    uint64_t first[ORACLE_BYTES]; /* number of the first racing event, ORACLE_NEVER if there is none */
    uint64_t clean[ORACLE_BYTES]; /* below this number detectors must agree on the byte */
    uint64_t lock_keys[63];       /* bit of a lock -> its key */
    uint32_t lock_count;
    uint64_t *pool; /* of sets */
    size_t pool_used, pool_cap;
};

/* The events must outlive the answers. An oracle that is all zero is ready; it may run any number of times. */
void oracle_run(struct oracle *oracle, const struct rf_event *events, size_t count, enum oracle_order order);
void oracle_end(struct oracle *oracle);

/* The number of a byte, UINT32_MAX if nothing ever touched its granule. */
uint32_t oracle_byte(const struct oracle *oracle, uint64_t addr);
uint64_t oracle_addr(const struct oracle *oracle, uint32_t byte);

static inline bool oracle_has(const uint64_t *set, uint32_t node)
{
    return set[node / 64] >> (node % 64) & 1;
}

/* The access to this byte, at or after `from` in the list, by an event with this number; NULL if there is none. */
const struct oracle_access *oracle_find(const struct oracle *oracle, uint32_t byte, uint64_t number,
                                        const struct oracle_access *from);
/* Do the accesses with these two numbers race on this byte? */
bool oracle_races(const struct oracle *oracle, uint64_t addr, uint64_t first, uint64_t second);
/* Is the first in the past of the second, as an access to this byte by another thread? */
bool oracle_met(const struct oracle *oracle, uint64_t addr, uint64_t first, uint64_t second);

/* Every race pair, by the sites of its two accesses; each once for every byte. */
typedef void oracle_pair_fn(void *context, const struct oracle_access *second, const struct oracle_node *first);
void oracle_pairs(const struct oracle *oracle, oracle_pair_fn *found, void *context);

#endif
