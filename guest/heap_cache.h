/* A thread's own free blocks. Only heap.c includes this.
 *
 * 1. A cache belongs to its thread alone. It is busy while it is used, so that a signal handler of the same thread leaves it alone and
 *    goes to heap_central.c, which it may enter at any time.
 * 2. It holds at most RF_CACHE bytes of blocks.
 * 3. It is a block of the heap itself, of which no address tells.
 */
#ifndef RF_GUEST_HEAP_CACHE_H
#define RF_GUEST_HEAP_CACHE_H

#include "guest/heap_spans.h"
#include "guest/self.h"

#define RF_CACHE (16u << 10)
#define RF_QUICK 1024u /* what is at most this large is found in a table */

/* Free blocks of one class. */
struct rf_row {
    uint16_t count, room;
    uint32_t size;
    uintptr_t block[];
};

/* 64 bytes to a row, with 7 blocks; the 16 smallest classes have two, with 15. */
struct rf_cache {
    uint32_t busy; /* the thread uses it: set and read by it and its signal handlers */
    uint32_t bytes;
    uint64_t owner; /* the thread's number and RF_SIDE_TAKEN where a side has them; 0: the number is too large */
    uint64_t pad[6];
    uint64_t rows[RF_HEAP_CLASSES + 16][8];
};

static struct rf_cache ended = { .busy = 1 }; /* self->heap of a thread that has ended: it gets no cache again */

static inline unsigned row_number(unsigned class)
{
    return class < 16 ? class * 2 : class + 16;
}

static inline struct rf_row *row_of(struct rf_cache *cache, unsigned class)
{
    return (struct rf_row *)cache->rows[row_number(class)];
}

/* The rows of sizes up to RF_QUICK by (size + 15) / 16, in a table that the compiler makes. */
#define ROW1(n) (uint8_t)((n) ? (n) <= 16 ? ((n)-1) * 2 : (n) <= 32 ? 16 + 16 + ((n)-17) / 2 : 16 + 24 + ((n)-33) / 4 : 0)
#define ROW8(n)                                                                                                             \
    ROW1(n), ROW1((n) + 1), ROW1((n) + 2), ROW1((n) + 3), ROW1((n) + 4), ROW1((n) + 5), ROW1((n) + 6), ROW1((n) + 7)
static const uint8_t quick_rows[RF_QUICK / 16 + 1] = { ROW8(0),  ROW8(8),  ROW8(16), ROW8(24), ROW8(32),
                                                       ROW8(40), ROW8(48), ROW8(56), ROW1(64) };

/* The oldest half of the row goes, or all of it. */
static void flush_row(struct rf_cache *cache, struct rf_row *row, bool all)
{
    uintptr_t gone[15];
    unsigned leave = all ? 0 : row->count / 2u, go = row->count - leave;
    for (unsigned i = 0; i < go; i++)
        gone[i] = row->block[i];
    for (unsigned i = 0; i < leave; i++)
        row->block[i] = row->block[go + i];
    row->count = (uint16_t)leave;
    cache->bytes -= go * row->size;
    rf_central_give(gone, go);
}

static struct rf_cache *make_cache(struct rf_self *self)
{
    uintptr_t block;
    if (!rf_central_take(rf_class_of(sizeof(struct rf_cache)), &block, 1))
        return NULL;
    if (self->heap) { /* a handler was faster */
        rf_central_give(&block, 1);
        return NULL;
    }
    struct rf_cache *cache = (struct rf_cache *)block;
    rf_not_fresh(rf_span_in_segment(block), block);
    cache->busy = 1;
    cache->bytes = 0;
    cache->owner = self->number >> 16 ? 0 : (uint64_t)RF_SIDE_TAKEN << 32 | (uint64_t)self->number << 48;
    for (unsigned class = 0; class < RF_HEAP_CLASSES; class ++)
        *row_of(cache, class) = (struct rf_row){ .room = class < 16 ? 15 : 7, .size = (uint32_t)rf_class_size(class) };
    return self->heap = cache;
}

/* The row is empty, or there is none. Whoever comes here has made the cache busy. */
static __attribute__((noinline)) uintptr_t take_more(struct rf_cache *cache, unsigned class)
{
    uintptr_t blocks[8];
    struct rf_row *row = cache ? row_of(cache, class) : NULL;
    unsigned want = row ? (row->room + 1u) / 2 : 1;
    if (want > 1 && (cache->bytes + want * row->size > RF_CACHE || row->size > RF_CACHE / 4))
        want = 1;
    unsigned got = rf_central_take(class, blocks, want);
    for (unsigned i = got; i > 1; i--) /* the lowest comes out first */
        row->block[row->count++] = blocks[i - 1];
    if (got > 1)
        cache->bytes += (got - 1) * row->size;
    return got ? blocks[0] : 0;
}

static inline void begin_cache(struct rf_cache *cache)
{
    cache->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void end_cache(struct rf_cache *cache)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    cache->busy = 0;
}

static uintptr_t take_small(unsigned class)
{
    struct rf_self *self = rf_hot.self;
    struct rf_cache *cache = self ? self->heap : NULL;
    if (self && !cache)
        cache = make_cache(self);
    else if (cache && cache->busy)
        cache = NULL; /* in a handler that interrupted us, or after the thread's end */
    if (!cache)
        return take_more(NULL, class);
    begin_cache(cache);
    struct rf_row *row = row_of(cache, class);
    uintptr_t block = row->count ? row->block[--row->count] : 0;
    if (block)
        cache->bytes -= row->size;
    else
        block = take_more(cache, class);
    end_cache(cache);
    return block;
}

/* The row is full, or the cache. */
static __attribute__((noinline)) void make_room(struct rf_cache *cache, struct rf_row *row)
{
    if (row->count == row->room)
        flush_row(cache, row, false);
    for (unsigned c = RF_HEAP_CLASSES; c-- > 0 && cache->bytes + row->size > RF_CACHE;)
        if (row_of(cache, c)->count)
            flush_row(cache, row_of(cache, c), c >= 16);
}

static inline void give_small(struct rf_cache *cache, struct rf_span *span, uintptr_t block)
{
    if (__builtin_expect(!cache || cache->busy || span->block > RF_CACHE / 2, 0)) {
        rf_central_give(&block, 1);
        return;
    }
    begin_cache(cache);
    struct rf_row *row = row_of(cache, span->class);
    if (__builtin_expect(row->count == row->room || cache->bytes + row->size > RF_CACHE, 0))
        make_room(cache, row);
    row->block[row->count++] = block;
    cache->bytes += row->size;
    end_cache(cache);
}

static inline void rf_cache_end(struct rf_self *self)
{
    struct rf_cache *cache = self->heap;
    self->heap = &ended; /* a handler that comes now finds no cache */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!cache || cache == &ended)
        return;
    for (unsigned class = 0; class < RF_HEAP_CLASSES; class ++)
        flush_row(cache, row_of(cache, class), true);
    uintptr_t block = (uintptr_t)cache;
    rf_central_give(&block, 1);
}

#endif
