/* Vector clocks and epochs.
 *
 * A vector clock maps slots to times; a slot is what a thread is known by in clocks (core/order.h hands them out). Entries
 * beyond `len` are 0. An epoch c@s, 64 bits wide, is the slot in the upper half and the time in the lower; epoch 0 (time 0)
 * happens before everything. RF_TAG marks a word that refers to a record and is not an epoch.
 */
#ifndef RF_CORE_CLOCK_H
#define RF_CORE_CLOCK_H

#include <stdbool.h>

#include "core/memory.h"

typedef uint64_t rf_epoch;

#define RF_TAG (UINT64_C(1) << 63)

static inline rf_epoch rf_epoch_make(uint32_t slot, uint32_t time)
{
    return (rf_epoch)slot << 32 | time;
}

static inline uint32_t rf_epoch_slot(rf_epoch epoch)
{
    return (uint32_t)(epoch >> 32);
}

static inline uint32_t rf_epoch_time(rf_epoch epoch)
{
    return (uint32_t)epoch;
}

struct rf_clock {
    uint32_t *times;
    uint32_t len, cap;
};

static inline uint32_t rf_clock_get(const struct rf_clock *clock, uint32_t slot)
{
    return slot < clock->len ? clock->times[slot] : 0;
}

static inline void rf_clock_reserve(struct rf_clock *clock, struct rf_memory *memory, uint32_t len)
{
    clock->times = rf_grow(memory, clock->times, &clock->cap, len, sizeof *clock->times);
    if (clock->len < len)
        clock->len = len;
}

static inline void rf_clock_set(struct rf_clock *clock, struct rf_memory *memory, uint32_t slot, uint32_t time)
{
    rf_clock_reserve(clock, memory, slot + 1);
    clock->times[slot] = time;
}

/* into := into ⊔ from */
static inline void rf_clock_join(struct rf_clock *into, struct rf_memory *memory, const struct rf_clock *from)
{
    rf_clock_reserve(into, memory, from->len);
    uint32_t *restrict a = into->times;
    const uint32_t *restrict b = from->times;
    for (uint32_t i = 0; i < from->len; i++)
        a[i] = a[i] < b[i] ? b[i] : a[i];
}

/* into := from */
static inline void rf_clock_copy(struct rf_clock *into, struct rf_memory *memory, const struct rf_clock *from)
{
    rf_clock_reserve(into, memory, from->len);
    if (from->len)
        memcpy(into->times, from->times, from->len * sizeof *from->times);
    into->len = from->len;
    /* Beyond len everything must read as 0 when the clock grows again. */
    if (into->cap > into->len)
        memset(into->times + into->len, 0, (into->cap - into->len) * sizeof *into->times);
}

static inline void rf_clock_clear(struct rf_clock *clock)
{
    if (clock->len)
        memset(clock->times, 0, clock->len * sizeof *clock->times);
    clock->len = 0;
}

static inline void rf_clock_end(struct rf_clock *clock, struct rf_memory *memory)
{
    rf_free(memory, clock->times, clock->cap * sizeof *clock->times);
    *clock = (struct rf_clock){ 0 };
}

/* a ⊑ b */
static inline bool rf_clock_leq(const struct rf_clock *a, const struct rf_clock *b)
{
    for (uint32_t i = 0; i < a->len; i++)
        if (a->times[i] > rf_clock_get(b, i))
            return false;
    return true;
}

/* c@s ≼ clock */
static inline bool rf_epoch_leq(rf_epoch epoch, const struct rf_clock *clock)
{
    return rf_epoch_time(epoch) <= rf_clock_get(clock, rf_epoch_slot(epoch));
}

#endif
