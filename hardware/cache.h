/* One set-associative cache: which lines it holds, and which goes next. Least recently used goes first.
 *
 * 1. A key names a line; 0 names none. Data and metadata share all sets and ways, as they share the data array in hardware.
 * 2. The contents of a metadata line are not here but in a struct rf_metadata, which its key leads to.
 * 3. A data line's set is the low bits of its key; that of a metadata line depends on what the line is for.
 *
 * Keys. A key is 32 bits, so that the keys of a set are in one line of the host's. Physical memory is in four parts of unlike lengths,
 * and a key has the highest bit of its part: the program's data; and what the software layer keeps, its records, how many histories they have, and
 * its vector clocks, of which only the cost is simulated, so that these may begin anew where their part ends. A metadata line belongs to
 * a core and to a slot (a thread, in clocks) and stands at base + 2x (Figure 3.3): its number inside the region is twice that of the data
 * line, plus one for the second half. Regions of different cores begin in different sets, or the copies of one line in several cores
 * would compete for one set. Its key is where its contents are among those of all metadata lines.
 */
#ifndef RF_HARDWARE_CACHE_H
#define RF_HARDWARE_CACHE_H

#include <emmintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/metadata.h"
#include "hardware/usual.h"

enum rf_mesi { RF_INVALID, RF_SHARED, RF_EXCLUSIVE, RF_MODIFIED };

/* From where one core's region begins to where the next one's does. */
#define RF_CORE_SETS UINT64_C(75)

typedef uint32_t rf_key;

#define RF_KEY_METADATA ((rf_key)1 << 31)
#define RF_KEY_DATA ((rf_key)1 << 30)
#define RF_KEY_RECORD ((rf_key)1 << 29)
#define RF_KEY_PRESENCE ((rf_key)1 << 28)
#define RF_KEY_VECTOR ((rf_key)1 << 27)

/* Of one of the parts but the first, which is metadata. */
static inline rf_key rf_key_of(rf_key part, uint64_t line)
{
    return part | ((rf_key)line & (part - 1));
}

static inline rf_key rf_key_data(uint64_t line)
{
    return rf_key_of(RF_KEY_DATA, line);
}

/* Whether it is a line of the program's, and which. */
static inline bool rf_key_is_data(rf_key key)
{
    return key >> 30 == 1;
}

static inline uint64_t rf_key_line(rf_key key)
{
    return key & (RF_KEY_DATA - 1);
}

#define RF_NOWHERE SIZE_MAX

/* All that is known of a set is in one block, so that it is in one line of the host's or in two neighbours: the keys of its ways; bytes
 * of which the i-th is the way that was used i-th last (free ways come after all lines); bytes of which the i-th is way i's state (enum
 * rf_mesi; last level: RF_MODIFIED if memory is older); and in the last level, for each way, `stride` bytes with a bit for each core
 * whose private caches may hold the line. A set has room for 8, 16, 32 or 64 ways: eight are looked at at once. */
struct rf_cache {
    unsigned char *sets;
    uint32_t stride;
    uint32_t ways, words, shift; /* words: of eight bytes, one for each way. shift: of a set's number, to its first place */
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
    return !RF_USUAL ? cache->block : whose == RF_COMMON ? 7 : 6;
}

static inline uint32_t rf_cache_stride(const struct rf_cache *cache, enum rf_whose whose)
{
    return RF_USUAL ? whose == RF_COMMON : cache->stride;
}

_Static_assert(RF_USUAL_WAYS == 8 && RF_USUAL_LLC_WAYS == 16, "blocks of 48 bytes, in 64; and of 112, in 128");

#define RF_EACH_BYTE UINT64_C(0x0101010101010101)

/* The bytes of the word that are `byte` have their highest bit set; so may some above such a one. */
static inline uint64_t rf_bytes_like(uint64_t word, uint32_t byte)
{
    uint64_t other = word ^ RF_EACH_BYTE * byte;
    return (other - RF_EACH_BYTE) & ~other & RF_EACH_BYTE << 7;
}

static inline unsigned char *rf_cache_at(const struct rf_cache *cache, enum rf_whose whose, uint64_t set)
{
    return cache->sets + (set << rf_cache_block(cache, whose));
}

static inline rf_key *rf_cache_keys(const struct rf_cache *cache, enum rf_whose whose, uint64_t set)
{
    return (rf_key *)(void *)rf_cache_at(cache, whose, set);
}

