/* Sets of locks, interned: a set is an index into a table, so that equal sets have equal indices and comparing is free.
 *
 * 1. The members of a set are sorted and distinct. Set 0 is empty. RF_ALL_LOCKS is the set of all locks, before any were seen.
 * 2. Lock 0 and lock 1 are not locks of the program: RF_READERS_LOCK is held by every read (AccuLock, Algorithm 3),
 *    RF_TRANSACTION_LOCK by every access inside a transaction (TL in Goldilocks, Figure 5).
 * 3. Results of intersections are remembered in a direct-mapped cache: a miss costs time, never a wrong answer.
 */
#ifndef RF_CORE_LOCKSET_H
#define RF_CORE_LOCKSET_H

#include "core/map.h"

typedef uint32_t rf_lockset;

#define RF_NO_LOCKS ((rf_lockset)0)
#define RF_ALL_LOCKS ((rf_lockset)UINT32_MAX)
#define RF_READERS_LOCK 0u
#define RF_TRANSACTION_LOCK 1u
#define RF_FIRST_LOCK 2u
#define RF_LOCKSET_CACHE 1024u

struct rf_lockset_entry {
    uint32_t *locks;
    uint32_t count;
    uint32_t next; /* the next set with the same hash, 0 ends the chain */
};

struct rf_locksets {
    struct rf_memory *memory;
    struct rf_lockset_entry *sets;
    uint32_t count, cap;
    uint32_t most; /* locks in the largest one */
    struct rf_map by_hash; /* hash of the members -> first set of the chain */
    struct rf_map locks;   /* key of a lock -> its number */
    uint64_t *keys;        /* and back */
    uint32_t lock_count, key_cap;
    struct {
        rf_lockset a, b, result;
    } cache[RF_LOCKSET_CACHE];
    uint32_t *scratch;
    uint32_t scratch_cap;
    uint64_t lookups, intersects, inserts; /* AccuLock's Table IV */
};

static inline void rf_locksets_init(struct rf_locksets *table, struct rf_memory *memory)
{
    memset(table, 0, sizeof *table);
    table->memory = memory;
    rf_map_init(&table->by_hash, memory);
    rf_map_init(&table->locks, memory);
    table->sets = rf_grow(memory, NULL, &table->cap, 16, sizeof *table->sets);
    table->count = 1; /* the empty set */
    table->lock_count = RF_FIRST_LOCK;
    table->keys = rf_grow(memory, NULL, &table->key_cap, 16, sizeof *table->keys);
}

/* The number of the lock with this key. */
static inline uint32_t rf_lock_number(struct rf_locksets *table, uint64_t key)
{
    uint64_t *number = rf_map_at(&table->locks, key);
    if (!*number) {
        *number = table->lock_count++;
        table->keys = rf_grow(table->memory, table->keys, &table->key_cap, table->lock_count, sizeof *table->keys);
        table->keys[*number] = key;
    }
    return (uint32_t)*number;
}

/* The set with these sorted, distinct members. */
static inline rf_lockset rf_lockset_intern(struct rf_locksets *table, const uint32_t *locks, uint32_t count)
{
    if (!count)
        return RF_NO_LOCKS;
    table->lookups++;
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++)
        hash = rf_hash(hash ^ locks[i]);
    hash >>= 1; /* never RF_NO_KEY */
    uint64_t *chain = rf_map_at(&table->by_hash, hash);
    for (uint32_t set = (uint32_t)*chain; set; set = table->sets[set].next)
        if (table->sets[set].count == count && !memcmp(table->sets[set].locks, locks, count * sizeof *locks))
            return set;
    table->inserts++;
    if (count > table->most)
        table->most = count;
    rf_lockset set = table->count++;
    table->sets = rf_grow(table->memory, table->sets, &table->cap, table->count, sizeof *table->sets);
    uint32_t *copy = rf_alloc(table->memory, count * sizeof *copy);
    memcpy(copy, locks, count * sizeof *copy);
    table->sets[set] = (struct rf_lockset_entry){ copy, count, (uint32_t)*chain };
    *chain = set;
    return set;
}

static inline uint32_t *rf_lockset_scratch(struct rf_locksets *table, uint32_t count)
{
    table->scratch = rf_grow(table->memory, table->scratch, &table->scratch_cap, count, sizeof *table->scratch);
    return table->scratch;
}

static inline rf_lockset rf_lockset_add(struct rf_locksets *table, rf_lockset set, uint32_t lock)
{
    const struct rf_lockset_entry *entry = &table->sets[set];
    uint32_t *out = rf_lockset_scratch(table, entry->count + 1), n = 0, i = 0;
    while (i < entry->count && entry->locks[i] < lock)
        out[n++] = entry->locks[i++];
    if (i < entry->count && entry->locks[i] == lock)
        return set;
    out[n++] = lock;
    while (i < entry->count)
        out[n++] = entry->locks[i++];
    return rf_lockset_intern(table, out, n);
}

