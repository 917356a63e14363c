/* What a thread has accessed of late, so that it may do so again without a look at any history. One word for each of RF_FILTER places:
 *
 *      tag 32 | stamp 16 | written 8 | read or written 8         a bit for each byte of the granule
 *
 * The filter is the thread's own: no other reads or writes it. It is used for detectors for which this is a theorem:
 *
 *   Let a and b be accesses of one thread to the same bytes, a before b, b a read or both writes, and between them the thread handed
 *   nothing on (released no lock, published nothing, created no thread), nor was the memory made new by it. Then to leave b out
 *   changes no first race of a variable.
 *
 *   1. What comes after b and races with b races with a: whoever is unordered with b does not know of a either, since all that the
 *      thread told anybody about a, it told after b. And b holds the locks that a held, perhaps more: so what has no lock in common
 *      with b has none in common with a (AccuLock, MultiLock-HB; LockSet, whose C(x) is within the locks of a since a).
 *   2. What came before a was compared with a. What came between a and b, from another thread, is unordered with a, and was compared
 *      with a, which the history held: if it conflicts with b it conflicts with a.
 *   3. Eraser's states, and what is built on them (MultiRace, Hybrid), and RaceTrack's sets of threads see more than order: that a
 *      thread came back after another one. They have no filter.
 *
 * Memory is made new by this thread (alloc, free: the places are emptied), or by another one. Then either this thread has handed
 * something on before, which ordered the two, or the other one took away memory that was in use; or a runtime of a language did, with
 * synchronisation of its own (guest/embed.c): then `changes` moves, for all filters, and what they hold is forgotten.
 */
#ifndef RF_GUEST_ONLINE_FILTER_H
#define RF_GUEST_ONLINE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/event.h"

#define RF_FILTER_BITS 20 /* for eight megabytes; of its own eight a thread uses as much as it accesses memory */
#define RF_FILTER (1u << RF_FILTER_BITS)
#define RF_FILTER_FORGET 4096u /* granules; when more are to be forgotten all are */

struct rf_filter {
    uint64_t stamp; /* in its place, above the masks; never 0 */
    uint64_t changes; /* as many as it has heard of */
    uint64_t places[RF_FILTER];
};

static inline uint64_t *rf_filter_place(struct rf_filter *filter, uintptr_t addr)
{
    return &filter->places[addr / RF_GRANULE % RF_FILTER];
}

/* What the place of this granule has above the masks, if it is about this granule and of now. */
static inline uint64_t rf_filter_key(const struct rf_filter *filter, uintptr_t addr)
{
    return (uint64_t)(addr / RF_GRANULE >> RF_FILTER_BITS) << 32 | filter->stamp;
}

/* `mask` are bytes of the granule. */
static inline bool rf_filter_has(struct rf_filter *filter, uintptr_t addr, unsigned mask, bool write)
{
    uint64_t word = *rf_filter_place(filter, addr);
    return (word ^ rf_filter_key(filter, addr)) >> 16 == 0 && !((uint64_t)mask << (write ? 8 : 0) & ~word);
}

static inline void rf_filter_add(struct rf_filter *filter, uintptr_t addr, unsigned mask, bool write)
{
    uint64_t *place = rf_filter_place(filter, addr), key = rf_filter_key(filter, addr);
    if ((*place ^ key) >> 16)
        *place = key;
    *place |= mask | (write ? (uint64_t)mask << 8 : 0);
}

/* All is forgotten. */
static inline void rf_filter_next(struct rf_filter *filter)
{
    filter->stamp += 1 << 16;
    if (__builtin_expect(filter->stamp >> 32 != 0, 0)) {
        filter->stamp = 1 << 16;
        for (unsigned i = 0; i < RF_FILTER; i++)
            if (filter->places[i]) /* what was never written needs no memory */
                filter->places[i] = 0;
    }
}

/* These bytes are. */
static inline void rf_filter_forget(struct rf_filter *filter, uintptr_t addr, size_t size)
{
    if (size > RF_FILTER_FORGET * RF_GRANULE) {
        rf_filter_next(filter);
        return;
    }
    for (uintptr_t at = addr & ~(uintptr_t)(RF_GRANULE - 1); at < addr + size; at += RF_GRANULE)
        if (*rf_filter_place(filter, at))
            *rf_filter_place(filter, at) = 0;
}

#endif
