/* Blocks: allocation and release, a thread's own cache, and what an address tells.
 *
 * 1. A block is told to the detector: cleared when it is handed out (and, as ThreadSanitizer does, its beginning written by malloc:
 *    a pointer that is passed on without order is a race), written as a whole by the free. The free is told before anybody else can
 *    get the block.
 * 2. A thread's cache belongs to it alone. `depth` is set while it is used, so that a signal handler of the same thread leaves it
 *    alone and goes to heap_central.c, which it may enter at any time.
 * 3. A side word is written by the owner of the block; the change from taken to freed is a compare-and-swap, so that of two threads
 *    that free one block one is told. Anybody may read it: 64 bits at once.
 * 4. A cache holds at most RF_CACHE bytes of blocks.
 */
#include "guest/heap.h"

#include <string.h>

#include "guest/access.h"
#include "guest/heap_spans.h"
#include "guest/intercept.h"

#define RF_CACHE (16u << 10)
#define RF_ROWS (RF_HEAP_CLASSES + 16)
#define RF_FIRST_WRITE 1024u

/* Free blocks by class. A row of 64 bytes has a count and 7 blocks; the 16 smallest classes have two rows, with 15. */
struct rf_cache {
    size_t bytes;
    uint64_t pad[7];
    uintptr_t rows[RF_ROWS][8];
};

static char ended;
#define RF_ENDED ((void *)&ended) /* self->heap of a thread that has ended: it gets no cache again */

static RF_TLS uint32_t depth;

static inline uintptr_t *row_of(struct rf_cache *cache, unsigned class)
{
    return cache->rows[class < 16 ? class * 2 : class + 16];
}

static inline unsigned room_of(unsigned class)
{
    return class < 16 ? 15 : 7;
}

/* Half of the row, or all of it, goes; the oldest first. */
static void flush_row(struct rf_cache *cache, unsigned class, bool all)
{
    uintptr_t *row = row_of(cache, class), gone[15];
    unsigned count = (unsigned)row[0], leave = all ? 0 : count / 2, go = count - leave;
    for (unsigned i = 0; i < go; i++)
        gone[i] = row[1 + i];
    for (unsigned i = 0; i < leave; i++)
        row[1 + i] = row[1 + go + i];
    row[0] = leave;
    cache->bytes -= go * rf_class_size(class);
    rf_central_give(gone, go);
}

static struct rf_cache *make_cache(struct rf_self *self)
{
    uintptr_t block;
    if (self->heap == RF_ENDED || !rf_central_take(rf_class_of(sizeof(struct rf_cache)), &block, 1))
        return NULL;
    struct rf_cache *cache = (struct rf_cache *)block;
    rf_not_fresh(rf_span_in_segment(block), block);
    cache->bytes = 0;
    for (unsigned class = 0; class < RF_HEAP_CLASSES; class++)
        row_of(cache, class)[0] = 0;
    return self->heap = cache;
}

static __attribute__((noinline)) uintptr_t take_slowly(struct rf_self *self, struct rf_cache *cache, unsigned class)
{
    uintptr_t blocks[8];
    size_t size = rf_class_size(class);
    if (!cache && self)
        cache = make_cache(self);
    unsigned want = cache ? (room_of(class) + 1) / 2 : 1;
    if (want > 1 && (cache->bytes + want * size > RF_CACHE || size > RF_CACHE / 4))
        want = 1;
    unsigned got = rf_central_take(class, blocks, want);
    if (!got)
        return 0;
    uintptr_t *row = cache ? row_of(cache, class) : NULL;
    for (unsigned i = got; i > 1; i--) /* the lowest comes out first */
        row[++row[0]] = blocks[i - 1];
    if (cache)
        cache->bytes += (got - 1) * size;
    return blocks[0];
}

static inline struct rf_cache *cache_of(struct rf_self *self)
{
    return self && self->heap != RF_ENDED ? self->heap : NULL;
}

