/* A hash table from 64-bit keys to 0, 1, 2, ... in the order in which the keys came. */
#ifndef RF_TRACE_MAP_H
#define RF_TRACE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "trace/grow.h"

#define RF_NO_INDEX UINT32_MAX

struct rf_map {
    struct rf_map_slot {
        uint64_t key;
        uint32_t index; /* plus one; 0 is free */
    } * slots;
    size_t count, mask; /* at most half of the slots are used */
};

static inline struct rf_map_slot *rf_map_slot(const struct rf_map *map, uint64_t key)
{
    size_t at = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & map->mask;
    while (map->slots[at].index && map->slots[at].key != key)
        at = (at + 1) & map->mask;
    return &map->slots[at];
}

static inline uint32_t rf_map_find(const struct rf_map *map, uint64_t key)
{
    return map->slots ? rf_map_slot(map, key)->index - 1u : RF_NO_INDEX;
}

/* The index of a key, which is added if it is new: then the index is the count before. */
static inline uint32_t rf_map_add(struct rf_map *map, uint64_t key)
{
    if (!map->slots || map->count * 2 > map->mask) {
        struct rf_map larger = { .count = map->count, .mask = map->slots ? map->mask * 2 + 1 : 63 };
        larger.slots = rf_zeroed(larger.mask + 1, sizeof *larger.slots);
        for (size_t i = 0; map->slots && i <= map->mask; i++)
            if (map->slots[i].index)
                *rf_map_slot(&larger, map->slots[i].key) = map->slots[i];
        free(map->slots);
        *map = larger;
    }
    struct rf_map_slot *slot = rf_map_slot(map, key);
    if (!slot->index)
        *slot = (struct rf_map_slot){ key, (uint32_t)++map->count };
    return slot->index - 1;
}

static inline void rf_map_free(struct rf_map *map)
{
    free(map->slots);
    *map = (struct rf_map){ 0 };
}

#endif
