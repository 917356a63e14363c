/* One set-associative cache: which lines it holds, and which goes next. Least recently used goes first.
 *
 * 1. A key names a line; 0 names none. Data and metadata share all sets and ways, as they share the data array in hardware.
 * 2. The contents of a metadata line are not here but in a struct rf_metadata, which its key leads to.
 *
 * Keys. A data line is its physical line number. A metadata line belongs to a core and to a slot (a thread, in clocks) and stands
 * at base + 2x (Figure 3.3): its number inside the region is twice that of the data line, plus one for the second half. Regions
 * of different cores begin in different sets, or the copies of one line in several cores would compete for one set. Its key is where
 * its contents are.
 */
#ifndef RF_HARDWARE_CACHE_H
#define RF_HARDWARE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/metadata.h"
#include "hardware/usual.h"

enum rf_mesi { RF_INVALID, RF_SHARED, RF_EXCLUSIVE, RF_MODIFIED };

/* From where one core's region begins to where the next one's does. */
#define RF_CORE_SETS UINT64_C(75)

#define RF_KEY_DATA (UINT64_C(1) << 62)
#define RF_KEY_METADATA (UINT64_C(1) << 63)
#define RF_KEY_LINE ((UINT64_C(1) << 36) - 1)

static inline uint64_t rf_key_data(uint64_t line)
{
    return RF_KEY_DATA | line;
}

static inline uint64_t rf_key_metadata(const struct rf_metadata *line)
{
    return RF_KEY_METADATA | (uint64_t)(uintptr_t)line;
}

static inline struct rf_metadata *rf_key_contents(uint64_t key)
{
    return (struct rf_metadata *)(uintptr_t)(key & ~RF_KEY_METADATA);
}

#define RF_NOWHERE SIZE_MAX

/* Ways, in an array by set, then by way: their keys. What every look at a set needs is in one block
 * of words for each set, so that it is in one line of the host's: `words` words in which byte i is the way that was used i-th last
 * (free ways come after all lines), as many in which byte i is a hash of way i's key, as many in which byte i is way i's state (enum
 * rf_mesi; last level: RF_MODIFIED if memory is older), and in the last level, for each way, `stride` bytes with a bit for each core
 * whose private caches may hold the line. A set has room for 8, 16, 32 or 64 ways: eight are looked at with one word. */
struct rf_cache {
    uint64_t *sets;
    uint64_t *keys;
    uint32_t stride;
    uint32_t ways, words, shift; /* shift: of a set's number, to its first place */
    uint32_t block;              /* the same, to its block */
    uint64_t mask;               /* of a set's number */
};

/* Whose cache it is: a core's, of either level, or all cores'. Where the usual machine is compiled this says its form. */
enum rf_whose { RF_PRIVATE, RF_COMMON };

static inline uint32_t rf_cache_ways(const struct rf_cache *cache, enum rf_whose whose)
{
    return !RF_USUAL ? cache->ways : whose == RF_COMMON ? RF_USUAL_LLC_WAYS : RF_USUAL_WAYS;
}

static inline uint32_t rf_cache_words(const struct rf_cache *cache, enum rf_whose whose)
{
    return RF_USUAL ? rf_cache_ways(cache, whose) / 8 : cache->words;
}

static inline uint32_t rf_cache_shift(const struct rf_cache *cache, enum rf_whose whose)
{
    return !RF_USUAL ? cache->shift : whose == RF_COMMON ? 4 : 3;
}

static inline uint32_t rf_cache_block(const struct rf_cache *cache, enum rf_whose whose)
{
    return !RF_USUAL ? cache->block : whose == RF_COMMON ? 3 : 2;
}

static inline uint32_t rf_cache_stride(const struct rf_cache *cache, enum rf_whose whose)
{
    return RF_USUAL ? whose == RF_COMMON : cache->stride;
}

_Static_assert(RF_USUAL_WAYS == 8 && RF_USUAL_LLC_WAYS == 16, "blocks of 3 words, in 4; and of 4 times 2, in 8");

