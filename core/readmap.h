/* Who has read a variable since its last write, when several threads have: a read map (PACER, section 3; AccuLock, 3.3).
 *
 * 1. A map has one entry a key; keys are whatever a detector tells readers apart by.
 * 2. A map is one cache line: few readers are in it, in no order; more are in a hash table. With keys 0 to n-1 and room for n
 *    each of them is found at once there. One place of a table always stays free, so that every search ends.
 * 3. Maps are numbered from 1, so that a cell can refer to one in 31 bits; numbers of ended maps are used again.
 */
#ifndef RF_CORE_READMAP_H
#define RF_CORE_READMAP_H

#include "core/clock.h"
#include "core/lockset.h"

#define RF_FEW_READERS 3u
#define RF_READMAP_CHUNK 1024u

struct rf_last_read {
    uint32_t key_plus_1;
    uint32_t slot, time; /* its epoch */
    uint32_t note;
    rf_lockset locks;
};

struct rf_read_table {
    uint32_t cap; /* a power of two */
    struct rf_last_read *reads;
} __attribute__((packed, aligned(4)));

struct rf_readmap {
    uint32_t count; /* of an unused map: the next unused one */
    union {
        struct rf_last_read few[RF_FEW_READERS];
        struct rf_read_table many; /* if count is above RF_FEW_READERS */
    };
};

_Static_assert(sizeof(struct rf_readmap) == 64, "a read map is a cache line");

struct rf_readmaps {
    struct rf_memory *memory;
    struct rf_readmap **chunks;
    uint32_t count, cap, unused; /* count: maps ever made, with number 0, which stays free; cap: of chunks */
};

static inline void rf_readmaps_init(struct rf_readmaps *all, struct rf_memory *memory)
{
    *all = (struct rf_readmaps){ .memory = memory };
}

static inline struct rf_readmap *rf_readmap_at(const struct rf_readmaps *all, uint32_t map)
{
    return &all->chunks[map / RF_READMAP_CHUNK][map % RF_READMAP_CHUNK];
}

static inline void rf_readmaps_grow(struct rf_readmaps *all)
{
    uint32_t chunk = all->count / RF_READMAP_CHUNK;
    all->chunks = rf_grow(all->memory, all->chunks, &all->cap, chunk + 1, sizeof *all->chunks);
    char *block = rf_alloc(all->memory, (RF_READMAP_CHUNK + 1) * sizeof(struct rf_readmap));
    all->chunks[chunk] = (struct rf_readmap *)(void *)(block + (-(uintptr_t)block & (sizeof(struct rf_readmap) - 1)));
    if (!chunk)
        all->count = 1;
}

static inline uint32_t rf_readmap_new(struct rf_readmaps *all)
{
    uint32_t map = all->unused;
    if (map) {
        all->unused = rf_readmap_at(all, map)->count;
    } else {
        if (all->count % RF_READMAP_CHUNK == 0)
            rf_readmaps_grow(all);
        map = all->count++;
    }
    rf_readmap_at(all, map)->count = 0;
    return map;
}

static inline void rf_readmap_end(struct rf_readmaps *all, uint32_t map)
{
    struct rf_readmap *m = rf_readmap_at(all, map);
    if (m->count > RF_FEW_READERS)
        rf_free(all->memory, m->many.reads, m->many.cap * sizeof *m->many.reads);
    m->count = all->unused;
    all->unused = map;
}

/* All entries, *places of them; in a table, those with key_plus_1 == 0 are free. */
static inline struct rf_last_read *rf_readmap_list(struct rf_readmap *m, uint32_t *places)
{
    *places = m->count > RF_FEW_READERS ? m->many.cap : m->count;
    return m->count > RF_FEW_READERS ? m->many.reads : m->few;
}

/* In a table: the place of a key's entry, or the free place where it belongs. */
static inline struct rf_last_read *rf_read_table_place(const struct rf_read_table *table, uint32_t key)
{
    uint32_t at = key & (table->cap - 1);
    while (table->reads[at].key_plus_1 && table->reads[at].key_plus_1 != key + 1)
        at = (at + 1) & (table->cap - 1);
    return &table->reads[at];
}

/* The entry of a key, NULL if there is none. */
static inline struct rf_last_read *rf_readmap_find(struct rf_readmap *m, uint32_t key)
{
    if (m->count > RF_FEW_READERS) {
        struct rf_last_read *read = rf_read_table_place(&m->many, key);
        return read->key_plus_1 ? read : NULL;
    }
    for (uint32_t i = 0; i < m->count; i++)
        if (m->few[i].key_plus_1 == key + 1)
            return &m->few[i];
    return NULL;
}

/* Moves all entries to a new table. */
static inline void rf_readmap_rehash(struct rf_readmaps *all, struct rf_readmap *m, uint32_t cap)
{
    struct rf_read_table larger = { cap, rf_alloc(all->memory, cap * sizeof *larger.reads) };
    uint32_t places;
    struct rf_last_read *reads = rf_readmap_list(m, &places);
    for (uint32_t i = 0; i < places; i++)
        if (reads[i].key_plus_1)
            *rf_read_table_place(&larger, reads[i].key_plus_1 - 1) = reads[i];
    if (m->count > RF_FEW_READERS)
        rf_free(all->memory, reads, places * sizeof *reads);
    m->many = larger;
}

/* An entry for a key that has none. */
static inline void rf_readmap_add(struct rf_readmaps *all, uint32_t map, uint32_t key, rf_epoch epoch, uint32_t note,
                                  rf_lockset locks)
{
    struct rf_readmap *m = rf_readmap_at(all, map);
    struct rf_last_read read = { key + 1, rf_epoch_slot(epoch), rf_epoch_time(epoch), note, locks };
    if (m->count < RF_FEW_READERS) {
        m->few[m->count++] = read;
        return;
    }
    if (m->count == RF_FEW_READERS)
        rf_readmap_rehash(all, m, 8);
    else if (m->count + 1 == m->many.cap - m->many.cap / 8)
        rf_readmap_rehash(all, m, m->many.cap * 2);
    *rf_read_table_place(&m->many, key) = read;
    m->count++;
}

static inline uint32_t rf_readmap_copy(struct rf_readmaps *all, uint32_t from)
{
    uint32_t map = rf_readmap_new(all);
    struct rf_readmap *m = rf_readmap_at(all, map);
    *m = *rf_readmap_at(all, from);
    if (m->count > RF_FEW_READERS) {
        struct rf_last_read *reads = rf_alloc(all->memory, m->many.cap * sizeof *reads);
        memcpy(reads, m->many.reads, m->many.cap * sizeof *reads);
        m->many.reads = reads;
    }
    return map;
}

static inline bool rf_last_read_leq(const struct rf_last_read *read, const struct rf_clock *clock)
{
    return read->time <= rf_clock_get(clock, read->slot);
}

#endif
