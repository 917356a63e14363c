/* Numbers that look random and are the same everywhere: xoshiro256** seeded by splitmix64 (Blackman and Vigna). */
#ifndef RF_TRACE_RANDOM_H
#define RF_TRACE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct rf_random {
    uint64_t state[4];
};

static inline void rf_random_seed(struct rf_random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        random->state[i] = z ^ (z >> 31);
    }
}

static inline uint64_t rf_rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline uint64_t rf_random_next(struct rf_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rf_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rf_rotate(s[3], 45);
    return result;
}

/* 0 <= result < bound, which is not 0. */
static inline uint32_t rf_random_below(struct rf_random *random, uint32_t bound)
{
    return (uint32_t)(((rf_random_next(random) >> 32) * bound) >> 32);
}

/* A chance as it is compared with 32 random bits. */
static inline uint64_t rf_chance(double p)
{
    return p <= 0 ? 0 : p >= 1 ? UINT64_C(1) << 32 : (uint64_t)(p * 4294967296.0);
}

static inline bool rf_random_happens(struct rf_random *random, uint64_t chance)
{
    return rf_random_next(random) >> 32 < chance;
}

#endif
