/* A hash map from 64-bit keys to 64-bit values: linear probing, at most three quarters full, deletion by shifting back.
 *
 * 1. A free place holds the key RF_NO_KEY, which therefore cannot be stored.
 */
#ifndef RF_CORE_MAP_H
#define RF_CORE_MAP_H

#include <stdbool.h>

#include "core/memory.h"

#define RF_NO_KEY UINT64_MAX

struct rf_entry {
    uint64_t key, value;
};

struct rf_map {
    struct rf_memory *memory;
    struct rf_entry *entries;
    uint32_t cap; /* a power of two */
    uint32_t count;
};

static inline uint64_t rf_hash(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ (key >> 29);
}

static inline void rf_map_init(struct rf_map *map, struct rf_memory *memory)
{
    *map = (struct rf_map){ .memory = memory };
}

static inline void rf_map_end(struct rf_map *map)
{
    rf_free(map->memory, map->entries, map->cap * sizeof *map->entries);
    map->entries = NULL;
    map->cap = map->count = 0;
}

/* What it takes of its memory. */
static inline size_t rf_map_bytes(const struct rf_map *map)
{
    return map->cap ? rf_rounded(map->cap * sizeof *map->entries) : 0;
}

static __attribute__((noinline, unused)) void rf_map_resize(struct rf_map *map, uint32_t cap)
{
    struct rf_entry *old = map->entries;
    uint32_t old_cap = map->cap;
    map->entries = rf_alloc(map->memory, cap * sizeof *map->entries);
    map->cap = cap;
    for (uint32_t i = 0; i < cap; i++)
        map->entries[i].key = RF_NO_KEY;
    for (uint32_t i = 0; i < old_cap; i++) {
        if (old[i].key == RF_NO_KEY)
            continue;
        uint64_t at = rf_hash(old[i].key) & (cap - 1);
        while (map->entries[at].key != RF_NO_KEY)
            at = (at + 1) & (cap - 1);
        map->entries[at] = old[i];
    }
    rf_free(map->memory, old, old_cap * sizeof *old);
}

/* The value's place, NULL if the key is not there. Valid until the next insertion or removal. */
static inline uint64_t *rf_map_find(const struct rf_map *map, uint64_t key)
{
    if (!map->cap)
        return NULL;
    for (uint64_t at = rf_hash(key) & (map->cap - 1);; at = (at + 1) & (map->cap - 1)) {
        if (map->entries[at].key == key)
            return &map->entries[at].value;
        if (map->entries[at].key == RF_NO_KEY)
            return NULL;
    }
}

/* A key that is not there, with a value of 0. */
static __attribute__((noinline, unused)) uint64_t *rf_map_insert(struct rf_map *map, uint64_t key)
{
    if ((map->count + 1) * UINT64_C(4) > map->cap * UINT64_C(3))
        rf_map_resize(map, map->cap ? map->cap * 2 : 16);
    uint64_t at = rf_hash(key) & (map->cap - 1);
    while (map->entries[at].key != RF_NO_KEY)
        at = (at + 1) & (map->cap - 1);
    map->entries[at] = (struct rf_entry){ key, 0 };
    map->count++;
    return &map->entries[at].value;
}

/* The same as rf_map_find(), with a value of 0 put there first if the key is new. */
static inline uint64_t *rf_map_at(struct rf_map *map, uint64_t key)
{
    uint64_t *found = rf_map_find(map, key);
    return found ? found : rf_map_insert(map, key);
}

static inline bool rf_map_remove(struct rf_map *map, uint64_t key)
{
    uint64_t *found = rf_map_find(map, key);
    if (!found)
        return false;
    uint64_t mask = map->cap - 1;
    uint64_t hole = (uint64_t)((struct rf_entry *)(void *)((char *)found - offsetof(struct rf_entry, value)) - map->entries);
    for (uint64_t at = (hole + 1) & mask; map->entries[at].key != RF_NO_KEY; at = (at + 1) & mask) {
        uint64_t home = rf_hash(map->entries[at].key) & mask;
        /* It may move into the hole only if its home is not inside (hole, at]. */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
    }
    map->entries[hole].key = RF_NO_KEY;
    map->count--;
    return true;
}

#endif
