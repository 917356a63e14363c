/* Blocks of one size, each at the beginning of a line of the host's caches: what is looked at out of order should not lie across one
 * line more than it must.
 *
 * 1. The first `zero` bytes of a block are zero when it is handed out. Its pool is the only one it goes back to.
 * 2. Slabs come from the engine's memory and end with it.
 */
#ifndef RF_HARDWARE_POOL_H
#define RF_HARDWARE_POOL_H

#include "core/memory.h"
#include "hardware/host.h"
#include "hardware/usual.h"

#define RF_SLAB ((size_t)8192)

struct rf_pool {
    size_t bytes, zero; /* of a block */
    void *free;         /* each has the address of the next */
    char *next, *end;
};

static inline void rf_pool_init(struct rf_pool *pool, size_t bytes, size_t zero)
{
    *pool = (struct rf_pool){ .bytes = (bytes + RF_HOST_LINE - 1) & ~(RF_HOST_LINE - 1), .zero = zero };
}

static inline void *rf_pool_take(struct rf_pool *pool, struct rf_memory *memory)
{
    void *block = pool->free;
    if (block) {
        memcpy(&pool->free, block, sizeof block);
        if (pool->zero) /* of most pools it is nothing, and a call for nothing costs as much as the rest */
            memset(block, 0, pool->zero);
        return block;
    }
    if (RF_RARELY(pool->next == pool->end)) {
        char *slab = rf_alloc(memory, RF_SLAB);
        size_t align = pool->bytes & (0 - pool->bytes); /* so a block of two lines does not lie across three */
        pool->next = slab + (align - (uintptr_t)slab % align) % align;
        pool->end = pool->next + (RF_SLAB - align) / pool->bytes * pool->bytes;
    }
    block = pool->next;
    pool->next += pool->bytes;
    return block;
}

static inline void rf_pool_give(struct rf_pool *pool, void *block)
{
    memcpy(block, &pool->free, sizeof block);
    pool->free = block;
}

#endif
