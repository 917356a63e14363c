/* Which of a context's lines have which clock: for each clock a set of places, so that a roll-over finds the few lines that it must
 * clean among all that are cached.
 *
 * 1. A set is bits: one for each place, in blocks of 64 places; above them, in groups, one for each block that has some bit.
 * 2. Blocks are in the order of places and have a word for each clock: what is done to one line touches one block.
 */
#ifndef RF_HARDWARE_CLOCK_USERS_H
#define RF_HARDWARE_CLOCK_USERS_H

#include "core/memory.h"
#include "hardware/clock_table.h"

struct rf_users_block {
    uint64_t of[RF_CLOCKS];
};

struct rf_users {
    struct rf_users_block *blocks, *groups;
    uint32_t block_cap, group_cap;
};

static inline void rf_users_reserve(struct rf_users *users, struct rf_memory *memory, uint32_t places)
{
    uint32_t blocks = (places + 63) / 64, groups = (blocks + 63) / 64;
    users->blocks = rf_grow(memory, users->blocks, &users->block_cap, blocks, sizeof *users->blocks);
    users->groups = rf_grow(memory, users->groups, &users->group_cap, groups, sizeof *users->groups);
}

/* `clocks`: a bit for each. */
static inline void rf_users_add(struct rf_users *users, uint32_t place, uint64_t clocks)
{
    for (; clocks; clocks &= clocks - 1) {
        uint32_t clock = (uint32_t)__builtin_ctzll(clocks);
        users->blocks[place >> 6].of[clock] |= UINT64_C(1) << (place & 63);
        users->groups[place >> 12].of[clock] |= UINT64_C(1) << (place >> 6 & 63);
    }
}

static inline void rf_users_remove(struct rf_users *users, uint32_t place, uint64_t clocks)
{
    for (; clocks; clocks &= clocks - 1) {
        uint32_t clock = (uint32_t)__builtin_ctzll(clocks);
        uint64_t left = users->blocks[place >> 6].of[clock] &= ~(UINT64_C(1) << (place & 63));
        if (!left)
            users->groups[place >> 12].of[clock] &= ~(UINT64_C(1) << (place >> 6 & 63));
    }
}

/* Brings a block into the host's caches. */
static inline void rf_users_prefetch(const struct rf_users_block *block)
{
    for (uint32_t i = 0; i < RF_CLOCKS; i += 8)
        __builtin_prefetch(&block->of[i]);
}

/* The union of the sets of these clocks in one block. */
static inline uint64_t rf_users_of(const struct rf_users_block *block, uint64_t clocks)
{
    uint64_t all = 0;
    for (; clocks; clocks &= clocks - 1)
        all |= block->of[__builtin_ctzll(clocks)];
    return all;
}

#endif
