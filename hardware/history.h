/* What one slot did to the bytes of one metadata line, in the software layer's variable map: times of last reads and last writes.
 *
 * 1. A granule of eight bytes has one time of each kind, until its bytes have different ones: then it is uneven, and its times are
 *    in `bytes`.
 * 2. A granule that is all forgotten is even again.
 */
#ifndef RF_HARDWARE_HISTORY_H
#define RF_HARDWARE_HISTORY_H

#include <stdbool.h>

#include "core/memory.h"
#include "hardware/host.h"

enum rf_kind { RF_READS, RF_WRITES, RF_KINDS };

struct rf_history {
    struct rf_history *next;
    uint32_t *bytes; /* of the reads of each byte, then of the writes; NULL: none was ever uneven */
    uint32_t slot;
    uint32_t uneven;  /* a bit for each granule */
    uint32_t before;  /* how many histories the record had when this one began */
    uint32_t times[]; /* of the reads of each granule, then of the writes */
};

/* `length`: the bytes of a metadata line, which are its cells where it is not compact. Whole lines of the host's. */
static inline size_t rf_history_bytes(uint32_t length)
{
    return (sizeof(struct rf_history) + RF_KINDS * (length / 8) * sizeof(uint32_t) + RF_HOST_LINE - 1) & ~(RF_HOST_LINE - 1);
}

/* A record's histories are in blocks of two: the first, and behind it the second. */
static inline struct rf_history *rf_history_second(struct rf_history *first, uint32_t length)
{
    return (struct rf_history *)(void *)((char *)first + rf_history_bytes(length));
}

/* Brings a record's latest history, and what may be the other one of its block, into the host's caches. */
static inline void rf_history_prefetch(const struct rf_history *history)
{
    rf_host_prefetch(history);
    rf_host_prefetch((const void *)((uintptr_t)history ^ RF_HOST_LINE));
}

static inline bool rf_history_even(const struct rf_history *history, uint32_t granule)
{
    return !(history->uneven >> granule & 1);
}

/* All granules have the same times. */
static inline bool rf_history_all_even(const struct rf_history *history, uint32_t length)
{
    uint32_t other = history->uneven;
    for (uint32_t i = 1; i < length / 8; i++)
        other |= (history->times[i] ^ history->times[0]) | (history->times[length / 8 + i] ^ history->times[length / 8]);
    return !other;
}

static inline uint32_t rf_history_get(const struct rf_history *history, uint32_t length, enum rf_kind kind, uint32_t byte)
{
    return rf_history_even(history, byte / 8) ? history->times[kind * (length / 8) + byte / 8]
                                              : history->bytes[kind * length + byte];
}

static inline void rf_history_split(struct rf_history *history, struct rf_memory *memory, uint32_t length, uint32_t granule)
{
    if (!history->bytes)
        history->bytes = rf_alloc(memory, RF_KINDS * length * sizeof history->bytes[0]);
    for (uint32_t kind = 0; kind < RF_KINDS; kind++)
        for (uint32_t i = 0; i < 8; i++)
            history->bytes[kind * length + granule * 8 + i] = history->times[kind * (length / 8) + granule];
    history->uneven |= 1u << granule;
}

static inline void rf_history_set(struct rf_history *history, struct rf_memory *memory, uint32_t length, enum rf_kind kind,
                                  uint32_t byte, uint32_t time)
{
    if (rf_history_get(history, length, kind, byte) == time)
        return;
    if (rf_history_even(history, byte / 8))
        rf_history_split(history, memory, length, byte / 8);
    history->bytes[kind * length + byte] = time;
}

/* All bytes of a granule. */
static inline void rf_history_set_all(struct rf_history *history, uint32_t length, enum rf_kind kind, uint32_t granule,
                                      uint32_t time)
{
    history->times[kind * (length / 8) + granule] = time;
    if (__builtin_expect(rf_history_even(history, granule), 1))
        return;
    for (uint32_t i = 0; i < 8; i++)
        history->bytes[kind * length + granule * 8 + i] = time;
}

/* Nothing is known of these bytes. */
static inline void rf_history_forget(struct rf_history *history, struct rf_memory *memory, uint32_t length, uint32_t byte,
                                     uint32_t count)
{
    for (uint32_t end = byte + count; byte < end;) {
        uint32_t granule = byte / 8;
        if (byte % 8 || end - byte < 8) {
            rf_history_set(history, memory, length, RF_READS, byte, 0);
            rf_history_set(history, memory, length, RF_WRITES, byte, 0);
            byte++;
            continue;
        }
        history->uneven &= ~(1u << granule);
        rf_history_set_all(history, length, RF_READS, granule, 0);
        rf_history_set_all(history, length, RF_WRITES, granule, 0);
        byte += 8;
    }
}

#endif
