/* Which of a context's lines have which clock: so a roll-over finds the few lines that it must clean among all that are cached.
 *
 * 1. Every line that has a clock's bit in `used` is in the clock's list. So may be lines that have left, and some lines twice: who
 *    reads a list must look at the lines. Their memory is never given back while the simulation lasts.
 * 2. When there are twice as many entries as there were last time, what does not belong there is taken out: what the lists take
 *    grows with the lines that are cached at once, not with time.
 */
#ifndef RF_HARDWARE_CLOCK_USERS_H
#define RF_HARDWARE_CLOCK_USERS_H

#include "hardware/clock_table.h"
#include "hardware/metadata.h"
#include "hardware/pool.h"

#define RF_USERS_CHUNK 15u

struct rf_users_chunk {
    struct rf_users_chunk *next;
    struct rf_metadata *lines[RF_USERS_CHUNK];
};

struct rf_users_list {
    struct rf_users_chunk *first; /* the one that is filled; the others are full */
    uint32_t filled;
};

struct rf_users {
    struct rf_users_list of[RF_CLOCKS];
    struct rf_pool *chunks;
    struct rf_memory *memory;
    uint32_t slot;           /* whose lines they are */
    uint32_t entries, limit; /* 2. */
};

static inline void rf_users_put(struct rf_users *users, struct rf_users_list *list, struct rf_metadata *line)
{
    if (!list->first || list->filled == RF_USERS_CHUNK) {
        struct rf_users_chunk *chunk = rf_pool_take(users->chunks, users->memory);
        chunk->next = list->first;
        list->first = chunk;
        list->filled = 0;
    }
    list->first->lines[list->filled++] = line;
    users->entries++;
}

/* Takes the next line out of a list; NULL: it is empty. */
static inline struct rf_metadata *rf_users_take(struct rf_users *users, struct rf_users_list *list)
{
    struct rf_users_chunk *chunk = list->first;
    if (!chunk)
        return NULL;
    struct rf_metadata *line = chunk->lines[--list->filled];
    if (!list->filled) {
        list->first = chunk->next;
        list->filled = RF_USERS_CHUNK;
        rf_pool_give(users->chunks, chunk);
    }
    users->entries--;
    return line;
}

static __attribute__((noinline, unused)) void rf_users_clean(struct rf_users *users)
{
    for (uint32_t clock = 1; clock < RF_CLOCKS; clock++) {
        struct rf_users_list kept = { 0 };
        uint64_t bit = UINT64_C(1) << clock;
        for (struct rf_metadata *line; (line = rf_users_take(users, &users->of[clock]));) {
            if (line->slot != users->slot || !(line->used & bit))
                continue;
            line->used &= ~bit; /* so that it stays once */
            rf_users_put(users, &kept, line);
        }
        uint32_t count = kept.filled;
        for (struct rf_users_chunk *chunk = kept.first; chunk; chunk = chunk->next, count = RF_USERS_CHUNK)
            for (uint32_t i = 0; i < count; i++)
                chunk->lines[i]->used |= bit;
        users->of[clock] = kept;
    }
    users->limit = 2 * users->entries + 1024;
}

/* The line has the clock from now on. */
static inline void rf_users_add(struct rf_users *users, struct rf_metadata *line, uint32_t clock)
{
    if (__builtin_expect(users->entries >= users->limit, 0))
        rf_users_clean(users);
    rf_users_put(users, &users->of[clock], line);
    line->used |= UINT64_C(1) << clock;
}

#endif