/* The parts of a block behind the keys: order, states, who shares. */
static inline unsigned char *rf_cache_bytes(const struct rf_cache *cache, enum rf_whose whose, uint64_t set, uint32_t part)
{
    return rf_cache_at(cache, whose, set) + ((sizeof(rf_key) + part) << rf_cache_shift(cache, whose));
}

static inline uint64_t *rf_cache_order(const struct rf_cache *cache, enum rf_whose whose, uint64_t set)
{
    return (uint64_t *)(void *)rf_cache_bytes(cache, whose, set, 0);
}

static inline uint64_t rf_cache_set_at(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    return place >> rf_cache_shift(cache, whose);
}

static inline uint64_t rf_cache_way(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    return place & ((UINT64_C(1) << rf_cache_shift(cache, whose)) - 1);
}

static inline rf_key *rf_cache_key(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    return rf_cache_keys(cache, whose, rf_cache_set_at(cache, whose, place)) + rf_cache_way(cache, whose, place);
}

/* Of eight keys: a bit for each that is this one. */
static inline uint32_t rf_keys_like(const rf_key *keys, __m128i key)
{
    __m128i low = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(const void *)keys), key);
    __m128i high = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(const void *)(keys + 4)), key);
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128()));
}

/* Where the line of this set is; RF_NOWHERE: not here. */
static inline size_t rf_cache_find_in(const struct rf_cache *cache, enum rf_whose whose, uint64_t set, rf_key key)
{
    const rf_key *keys = rf_cache_keys(cache, whose, set);
    __m128i wanted = _mm_set1_epi32((int)key);
    uint64_t like = 0;
    for (uint32_t word = 0; word < rf_cache_words(cache, whose); word++)
        like |= (uint64_t)rf_keys_like(keys + 8 * word, wanted) << 8 * word;
    return like ? (set << rf_cache_shift(cache, whose)) + (uint32_t)__builtin_ctzll(like) : RF_NOWHERE;
}

/* The same for data: 3. */
static inline size_t rf_cache_find(const struct rf_cache *cache, enum rf_whose whose, rf_key key)
{
    return rf_cache_find_in(cache, whose, key & cache->mask, key);
}

static inline uint8_t *rf_cache_state(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    return rf_cache_bytes(cache, whose, rf_cache_set_at(cache, whose, place), 1) + rf_cache_way(cache, whose, place);
}

/* Who may share the line, in `stride` bytes. */
static inline uint8_t *rf_cache_sharing(const struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    return rf_cache_bytes(cache, whose, rf_cache_set_at(cache, whose, place), 2) +
           rf_cache_way(cache, whose, place) * rf_cache_stride(cache, whose);
}

/* Of the order of sixteen ways: ones in the bytes before this way's, and in its own. */
static inline __m128i rf_ways_upto(__m128i order, uint64_t way)
{
    static const uint8_t ones[32] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 };
    uint32_t like = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(order, _mm_set1_epi8((char)way)));
    return _mm_loadu_si128((const __m128i *)(const void *)(ones + 15 - __builtin_ctz(like)));
}

/* It is the line that was used last: its way goes to the front, and those before it move up by one. Of sixteen ways any may be it, and a
 * host that had to guess would often be wrong. */
