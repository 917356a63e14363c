/* Four numbers of 32 bits at once, such as what is known of four places of a metadata line. A comparison gives all ones or 0. */
#ifndef RF_HARDWARE_LANES_H
#define RF_HARDWARE_LANES_H

#include <emmintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RF_LANES 4u

typedef uint32_t rf_lanes __attribute__((vector_size(16)));

static inline rf_lanes rf_lanes_all(uint32_t number)
{
    return (rf_lanes){ number, number, number, number };
}

static inline rf_lanes rf_lanes_load(const uint32_t *numbers)
{
    rf_lanes lanes;
    memcpy(&lanes, numbers, sizeof lanes);
    return lanes;
}

static inline void rf_lanes_store(uint32_t *numbers, rf_lanes lanes)
{
    memcpy(numbers, &lanes, sizeof lanes);
}

static inline bool rf_lanes_are_set(rf_lanes lanes)
{
    return _mm_movemask_epi8(_mm_cmpeq_epi32((__m128i)lanes, _mm_setzero_si128())) != 0xffff;
}

/* From four bytes, and back: the first `count` of them, if there are less. */
static inline rf_lanes rf_lanes_of_bytes(const uint8_t *bytes)
{
    uint32_t four;
    memcpy(&four, bytes, sizeof four);
    __m128i zero = _mm_setzero_si128();
    return (rf_lanes)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128((int)four), zero), zero);
}

static inline void rf_lanes_to_bytes(uint8_t *bytes, rf_lanes lanes, uint32_t count)
{
    __m128i words = _mm_packs_epi32((__m128i)lanes, (__m128i)lanes);
    uint32_t four = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    memcpy(bytes, &four, count < sizeof four ? count : sizeof four);
}

#endif
