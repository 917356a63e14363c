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
    uint64_t times[RF_CLOCKS];
    uint32_t references[RF_CLOCKS];
    uint32_t current;
    uint32_t next; /* where the search for a free one begins */
};

/* The clock for a time; 0: all are in use. */
static inline uint32_t rf_clock_for(struct rf_clock_table *table, uint64_t time, uint32_t limit, uint64_t broken)
{
    for (uint32_t clock = 1; clock < limit; clock++)
        if (table->times[clock] == time && (table->references[clock] || clock == table->current))
            return clock;
    for (uint32_t tried = 1, clock = 1 + table->next; tried < limit; tried++) {
        clock = clock + 1 < limit ? clock + 1 : 1;
        bool free = !table->references[clock] || !RF_HOLDS(broken, COUNT_REFERENCES);
        if (free && clock != table->current) {
            table->times[clock] = time;
            table->next = clock - 1;
            return clock;
        }
    }
    return 0;
}

#endif
