/* The upper halves of the registers of vectors, which a cold hook (guest/hooks.S) gives back to its caller as all others, but does not save:
 * nothing in this library touches them.
 *
 * 1. What the guest calls may: a handler that had to wait, what the program wants to hear of a report, and functions of libc, many of which end
 *    with vzeroupper. All of that is far from the ways that are taken often, and stands between rf_vectors_keep() and rf_vectors_back().
 * 2. A caller of a cold hook counts on the first 256 bits of the first 16 registers. What others have beyond is no more kept than in any call.
 */
#ifndef RF_GUEST_VECTORS_H
#define RF_GUEST_VECTORS_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RF_VECTORS_UPPER 4u /* the processor's bit for them */

/* As xsave lays it out: what all processors have, a header, 16 upper halves. */
struct rf_vectors {
    _Alignas(64) uint8_t all[512];
    uint8_t header[64];
    uint8_t upper[16][16];
};

/* Asked once: under a hypervisor it takes long. Whoever asks at the same time finds the same. */
static inline bool rf_vectors_have_upper(void)
{
    enum { UNKNOWN, NONE, SOME };
    static uint8_t known;
    uint8_t have = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (have == UNKNOWN) {
        uint32_t a, b, c = 0, d, enabled = 0, high;
        if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE) && (c & bit_AVX))
            __asm__ volatile("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
        have = enabled & RF_VECTORS_UPPER ? SOME : NONE;
        __atomic_store_n(&known, have, __ATOMIC_RELAXED);
    }
    return have == SOME;
}

static inline void rf_vectors_keep(struct rf_vectors *vectors)
{
    memset(vectors->header, 0, sizeof vectors->header);
    if (rf_vectors_have_upper())
        __asm__ volatile("xsave %0" : "+m"(*vectors) : "a"(RF_VECTORS_UPPER), "d"(0));
}

static inline void rf_vectors_back(const struct rf_vectors *vectors)
{
    if (rf_vectors_have_upper())
        __asm__ volatile("xrstor %0" : : "m"(*vectors), "a"(RF_VECTORS_UPPER), "d"(0) : "memory");
}

#endif
