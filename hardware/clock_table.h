/* The clock table: the few clocks that fit a metadata cell, and the times that they stand for.
 *
 * A cell has six bits for a clock, a time has 64. So each thread has a table of what its clocks mean at present, with a count of
 * the cells that refer to each.
 *
 * 1. Clock 0 is "no access". Clocks 1 ... limit - 1 stand for times.
 * 2. A clock gets a new time only while no cell refers to it. When all are in use the table has rolled over: the clocks
 *    with the fewest references go from all cells to software, which stores times, and are free.
 * 3. `current` stands for the thread's present time, or is 0: then the next access will choose it.
 */
#ifndef RF_HARDWARE_CLOCK_TABLE_H
#define RF_HARDWARE_CLOCK_TABLE_H

#include "hardware/rules.h"

#define RF_CLOCKS 64u

struct rf_clock_table {
    uint32_t times[RF_CLOCKS];
    uint32_t references[RF_CLOCKS];
    uint64_t idle; /* a bit for each clock that no cell refers to; of clock 0 nobody asks */
    uint32_t current;
    uint32_t next;   /* where the search for a free one begins */
    uint32_t newest; /* no clock ever stood for a later time */
    /* by the low bits of a time, but the lowest, which is the same nearly always (core/order.h, 5.): how many clocks have such a time, and which got one last */
    uint8_t alike[256], latest[256];
};

static inline void rf_clock_table_init(struct rf_clock_table *table)
{
    table->idle = UINT64_MAX;
}

/* So many cells refer to the clock from now on; or no more. */
static inline void rf_clock_gains(struct rf_clock_table *table, uint32_t clock, uint32_t cells)
{
    table->references[clock] += cells;
    table->idle &= ~(UINT64_C(1) << clock);
}

static inline void rf_clock_loses(struct rf_clock_table *table, uint32_t clock, uint32_t cells)
{
    table->references[clock] -= cells;
    table->idle |= (uint64_t)!table->references[clock] << clock;
}

static inline uint32_t rf_clock_bucket(uint32_t time)
{
    return time / 2 & 255;
}

static inline void rf_clock_assign(struct rf_clock_table *table, uint32_t clock, uint32_t time)
{
    if (table->times[clock])
        table->alike[rf_clock_bucket(table->times[clock])]--;
    table->times[clock] = time;
    table->alike[rf_clock_bucket(time)]++;
    table->latest[rf_clock_bucket(time)] = (uint8_t)clock;
    table->newest = time > table->newest ? time : table->newest;
}

static inline bool rf_clock_stands_for(const struct rf_clock_table *table, uint32_t clock, uint32_t time)
{
    return table->times[clock] == time && (table->references[clock] || clock == table->current);
}

/* The clock that stands for a time, of which there is one at most; 0: none. */
static inline uint32_t rf_clock_find(const struct rf_clock_table *table, uint32_t time, uint32_t limit)
{
    uint32_t bucket = rf_clock_bucket(time), latest = table->latest[bucket], alike = table->alike[bucket];
    if (!alike || time > table->newest)
        return 0;
    if (rf_clock_stands_for(table, latest, time))
        return latest;
    if (alike == 1 && rf_clock_bucket(table->times[latest]) == bucket)
        return 0; /* it is the one */
    for (uint32_t clock = 1; clock < limit; clock++)
        if (rf_clock_stands_for(table, clock, time))
            return clock;
    return 0;
}

/* At least half of the clocks are free. */
static inline bool rf_clocks_to_spare(const struct rf_clock_table *table, uint32_t limit)
{
    uint64_t idle = table->idle & (UINT64_MAX >> (64 - limit));
    return (uint32_t)__builtin_popcountll(idle) * 2 >= limit;
}

/* The clock for a time; 0: all are in use. */
static inline uint32_t rf_clock_for(struct rf_clock_table *table, uint32_t time, uint32_t limit, uint64_t broken)
{
    uint32_t clock = rf_clock_find(table, time, limit);
    if (clock)
        return clock;
    uint64_t free = RF_HOLDS(broken, COUNT_REFERENCES) ? table->idle : UINT64_MAX;
    free &= UINT64_MAX >> (64 - limit) & ~UINT64_C(1) & ~(UINT64_C(1) << table->current);
    if (!free)
        return 0;
    uint64_t above = free & ~((UINT64_C(2) << (1 + table->next)) - 1); /* first those behind where the search begins */
    clock = (uint32_t)__builtin_ctzll(above ? above : free);
    rf_clock_assign(table, clock, time);
    table->next = clock - 1;
    return clock;
}

#endif