#define RF_EACH_BYTE UINT64_C(0x0101010101010101)

/* The bytes of the word that are `byte` have their highest bit set; so may some above such a one. */
static inline uint64_t rf_bytes_like(uint64_t word, uint32_t byte)
{
    uint64_t other = word ^ RF_EACH_BYTE * byte;
    return (other - RF_EACH_BYTE) & ~other & RF_EACH_BYTE << 7;
}

static inline uint64_t rf_cache_set(const struct rf_cache *cache, uint64_t key)
{
    if (key & RF_KEY_METADATA)
        return (rf_key_contents(key)->number + RF_CORE_SETS * rf_key_contents(key)->core) & cache->mask;
    return key & cache->mask;
}

/* The same for a line that `outer` has at a place: it says the set, if it has as many. So its contents need not be looked at. */
static inline uint64_t rf_cache_set_from(const struct rf_cache *cache, const struct rf_cache *outer, enum rf_whose whose,
                                         size_t place)
{
    return cache->mask <= outer->mask ? place >> rf_cache_shift(outer, whose) & cache->mask
                                      : rf_cache_set(cache, outer->keys[place]);
}

static inline uint64_t *rf_cache_order(const struct rf_cache *cache, enum rf_whose whose, uint64_t set)
{
    return cache->sets + (set << rf_cache_block(cache, whose));
}

