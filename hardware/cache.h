/* One set-associative cache: which lines it holds, and which goes next. Least recently used goes first.
 *
 * 1. A key names a line; 0 names none. Data and metadata share all sets and ways, as they share the data array in hardware.
 * 2. The contents of a metadata line are not here but in a struct rf_metadata, which a line points to.
 *
 * Keys. A data line is its physical line number. A metadata line belongs to a core and to a slot (a thread, in clocks) and stands
 * at base + 2x (Figure 3.3): its number inside the region is twice that of the data line, plus one for the second half. Regions
 * of different cores begin in different sets, or the copies of one line in several cores would compete for one set.
 */
#ifndef RF_HARDWARE_CACHE_H
#define RF_HARDWARE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rf_metadata;

enum rf_mesi { RF_INVALID, RF_SHARED, RF_EXCLUSIVE, RF_MODIFIED };

#define RF_KEY_DATA (UINT64_C(1) << 62)
#define RF_KEY_METADATA (UINT64_C(1) << 63)
#define RF_KEY_LINE_BITS 36
#define RF_KEY_SLOT_BITS 20
#define RF_KEY_LINE ((UINT64_C(1) << RF_KEY_LINE_BITS) - 1)

static inline uint64_t rf_key_data(uint64_t line)
{
    return RF_KEY_DATA | line;
}

static inline uint64_t rf_key_metadata(uint32_t core, uint32_t slot, uint64_t number)
{
    return RF_KEY_METADATA | (uint64_t)core << (RF_KEY_LINE_BITS + RF_KEY_SLOT_BITS) | (uint64_t)slot << RF_KEY_LINE_BITS |
           number;
}

struct rf_line {
    union {
        uint64_t sharers;             /* data, last level: a bit for each core whose private caches hold it */
        struct rf_metadata *metadata; /* metadata, all levels */
    };
    uint32_t below; /* second level: where the last level has it */
    uint8_t state;  /* enum rf_mesi; last level: RF_MODIFIED if memory is older */
    bool held;      /* metadata, last level: its core's private caches have it */
};

#define RF_NOWHERE SIZE_MAX

struct rf_cache {
    uint64_t *keys; /* by set, then by way; so are the next two */
    uint32_t *used; /* when; 0: there is no line */
    struct rf_line *lines;
    uint32_t ways;
    uint64_t mask; /* of a set's number */
    uint32_t now;
};

static inline size_t rf_cache_set(const struct rf_cache *cache, uint64_t key)
{
    uint64_t number = key & RF_KEY_LINE;
    if (key & RF_KEY_METADATA)
        number += (key >> (RF_KEY_LINE_BITS + RF_KEY_SLOT_BITS) & 63) * 75;
    return (size_t)(number & cache->mask) * cache->ways;
}

/* Where the line is; RF_NOWHERE: not here. */
static inline size_t rf_cache_find(const struct rf_cache *cache, uint64_t key)
{
    size_t set = rf_cache_set(cache, key);
    const uint64_t *keys = cache->keys + set;
    for (uint32_t way = 0; way < cache->ways; way++)
        if (keys[way] == key)
            return set + way;
    return RF_NOWHERE;
}

/* Once in four billion uses all times are halved: the order inside a set stays, but for neighbours. */
static inline void rf_cache_touch(struct rf_cache *cache, size_t place)
{
    if (__builtin_expect(++cache->now == UINT32_MAX, 0)) {
        for (size_t i = 0; i < (cache->mask + 1) * cache->ways; i++)
            cache->used[i] = cache->used[i] / 2 + cache->used[i] % 2;
        cache->now /= 2;
    }
    cache->used[place] = cache->now;
}

/* The place for a new line: a free way, or that of the line which must go. `pinned` stays. No branch depends on the times: nobody
 * could foretell it. */
static inline size_t rf_cache_place(const struct rf_cache *cache, uint64_t key, uint64_t pinned)
{
    size_t set = rf_cache_set(cache, key);
    const uint32_t *used = cache->used + set;
    uint64_t oldest = UINT64_MAX; /* its time, and its way */
    for (uint32_t way = 0; way < cache->ways; way++) {
        uint64_t this = (uint64_t)used[way] << 32 | way;
        oldest = this < oldest ? this : oldest;
    }
    if (__builtin_expect(pinned && cache->keys[set + (uint32_t)oldest] == pinned, 0)) {
        oldest = UINT64_MAX;
        for (uint32_t way = 0; way < cache->ways; way++) {
            uint64_t this = (uint64_t)used[way] << 32 | way;
            if (this < oldest && cache->keys[set + way] != pinned)
                oldest = this;
        }
    }
    return set + (uint32_t)oldest;
}

/* `metadata`: NULL for data. */
static inline void rf_cache_put(struct rf_cache *cache, size_t place, uint64_t key, enum rf_mesi state,
                                struct rf_metadata *metadata)
{
    cache->keys[place] = key;
    rf_cache_touch(cache, place);
    cache->lines[place] = (struct rf_line){ .metadata = metadata, .state = (uint8_t)state };
}

static inline void rf_cache_clear(struct rf_cache *cache, size_t place)
{
    cache->keys[place] = 0;
    cache->used[place] = 0;
}

static inline void rf_cache_drop(struct rf_cache *cache, uint64_t key)
{
    size_t place = rf_cache_find(cache, key);
    if (place != RF_NOWHERE)
        rf_cache_clear(cache, place);
}

#endif