static inline uintptr_t take_small(unsigned class)
{
    uintptr_t block;
    if (__builtin_expect(depth, 0))
        return rf_central_take(class, &block, 1) ? block : 0;
    depth = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct rf_self *self = rf_hot.self;
    struct rf_cache *cache = cache_of(self);
    uintptr_t *row = cache ? row_of(cache, class) : NULL;
    if (__builtin_expect(row && row[0], 1)) {
        block = row[row[0]--];
        cache->bytes -= rf_class_size(class);
    } else {
        block = take_slowly(self, cache, class);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    depth = 0;
    return block;
}

/* The row is full, or the cache. */
static __attribute__((noinline)) void make_room(struct rf_cache *cache, unsigned class, size_t size)
{
    if (row_of(cache, class)[0] == room_of(class))
        flush_row(cache, class, false);
    for (unsigned c = RF_HEAP_CLASSES; c-- > 0 && cache->bytes + size > RF_CACHE;)
        if (row_of(cache, c)[0])
            flush_row(cache, c, c >= 16);
}

static inline void give_small(struct rf_span *span, uintptr_t block)
{
    unsigned class = span->class;
    size_t size = span->block;
    struct rf_cache *cache = cache_of(rf_hot.self);
    if (__builtin_expect(depth || !cache || size > RF_CACHE / 2, 0)) {
        rf_central_give(&block, 1);
        return;
    }
    depth = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uintptr_t *row = row_of(cache, class);
    if (__builtin_expect(row[0] == room_of(class) || cache->bytes + size > RF_CACHE, 0))
        make_room(cache, class, size);
    row[1 + row[0]] = block;
    row[0]++;
    cache->bytes += size;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    depth = 0;
}

static inline uint64_t side_word(enum rf_side_state state, uint32_t note, uint32_t thread, size_t slack)
{
    uint64_t low = note | (uint64_t)state << 32;
    if (__builtin_expect(slack >> 13 || thread >> 16, 0))
        return low | (uint64_t)1 << 34 | (uint64_t)thread << 35;
    return low | (uint64_t)slack << 35 | (uint64_t)thread << 48;
}

static inline enum rf_side_state side_state(uint64_t side)
{
    return side >> 32 & 3;
}

static inline bool side_wide(uint64_t side)
{
    return side >> 34 & 1;
}

/* The size that was asked for. */
static inline size_t size_of(const struct rf_span *span, uint64_t side)
{
    if (!span->block)
        return span->size;
    if (__builtin_expect(side_wide(side), 0)) {
        size_t size = (uint32_t)side ? rf_note_size((uint32_t)side) : span->block;
        return size < span->block ? size : span->block;
    }
    return span->block - (side >> 35 & 0x1fff);
}

/* Who allocates: NULL if nothing is to be told. */
static inline struct rf_self *teller(void)
{
    struct rf_self *self = rf_started ? rf_hot.self : NULL;
    return self && !self->inside ? self : NULL;
}

/* What libc allocates inside the guest may be handed to the program: the past of its block must go then too. */
static inline void tell_taken(struct rf_self *self, uintptr_t block, size_t usable, size_t size, uintptr_t pc)
{
    rf_range_clear(block, usable);
    if (self)
        rf_range_write((void *)block, size < RF_FIRST_WRITE ? size : RF_FIRST_WRITE, pc);
}

static __attribute__((noinline)) void *allocate_single(struct rf_self *self, size_t size, size_t align, bool zero, uintptr_t pc)
{
    if (size > (size_t)PTRDIFF_MAX - align)
        return NULL;
    struct rf_span *span = rf_single_take(size ? size : 1, align);
    if (!span)
        return NULL;
    if (zero && !span->zero)
        memset((void *)span->base, 0, size);
    span->size = size;
    uint64_t side = side_word(RF_SIDE_TAKEN, self ? rf_note_here(pc, 0, size) : 0, self ? self->number : 0, 0);
    __atomic_store_n(&span->one, side, __ATOMIC_RELEASE);
    tell_taken(self, span->base, span->length, size, pc);
    return (void *)span->base;
}

void *rf_heap_allocate(size_t size, size_t align, bool zero, uintptr_t pc)
{
    struct rf_self *self = teller();
    size_t wanted = size;
    if (__builtin_expect(align > 16, 0)) {
        if (align > RF_HEAP_SMALL || size > RF_HEAP_SMALL)
            return allocate_single(self, size, align, zero, pc);
        wanted = size ? (size + align - 1) & ~(align - 1) : align;
    }
    if (__builtin_expect(wanted > RF_HEAP_SMALL, 0))
        return allocate_single(self, size, align, zero, pc);
    unsigned class = rf_class_of(wanted);
    while (__builtin_expect(rf_class_size(class) & (align - (align != 0)), 0)) /* blocks are aligned as their size is */
        class++;
    uintptr_t block = take_small(class);
    if (__builtin_expect(!block, 0))
        return NULL;
    struct rf_span *span = rf_span_in_segment(block);
    uint64_t *side = &span->side[rf_index_in(span, block)];
    size_t usable = span->block;
    if (zero && *side)
        memset((void *)block, 0, usable);
    uint32_t note = self ? rf_note_here(pc, 0, size) : 0;
    __atomic_store_n(side, side_word(RF_SIDE_TAKEN, note, self ? self->number : 0, usable - size), __ATOMIC_RELEASE);
    tell_taken(self, block, usable, size, pc);
    return (void *)block;
}

static _Noreturn __attribute__((noinline)) void bad_block(void *block, const char *verb)
{
    struct rf_span *span = rf_span_of((uintptr_t)block);
    struct rf_block known;
    if (span && rf_heap_block((uintptr_t)block, &known) && known.freed && known.addr == (uintptr_t)block)
        rf_say("%s of %p: a block of %zu bytes that is free already (double free)", verb, block, known.size);
    else if (span && rf_heap_block((uintptr_t)block, &known))
        rf_say("%s of %p: it lies in the block of %zu bytes at %p, but is not its start", verb, block, known.size,
               (void *)known.addr);
    else
        rf_say("%s of %p: no block of the heap", verb, block);
    void (*end)(void) = (void (*)(void))rf_find_real("abort");
    end();
    __builtin_trap();
}

/* The span of an allocated block, and its side. */
static inline struct rf_span *checked(void *block, uint64_t **side, const char *verb)
{
    struct rf_span *span = rf_span_of((uintptr_t)block);
    if (__builtin_expect(!span, 0))
        bad_block(block, verb);
    uint32_t index = rf_index_in(span, (uintptr_t)block);
    *side = span->side + index;
    if (__builtin_expect(span->base + (uintptr_t)index * span->block != (uintptr_t)block, 0) ||
        __builtin_expect(side_state(__atomic_load_n(*side, __ATOMIC_RELAXED)) != RF_SIDE_TAKEN, 0))
        bad_block(block, verb);
    return span;
}

/* A large block's history is as large as itself: it goes as it is written. */
static void tell_freed(uintptr_t block, size_t size, uintptr_t pc)
{
    const size_t piece = RF_HEAP_MEDIUM;
    if (size <= 4 * piece) {
        rf_range_free(block, size, pc);
        return;
    }
    for (size_t at = 0; at < size; at += piece) {
        rf_range_free(block + at, size - at < piece ? size - at : piece, pc);
        rf_range_return(block + at, size - at < piece ? size - at : piece);
    }
}

void rf_heap_release(void *address, uintptr_t pc)
{
    struct rf_self *self = teller();
    uint64_t *side;
    struct rf_span *span = checked(address, &side, "free");
    uint64_t was = __atomic_load_n(side, __ATOMIC_RELAXED);
    size_t size = size_of(span, was);
    uint32_t note = 0;
    if (self) {
        tell_freed((uintptr_t)address, size, pc);
        note = rf_note_here(pc, RF_A_FREE, size);
    }
    uint64_t freed = side_word(RF_SIDE_FREED, note, self ? self->number : 0, span->block ? span->block - size : 0);
    if (!__atomic_compare_exchange_n(side, &was, freed, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        bad_block(address, "free");
    if (__builtin_expect(span->block != 0, 1))
        give_small(span, (uintptr_t)address);
    else
        rf_single_give(span);
}

/* To the detector a block that grows or shrinks where it is has been freed and allocated. */
static void tell_resized(struct rf_self *self, struct rf_span *span, uintptr_t block, size_t was, size_t size, uintptr_t pc)
{
    if (self)
        tell_freed(block, was, pc);
    tell_taken(self, block, span->block ? span->block : span->length, size, pc);
}

static bool resize_in_place(struct rf_self *self, struct rf_span *span, uint64_t *side, uintptr_t *block, size_t size, uintptr_t pc)
{
    size_t was = size_of(span, *side), slack = 0;
    if (size <= RF_HEAP_SMALL ? !span->block || rf_class_of(size) != span->class : span->block || (!span->units && size <= RF_HEAP_MEDIUM))
        return false;
    if (span->block) {
        tell_resized(self, span, *block, was, size, pc);
        slack = span->block - size;
    } else if (span->units) {
        size_t length = (size + RF_PAGE - 1) & ~(RF_PAGE - 1);
        if (length > span->units * RF_UNIT || length <= (span->units - 1u) * RF_UNIT)
            return false;
        /* Pages that were never in the block may be anything: `zero` is only asked of new blocks. */
        tell_resized(self, span, *block, was, size, pc);
        __atomic_store_n(&span->length, length, __ATOMIC_RELAXED);
    } else {
        if (size > (size_t)PTRDIFF_MAX - RF_SEGMENT || rf_heap_mine(&rf_arenas[span->arena].pages))
            return false;
        if (self)
            tell_freed(*block, was, pc);
        rf_range_return(*block, span->length);
        bool done = rf_large_resize(&rf_arenas[span->arena], span, size);
        tell_taken(self, span->base, span->length, done ? size : was, pc);
        if (!done)
            return false;
        *block = span->base;
    }
    span->size = size; /* of a single block; else nobody reads it */
    uint32_t note = self ? rf_note_here(pc, 0, size) : 0;
    __atomic_store_n(side, side_word(RF_SIDE_TAKEN, note, self ? self->number : 0, slack), __ATOMIC_RELEASE);
    return true;
}

void *rf_heap_resize(void *address, size_t size, uintptr_t pc)
{
    struct rf_self *self = teller();
    uint64_t *side;
    struct rf_span *span = checked(address, &side, "realloc");
    uintptr_t block = (uintptr_t)address;
    if (resize_in_place(self, span, side, &block, size, pc))
        return (void *)block;
    size_t was = size_of(span, *side);
    void *to = rf_heap_allocate(size, 0, false, pc);
    if (to) {
        memcpy(to, address, was < size ? was : size);
        rf_heap_release(address, pc);
    }
    return to;
}

size_t rf_heap_usable(void *address)
{
    uint64_t *side;
    struct rf_span *span = checked(address, &side, "malloc_usable_size");
    return span->block ? span->block : span->length;
}

bool rf_heap_block(uintptr_t addr, struct rf_block *block)
{
    struct rf_span *found = rf_span_of(addr);
    if (!found)
        return false;
    struct rf_span span = *found; /* one look: it may be changing its use (heap_spans.h, 1) */
    uintptr_t index = rf_index_in(&span, addr);
    uint64_t *side = span.side + index;
    if (!span.block)
        side = &found->one;
    else if (((uintptr_t)side ^ addr) & ~(RF_SEGMENT - 1) || index >= span.count)
        return false;
    uint64_t word = __atomic_load_n(side, __ATOMIC_ACQUIRE);
    enum rf_side_state state = side_state(word);
    if (addr - span.base >= span.length || (state != RF_SIDE_TAKEN && state != RF_SIDE_FREED))
        return false;
    block->addr = span.base + index * span.block;
    block->size = size_of(&span, word);
    block->note = (uint32_t)word;
    block->thread = (uint32_t)(side_wide(word) ? word >> 35 : word >> 48);
    block->freed = state == RF_SIDE_FREED;
    return true;
}

void rf_heap_thread_end(struct rf_self *self)
{
    struct rf_cache *cache = cache_of(self);
    self->heap = RF_ENDED; /* a handler that comes now finds no cache */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!cache)
        return;
    for (unsigned class = 0; class < RF_HEAP_CLASSES; class++)
        flush_row(cache, class, true);
    uintptr_t block = (uintptr_t)cache;
    rf_central_give(&block, 1);
}

size_t rf_heap_trim(void)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < RF_ARENAS; i++)
        if (!rf_heap_mine(&rf_arenas[i].pages))
            bytes += rf_heap_purge(&rf_arenas[i], true);
    return bytes;
}

