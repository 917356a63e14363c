/* Who has read a variable since its last write, when several threads have: a read map (PACER, section 3; AccuLock, 3.3).
 *
 * 1. A map is a small hash table with one entry a key; keys are whatever a detector tells readers apart by. With keys
 *    0 to n-1 and room for n, every reader is found at once.
 * 2. One place always stays free, so that every search ends.
 * 3. Maps are numbered from 1, so that a cell can refer to one in 31 bits; numbers of ended maps are used again.
 */
#ifndef RF_CORE_READMAP_H
#define RF_CORE_READMAP_H

#include "core/clock.h"
#include "core/lockset.h"

struct rf_last_read {
    uint32_t key_plus_1;
    uint32_t slot, time; /* its epoch */
    uint32_t note;
    rf_lockset locks;
};

struct rf_readmap {
    uint32_t count, cap; /* cap: a power of two */
    uint32_t next_free;  /* in the list of unused maps */
    struct rf_last_read *readers;
};

struct rf_readmaps {
    struct rf_memory *memory;
    struct rf_readmap *maps; /* [0] is not used */
    uint32_t count, cap, unused;
};

static inline void rf_readmaps_init(struct rf_readmaps *all, struct rf_memory *memory)
{
    *all = (struct rf_readmaps){ .memory = memory };
}

static inline uint32_t rf_readmap_new(struct rf_readmaps *all, uint32_t cap)
{
    uint32_t map = all->unused;
    if (map) {
        all->unused = all->maps[map].next_free;
    } else {
        map = all->count ? all->count : 1;
        all->count = map + 1;
        all->maps = rf_grow(all->memory, all->maps, &all->cap, all->count, sizeof *all->maps);
    }
    all->maps[map] = (struct rf_readmap){ .cap = cap };
    all->maps[map].readers = rf_alloc(all->memory, cap * sizeof(struct rf_last_read));
    return map;
}

static inline void rf_readmap_end(struct rf_readmaps *all, uint32_t map)
{
    struct rf_readmap *m = &all->maps[map];
    rf_free(all->memory, m->readers, m->cap * sizeof *m->readers);
    *m = (struct rf_readmap){ .next_free = all->unused };
    all->unused = map;
}

/* The place of a key's entry, or the free place where it belongs. */
static inline struct rf_last_read *rf_readmap_place(const struct rf_readmap *m, uint32_t key)
{
    uint32_t at = key & (m->cap - 1);
    while (m->readers[at].key_plus_1 && m->readers[at].key_plus_1 != key + 1)
        at = (at + 1) & (m->cap - 1);
    return &m->readers[at];
}

static inline void rf_readmap_double(struct rf_readmaps *all, struct rf_readmap *m)
{
    struct rf_readmap larger = { .count = m->count, .cap = m->cap * 2 };
    larger.readers = rf_alloc(all->memory, larger.cap * sizeof *larger.readers);
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->readers[i].key_plus_1)
            *rf_readmap_place(&larger, m->readers[i].key_plus_1 - 1) = m->readers[i];
    rf_free(all->memory, m->readers, m->cap * sizeof *m->readers);
    *m = larger;
}

/* Sets the entry of a key, old or new. */
static inline void rf_readmap_set(struct rf_readmaps *all, uint32_t map, uint32_t key, rf_epoch epoch, uint32_t note,
                                  rf_lockset locks)
{
    struct rf_readmap *m = &all->maps[map];
    struct rf_last_read *reader = rf_readmap_place(m, key);
    if (!reader->key_plus_1) {
        if (m->count + 1 == m->cap - m->cap / 8 || m->count + 1 == m->cap) {
            rf_readmap_double(all, m);
            reader = rf_readmap_place(m, key);
        }
        m->count++;
    }
    *reader = (struct rf_last_read){ key + 1, rf_epoch_slot(epoch), rf_epoch_time(epoch), note, locks };
}

static inline uint32_t rf_readmap_copy(struct rf_readmaps *all, uint32_t from)
{
    uint32_t map = rf_readmap_new(all, all->maps[from].cap);
    struct rf_last_read *readers = all->maps[map].readers;
    memcpy(readers, all->maps[from].readers, all->maps[from].cap * sizeof *readers);
    all->maps[map].count = all->maps[from].count;
    return map;
}

static inline bool rf_last_read_leq(const struct rf_last_read *reader, const struct rf_clock *clock)
{
    return reader->time <= rf_clock_get(clock, reader->slot);
}

#endif