static inline void rf_cache_touch(struct rf_cache *cache, enum rf_whose whose, size_t place)
{
    uint64_t *order = rf_cache_order(cache, whose, rf_cache_set_at(cache, whose, place)),
             way = rf_cache_way(cache, whose, place), first = way;
    if (rf_cache_ways(cache, whose) == 16) {
        __m128i *all = (__m128i *)(void *)order, old = _mm_load_si128(all), upto = rf_ways_upto(old, way);
        __m128i moved = _mm_or_si128(_mm_slli_si128(old, 1), _mm_cvtsi32_si128((int)way));
        _mm_store_si128(all, _mm_or_si128(_mm_and_si128(upto, moved), _mm_andnot_si128(upto, old)));
        return;
    }
    if (rf_cache_ways(cache, whose) == 8) { /* here, too, without a guess */
        uint64_t upto = rf_bytes_like(*order, (uint32_t)way);
        upto ^= upto - 1; /* all bits up to the first byte that is the way */
        *order = (*order & ~upto) | (*order << 8 & upto) | way;
        return;
    }
    if ((*order & 255) == way)
        return;
    for (;; order++) {
        uint64_t old = *order, like = rf_bytes_like(old, (uint32_t)way);
        if (like) {
            uint64_t upto = like ^ (like - 1);
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
    uint64_t *order = rf_cache_order(cache, whose, rf_cache_set_at(cache, whose, place)),
             way = rf_cache_way(cache, whose, place), last = way;
    *rf_cache_key(cache, whose, place) = 0;
    if (rf_cache_ways(cache, whose) == 16) {
        __m128i *all = (__m128i *)(void *)order, old = _mm_load_si128(all), upto = rf_ways_upto(old, way);
        __m128i before = _mm_srli_si128(upto, 1);
        __m128i moved = _mm_or_si128(_mm_srli_si128(old, 1), _mm_slli_si128(_mm_cvtsi32_si128((int)way), 15));
        _mm_store_si128(all, _mm_or_si128(_mm_and_si128(before, old), _mm_andnot_si128(before, moved)));
        return;
    }
    if (rf_cache_ways(cache, whose) == 8) {
        uint64_t like = rf_bytes_like(*order, (uint32_t)way), below = (like & (0 - like)) / 128 - 1;
        *order = (*order & below) | (*order >> 8 & ~below) | way << 56;
        return;
    }
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
static inline size_t rf_cache_place(const struct rf_cache *cache, enum rf_whose whose, uint64_t set, rf_key pinned)
{
    const uint64_t *order = rf_cache_order(cache, whose, set);
    for (uint32_t last = rf_cache_ways(cache, whose) - 1;; last--) {
        uint64_t way = order[last / 8] >> last % 8 * 8 & 255;
        if (__builtin_expect(!pinned || rf_cache_keys(cache, whose, set)[way] != pinned, 1))
            return (set << rf_cache_shift(cache, whose)) + way;
    }
}

/* A line that nobody shares, yet, at a place that rf_cache_place() gave. */
static inline void rf_cache_put(struct rf_cache *cache, enum rf_whose whose, size_t place, rf_key key, enum rf_mesi state)
{
    uint64_t way = rf_cache_way(cache, whose, place), set = rf_cache_set_at(cache, whose, place);
    rf_cache_keys(cache, whose, set)[way] = key;
    rf_cache_bytes(cache, whose, set, 1)[way] = (uint8_t)state;
    rf_cache_touch(cache, whose, place);
    for (uint32_t i = 0; i < rf_cache_stride(cache, whose); i++)
        rf_cache_sharing(cache, whose, place)[i] = 0;
}

/* Puts a line into a private cache, where none is pinned, in place of the one that must go: `victim`, or 0. Returns where. Of eight ways
 * the last in order becomes the first, and nothing need be looked for. */
static inline size_t rf_cache_replace(struct rf_cache *cache, uint64_t set, rf_key key, enum rf_mesi state, rf_key *victim)
{
    if (rf_cache_ways(cache, RF_PRIVATE) != 8) {
        size_t place = rf_cache_place(cache, RF_PRIVATE, set, 0);
        *victim = *rf_cache_key(cache, RF_PRIVATE, place);
        rf_cache_put(cache, RF_PRIVATE, place, key, state);
        return place;
    }
    uint64_t *order = rf_cache_order(cache, RF_PRIVATE, set), way = *order >> 56;
    rf_key *keys = rf_cache_keys(cache, RF_PRIVATE, set);
    *order = *order << 8 | way;
    *victim = keys[way];
    keys[way] = key;
    rf_cache_bytes(cache, RF_PRIVATE, set, 1)[way] = (uint8_t)state;
    return (set << rf_cache_shift(cache, RF_PRIVATE)) + way;
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
    core = RF_USUAL ? core % 8 : core; /* which it is, and a compiler need not ask in which byte */
    rf_cache_sharing(cache, whose, place)[core / 8] |= (uint8_t)(1u << core % 8);
}

static inline void rf_cache_unshare(struct rf_cache *cache, enum rf_whose whose, size_t place, uint32_t core)
{
    rf_cache_sharing(cache, whose, place)[core / 8] &= (uint8_t) ~(1u << core % 8);
}

static inline void rf_cache_drop(struct rf_cache *cache, enum rf_whose whose, uint64_t set, rf_key key)
{
    size_t place = rf_cache_find_in(cache, whose, set, key);
    if (place != RF_NOWHERE)
        rf_cache_clear(cache, whose, place);
}

#endif