static inline uint32_t rf_cache_tag(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* Where the line of this set is that was used last, or a free way. */
static inline size_t rf_cache_latest(const struct rf_cache *cache, enum rf_whose whose, uint64_t set)
{
    return (set << rf_cache_shift(cache, whose)) + (*rf_cache_order(cache, whose, set) & 255);
}

/* Where the line of this set is; RF_NOWHERE: not here. */
static inline size_t rf_cache_find_in(const struct rf_cache *cache, enum rf_whose whose, uint64_t set, uint64_t key)
{
    const uint64_t *tags = rf_cache_order(cache, whose, set) + rf_cache_words(cache, whose);
    uint32_t tag = rf_cache_tag(key);
    for (uint32_t word = 0; word < rf_cache_words(cache, whose); word++)
        for (uint64_t like = rf_bytes_like(tags[word], tag); like; like &= like - 1) {
            size_t place = (set << rf_cache_shift(cache, whose)) + 8 * word + (uint32_t)__builtin_ctzll(like) / 8;
            if (__builtin_expect(cache->keys[place] == key, 1))
                return place;
        }
    return RF_NOWHERE;
}

static inline size_t rf_cache_find(const struct rf_cache *cache, enum rf_whose whose, uint64_t key)
{
    return rf_cache_find_in(cache, whose, rf_cache_set(cache, key), key);
}

static inline uint64_t rf_cache_way(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    return place & ((UINT64_C(1) << rf_cache_shift(cache, whose)) - 1);
}

static inline uint8_t *rf_cache_state(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    uint64_t *states =
        rf_cache_order(cache, whose, place >> rf_cache_shift(cache, whose)) + 2 * rf_cache_words(cache, whose);
    return (uint8_t *)states + rf_cache_way(cache, whose, place);
}

/* Who may share the line, in `stride` bytes. */
static inline uint8_t *rf_cache_sharing(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    uint64_t *sharing =
        rf_cache_order(cache, whose, place >> rf_cache_shift(cache, whose)) + 3 * rf_cache_words(cache, whose);
    return (uint8_t *)sharing + rf_cache_way(cache, whose, place) * rf_cache_stride(cache, whose);
}

/* It is the line that was used last: its way goes to the front, and those before it move up by one. */
static inline void rf_cache_touch(struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    uint64_t *order = rf_cache_order(cache, whose, place >> rf_cache_shift(cache, whose)),
             way = rf_cache_way(cache, whose, place), first = way;
    if ((*order & 255) == way)
        return;
    for (;; order++) {
        uint64_t old = *order, like = rf_bytes_like(old, (uint32_t)way);
        if (like) {
            uint64_t upto = like ^ (like - 1); /* all bits up to the first byte that is the way */
            *order = (old & ~upto) | (old << 8 & upto) | first;
            return;
        }
        *order = old << 8 | first;
        first = old >> 56;
    }
}

/* There is no line any more: its way goes behind all others, and those behind it move down. */
static inline void rf_cache_clear(struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    uint64_t *order = rf_cache_order(cache, whose, place >> rf_cache_shift(cache, whose)),
             way = rf_cache_way(cache, whose, place), last = way;
    cache->keys[place] = 0;
    for (uint32_t word = (rf_cache_ways(cache, whose) - 1) / 8, top = (rf_cache_ways(cache, whose) - 1) % 8;;
         word--, top = 7) {
        uint64_t old = order[word], like = rf_bytes_like(old, (uint32_t)way);
        uint64_t upto = UINT64_MAX >> (56 - 8 * top), below = like ? (like & (0 - like)) / 128 - 1 : 0;
        order[word] = (old & (~upto | below)) | (old >> 8 & upto >> 8 & ~below) | last << 8 * top;
        if (like)
            return;
        last = old & 255;
    }
}

/* The place for a new line: a free way, or that of the line which must go. `pinned` stays. */
static inline size_t rf_cache_place(const struct rf_cache *cache, enum rf_whose whose, uint64_t key, uint64_t pinned)
{
    uint64_t set = rf_cache_set(cache, key), *order = rf_cache_order(cache, whose, set);
    for (uint32_t last = rf_cache_ways(cache, whose) - 1;; last--) {
        size_t place = (set << rf_cache_shift(cache, whose)) + (order[last / 8] >> last % 8 * 8 & 255);
        if (__builtin_expect(!pinned || cache->keys[place] != pinned, 1))
            return place;
    }
}

/* A line that nobody shares, yet, at a place that rf_cache_place() gave. */
static inline void rf_cache_put(struct rf_cache *cache, enum rf_whose whose, size_t place, uint64_t key, enum rf_mesi state)
{
    uint64_t way = rf_cache_way(cache, whose, place),
             *order = rf_cache_order(cache, whose, place >> rf_cache_shift(cache, whose));
    uint8_t *tags = (uint8_t *)(order + rf_cache_words(cache, whose));
    tags[way] = (uint8_t)rf_cache_tag(key);
    tags[8 * rf_cache_words(cache, whose) + way] = (uint8_t)state;
    cache->keys[place] = key;
    if (rf_cache_ways(cache, whose) == 8 && *order >> 56 == way) /* nearly always it is the last */
        *order = *order << 8 | way;
    else
        rf_cache_touch(cache, whose, place);
    for (uint32_t i = 0; i < rf_cache_stride(cache, whose); i++)
        tags[16 * rf_cache_words(cache, whose) + way * rf_cache_stride(cache, whose) + i] = 0;
}

/* Who may share it, a bit for each core. */
static inline uint64_t rf_cache_sharers(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    const uint8_t *sharing = rf_cache_sharing(cache, whose, place);
    uint64_t all = *sharing;
    for (uint32_t i = 1; i < rf_cache_stride(cache, whose); i++)
        all |= (uint64_t)sharing[i] << 8 * i;
    return all;
}

static inline void rf_cache_share(struct rf_cache *cache, enum rf_whose whose, size_t place, uint32_t core)
{
    rf_cache_sharing(cache, whose, place)[core / 8] |= (uint8_t)(1u << core % 8);
}

static inline void rf_cache_unshare(struct rf_cache *cache, enum rf_whose whose, size_t place, uint32_t core)
{
    rf_cache_sharing(cache, whose, place)[core / 8] &= (uint8_t) ~(1u << core % 8);
}

static inline void rf_cache_drop(struct rf_cache *cache, enum rf_whose whose, uint64_t set, uint64_t key)
{
    size_t place = rf_cache_find_in(cache, whose, set, key);
    if (place != RF_NOWHERE)
        rf_cache_clear(cache, whose, place);
}

#endif
