/* The guest's regions of addresses: found by arithmetic from a user address, or by a number.
 *
 * 1. All of them are reserved at the start without being backed; a page exists when it is touched. They lie between the low
 *    addresses and where the kernel puts programs (0x5555...), which no randomisation reaches.
 * 2. If the kernel refuses to reserve that much (a limit on addresses, strict overcommit), pages are mapped when the guest faults on
 *    them: slower at first touch, the same afterwards.
 */
#ifndef RF_GUEST_PLANES_H
#define RF_GUEST_PLANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/event.h"
#include "guest/hot.h"

/* What follows the words: name, address, size. */
#define RF_OBJECT_PAGES 0x500000040000 /* 8 bytes for each 4 KiB of user addresses */
#define RF_OBJECT_PAGES_SIZE (RF_WORDS_SIZE >> 9)
#define RF_TOUCHED 0x502000080000 /* a byte for each RF_PATCH of words */
#define RF_TOUCHED_SIZE (RF_WORDS_SIZE >> RF_PATCH_BITS)
/* RF_NOTES (guest/hot.h) is here */
#define RF_TIMES 0x503040000000 /* moment -> time, where blocks do not tell */
#define RF_DEPOT 0x504000000000 /* note -> what it stands for */
#define RF_DEPOT_SIZE 0x100000000
/* RF_READERS (guest/hot.h) is here: sets of moments, guest/units.h */
#define RF_RECORDS 0x506000000000  /* records of four slices, */
/* RF_LANES (guest/hot.h) is here */
#define RF_LRECORDS 0x507000000000 /* and of more */
/* RF_LINES (guest/hot.h) is here */
#define RF_PLANES_END (RF_LINES + (RF_WORDS_SIZE >> RF_LINE_BITS))

#define RF_PATCH_BITS 16
#define RF_PATCH ((uintptr_t)1 << RF_PATCH_BITS)

static inline uint64_t *rf_word(uintptr_t addr)
{
    return (uint64_t *)((addr & RF_ADDRESS_MASK) + RF_WORDS);
}

static inline uint64_t *rf_object_page(uintptr_t addr)
{
    return (uint64_t *)(((addr & RF_ADDRESS_MASK) >> 12) * sizeof(uint64_t) + RF_OBJECT_PAGES);
}

/* Whether any word of the patch was ever set: 1, or 2 if each word that is set must be told (guest/pacer.h). */
static inline uint8_t *rf_touched(const uint64_t *word)
{
    return (uint8_t *)((((uintptr_t)word - RF_PATCHES) >> RF_PATCH_BITS) + RF_TOUCHED);
}

static inline uint8_t *rf_line(const uint64_t *word)
{
    return (uint8_t *)((((uintptr_t)word - RF_WORDS) >> RF_LINE_BITS) + RF_LINES);
}

/* For sweeps: one byte for each 4096 patches. */
#define RF_DISTRICTS ((RF_TOUCHED_SIZE + 4095) >> 12)
extern uint8_t rf_districts[RF_DISTRICTS] RF_OURS;

bool rf_planes_begin(void);
bool rf_planes_lazy(void); /* invariant 2 */
bool rf_planes_overlap(uintptr_t addr, size_t size);
/* A fault at this address is ours, and was mended. */
bool rf_planes_fault(uintptr_t addr);

#endif