void rf_heap_totals(size_t *in_use, size_t *free)
{
    *in_use = *free = 0;
    for (unsigned i = 0; i < RF_ARENAS; i++) {
        *in_use += __atomic_load_n(&rf_arenas[i].in_use, __ATOMIC_RELAXED);
        *free += __atomic_load_n(&rf_arenas[i].dirty, __ATOMIC_RELAXED);
    }
}

/* A lock that this thread holds already, because fork() is called in a handler that interrupted the heap, stays as it is: what it
 * protects will be finished in both processes. */
static void hold(struct rf_heap_lock *lock)
{
    if (rf_heap_mine(lock))
        return;
    rf_heap_lock(lock);
    __atomic_store_n(&lock->owner, rf_heap_me() | 1, __ATOMIC_RELAXED);
}

static void let_go(struct rf_heap_lock *lock)
{
    if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == (rf_heap_me() | 1))
        __atomic_store_n(&lock->owner, 0, __ATOMIC_RELEASE);
}

void rf_heap_fork_before(void)
{
    for (unsigned i = 0; i < RF_ARENAS; i++) {
        for (unsigned class = 0; class < RF_HEAP_CLASSES; class++)
            hold(&rf_arenas[i].central[class].lock);
        hold(&rf_arenas[i].pages);
    }
}

void rf_heap_fork_after(bool child)
{
    (void)child; /* the same in both: the locks' owner is the thread that forked */
    for (unsigned i = 0; i < RF_ARENAS; i++) {
        let_go(&rf_arenas[i].pages);
        for (unsigned class = 0; class < RF_HEAP_CLASSES; class++)
            let_go(&rf_arenas[i].central[class].lock);
    }
}