static inline rf_lockset rf_lockset_remove(struct rf_locksets *table, rf_lockset set, uint32_t lock)
{
    const struct rf_lockset_entry *entry = &table->sets[set];
    uint32_t *out = rf_lockset_scratch(table, entry->count + 1), n = 0;
    for (uint32_t i = 0; i < entry->count; i++)
        if (entry->locks[i] != lock)
            out[n++] = entry->locks[i];
    return n == entry->count ? set : rf_lockset_intern(table, out, n);
}

static inline bool rf_lockset_has(const struct rf_locksets *table, rf_lockset set, uint32_t lock)
{
    if (set == RF_ALL_LOCKS)
        return true;
    for (uint32_t i = 0; i < table->sets[set].count; i++)
        if (table->sets[set].locks[i] == lock)
            return true;
    return false;
}

static inline rf_lockset rf_lockset_intersect(struct rf_locksets *table, rf_lockset a, rf_lockset b)
{
    if (a == b || b == RF_ALL_LOCKS)
        return a;
    if (a == RF_ALL_LOCKS)
        return b;
    if (!a || !b)
        return RF_NO_LOCKS;
    if (a > b) {
        rf_lockset swap = a;
        a = b;
        b = swap;
    }
    uint32_t at = (a * 31 + b) & (RF_LOCKSET_CACHE - 1);
    if (table->cache[at].a == a && table->cache[at].b == b) /* a is not 0, so an unused line never matches */
        return table->cache[at].result;
    table->intersects++;
    const struct rf_lockset_entry *x = &table->sets[a], *y = &table->sets[b];
    uint32_t *out = rf_lockset_scratch(table, x->count), n = 0;
    for (uint32_t i = 0, j = 0; i < x->count && j < y->count;) {
        if (x->locks[i] == y->locks[j]) {
            out[n++] = x->locks[i];
            i++, j++;
        } else if (x->locks[i] < y->locks[j]) {
            i++;
        } else {
            j++;
        }
    }
    rf_lockset result = rf_lockset_intern(table, out, n);
    table->cache[at].a = a;
    table->cache[at].b = b;
    table->cache[at].result = result;
    return result;
}

static inline bool rf_lockset_disjoint(struct rf_locksets *table, rf_lockset a, rf_lockset b)
{
    return rf_lockset_intersect(table, a, b) == RF_NO_LOCKS;
}

static inline bool rf_lockset_subset(struct rf_locksets *table, rf_lockset a, rf_lockset b)
{
    return rf_lockset_intersect(table, a, b) == a;
}

/* The locks that one thread holds. A lock may be held several times; it leaves the sets with its last release.
 *
 * 4. `any` are the locks held in either mode, which protect a read; `exclusive` those held for writing, which alone protect
 *    a write (Eraser's rule for read-write locks).
 */
struct rf_held {
    struct {
        uint32_t lock, writes, reads; /* how often, by mode */
    } * locks;
    uint32_t count, cap;
    rf_lockset any, exclusive;
};

static inline void rf_held_acquire(struct rf_held *held, struct rf_locksets *table, uint64_t key, bool exclusive)
{
    uint32_t lock = rf_lock_number(table, key), i = 0;
    while (i < held->count && held->locks[i].lock != lock)
        i++;
    if (i == held->count) {
        held->locks = rf_grow(table->memory, held->locks, &held->cap, ++held->count, sizeof *held->locks);
        held->locks[i].lock = lock;
        held->locks[i].writes = held->locks[i].reads = 0;
        held->any = rf_lockset_add(table, held->any, lock);
    }
    if (!exclusive)
        held->locks[i].reads++;
    else if (!held->locks[i].writes++)
        held->exclusive = rf_lockset_add(table, held->exclusive, lock);
}

/* false: the lock was not held in this mode, and nothing has changed. */
static inline bool rf_held_release(struct rf_held *held, struct rf_locksets *table, uint64_t key, bool exclusive)
{
    uint32_t lock = rf_lock_number(table, key), i = 0;
    while (i < held->count && held->locks[i].lock != lock)
        i++;
    if (i == held->count || !(exclusive ? held->locks[i].writes : held->locks[i].reads))
        return false;
    if (!exclusive)
        held->locks[i].reads--;
    else if (!--held->locks[i].writes)
        held->exclusive = rf_lockset_remove(table, held->exclusive, lock);
    if (!held->locks[i].writes && !held->locks[i].reads) {
        held->any = rf_lockset_remove(table, held->any, lock);
        held->locks[i] = held->locks[--held->count];
    }
    return true;
}

static inline void rf_held_end(struct rf_held *held, struct rf_locksets *table)
{
    rf_free(table->memory, held->locks, held->cap * sizeof *held->locks);
    *held = (struct rf_held){ 0 };
}

#endif
