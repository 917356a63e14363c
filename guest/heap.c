/* Blocks: allocation and release, a thread's own cache, and what an address tells.
 *
 * 1. A block is told to the detector: cleared when it is handed out (and, as ThreadSanitizer does, its beginning written by malloc:
 *    a pointer that is passed on without order is a race), written as a whole by the free. The free is told before anybody else can
 *    get the block.
 * 2. A side word is written by the owner of the block; the change from taken to freed is a compare-and-swap, so that of two threads
 *    that free one block one is told. Anybody may read it: 64 bits at once.
 */
#include "guest/heap.h"

#include <string.h>

#include "guest/access.h"
#include "guest/caper.h"
#include "guest/depot.h"
#include "guest/escape.h"
#include "guest/heap_cache.h"
#include "guest/heap_spans.h"
#include "guest/intercept.h"
#include "guest/objects.h"
#include "guest/origins.h"
#include "guest/tap.h"
#include "guest/transactions.h"

#define RF_FIRST_WRITE RF_HEAP_SMALL /* bytes of a new block that malloc writes: all, if it is of a class */
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
    if (__builtin_expect(side_wide(side), 0)) { /* notes know sizes up to RF_LARGEST_SIZE */
        size_t size = (uint32_t)side ? rf_note_size((uint32_t)side) : span->block;
        return size < span->block && size < RF_LARGEST_SIZE ? size : span->block;
    }
    return span->block - (side >> 35 & 0x1fff);
}

/* Who allocates or frees: NULL if nothing is to be told. */
static inline struct rf_self *teller(void)
{
    struct rf_self *self = rf_started ? rf_hot.self : NULL;
    return self && !self->inside ? self : NULL;
}

size_t rf_heap_apart;

/* To Caper a block's note is its origin: who called the interceptor, whose frame is the last. There are no histories, and no reports. */
static uint32_t origin_of(const struct rf_self *self)
{
    return rf_origins_on && rf_hot.top > self->frames ? rf_origins_note(rf_hot.top[-1].pc) : 0;
}

/* A note that the access beside it has too. The depot's lock must not be held when a signal handler begins. */
static inline uint32_t note_of(struct rf_self *self, uintptr_t pc, unsigned flags, size_t size)
{
    if (!self || self->busy || rf_caper_on)
        return self && rf_caper_on && !(flags & RF_A_FREE) ? origin_of(self) : 0;
    rf_busy_begin(self);
    uint32_t note = rf_note_here(pc, RF_A_WRITE | flags, size);
    rf_busy_end(self);
    return note;
}

/* What malloc writes: whole blocks of classes, so that there are few different sizes, and whole granules. */
static inline size_t written_of(size_t usable)
{
    return usable < RF_FIRST_WRITE ? usable : RF_FIRST_WRITE;
}

/* A block is the thread's. One that nobody else can reach needs no history (guest/escape.h). Returns the note of its allocation. */
static inline uint32_t tell_fresh(struct rf_self *self, uintptr_t block, size_t usable, size_t written, uintptr_t pc)
{
    if (__builtin_expect(rf_escape_leaves == NULL, 1))
        return rf_range_fresh(block, usable, written, pc);
    if (self->busy || (rf_tap && !rf_caper_on)) {
        rf_origin_escapes(RF_ORIGIN_ANY); /* nobody's from the start */
        return rf_range_fresh(block, usable, written, pc);
    }
    if (!rf_caper_on)
        rf_range_clear(block, usable);
    uint32_t note = note_of(self, pc, 0, written);
    if (!rf_escape_fresh(self, block, usable))
        rf_origin_escapes_note(note);
    return note;
}

/* What libc allocates inside the guest may be handed to the program: the past of its block must go then too. But while the world
 * is stopped for fork(), nobody may touch histories. */
static inline void tell_taken(struct rf_self *self, uintptr_t block, size_t usable, uintptr_t pc)
{
    if (!self && rf_heap_forking())
        return;
    if (self)
        tell_fresh(self, block, usable, written_of(usable), pc);
    else
        rf_range_clear(block, usable);
}

static uint64_t taken_side(struct rf_self *self, size_t usable, size_t size, size_t slack, uintptr_t pc)
{
    uint32_t thread = self ? self->number : 0;
    bool wide = slack >> 13 || thread >> 16; /* then the note must know the size */
    uint32_t note = wide && rf_caper_on ? 0 : note_of(self, pc, 0, wide ? size : written_of(usable));
    return side_word(RF_SIDE_TAKEN, note, thread, slack);
}

static __attribute__((noinline)) void *allocate_single(struct rf_self *self, size_t size, size_t align, bool zero,
                                                       uintptr_t pc)
{
    if (size > (size_t)PTRDIFF_MAX - align)
        return NULL;
    struct rf_span *span = rf_single_take(size ? size + rf_heap_apart : 1, align);
    if (!span)
        return NULL;
    if (zero && !span->zero)
        memset((void *)span->base, 0, size);
    span->size = size;
    __atomic_store_n(&span->one, taken_side(self, span->length, size, 0, pc), __ATOMIC_RELEASE);
    tell_taken(self, span->base, span->length, pc);
    return (void *)span->base;
}

void *rf_heap_allocate(size_t size, size_t align, bool zero, uintptr_t pc)
{
    struct rf_self *self = teller();
    size_t room = size + rf_heap_apart, wanted = room;
    if (align > 16) {
        if (align > RF_PAGE || room > RF_HEAP_SMALL) /* so the slack of a class's block fits its side */
            return allocate_single(self, size, align, zero, pc);
        wanted = room ? (room + align - 1) & ~(align - 1) : align;
    }
    if (wanted > RF_HEAP_SMALL || size > RF_HEAP_SMALL)
        return allocate_single(self, size, align, zero, pc);
    unsigned class = rf_class_of(wanted);
    while (align && rf_class_size(class) & (align - 1)) /* blocks are aligned as their size is */
        class ++;
    uintptr_t block = take_small(class);
    if (!block)
        return NULL;
    struct rf_span *span = rf_span_in_segment(block);
    uint64_t *side = &span->side[rf_index_in(span, block)];
    if (zero && *side)
        memset((void *)block, 0, span->block);
    __atomic_store_n(side, taken_side(self, span->block, size, span->block - size, pc), __ATOMIC_RELEASE);
    tell_taken(self, block, span->block, pc);
    return (void *)block;
}

void *rf_heap_quick(struct rf_self *self, size_t size, uintptr_t pc)
{
    struct rf_cache *cache;
    if (__builtin_expect(!self || size > RF_QUICK - rf_heap_apart || !(cache = self->heap) || cache->busy || !cache->owner, 0))
        return rf_heap_allocate(size, 0, false, pc);
    begin_cache(cache);
    struct rf_row *row = (struct rf_row *)cache->rows[quick_rows[(size + rf_heap_apart + 15) / 16]];
    if (__builtin_expect(!row->count, 0)) {
        end_cache(cache);
        return rf_heap_allocate(size, 0, false, pc);
    }
    uintptr_t block = row->block[--row->count];
    size_t usable = row->size;
    cache->bytes -= row->size;
    end_cache(cache);
    struct rf_span *span = rf_span_in_segment(block);
    uint64_t *side = &span->side[rf_index_in(span, block)];
    uint32_t note = tell_fresh(self, block, usable, usable, pc);
    __atomic_store_n(side, cache->owner | note | (uint64_t)(usable - size) << 35, __ATOMIC_RELEASE);
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
static __attribute__((noinline)) uint32_t tell_large_freed(uintptr_t block, size_t size, uintptr_t pc)
{
    const size_t piece = RF_HEAP_MEDIUM;
    uint32_t note = 0;
    rf_range_refuse(block, size, RF_A_WRITE | RF_A_FREE, pc);
    for (size_t at = 0; at < size; at += piece) {
        size_t length = size - at < piece ? size - at : piece;
        if (!at || rf_range_touched(block + at, length)) /* else there is nothing to race with */
            note = rf_range_free(block + at, length, pc);
        rf_range_return(block + at, length);
    }
    return note;
}

/* A free writes whole granules at least, and of blocks of a class all, so that notes are few. Returns the write's note. `own`: Caper need not
 * be told, since nobody else can reach the block. */
static inline uint32_t tell_freed(struct rf_span *span, uintptr_t block, bool own, uintptr_t pc)
{
    size_t size = span->block ? span->block : (span->size + 7) & ~(size_t)7;
    if (__builtin_expect(rf_caper_on, 0) && !rf_hot.self->in_txn) { /* there are no histories that it could race with */
        if (!own)
            rf_caper_freed(rf_hot.self, block, size);
        rf_objects_forget(block, size);
        return 0;
    }
    if (__builtin_expect(rf_escape_leaves != NULL, 0) && !rf_tap && rf_hot.self && !rf_hot.self->busy &&
        rf_escape_gone(rf_hot.self, block, span->block ? span->block : span->length)) {
        rf_objects_forget(block, size);
        return note_of(rf_hot.self, pc, RF_A_FREE, size);
    }
    if (__builtin_expect(rf_itm_used, 0) && rf_itm_frees(rf_hot.self)) {
        rf_objects_forget(block, size);
        return 0;
    }
    if (__builtin_expect(size <= 4 * RF_HEAP_MEDIUM, 1))
        return rf_range_free(block, size, pc);
    return tell_large_freed(block, size, pc);
}

void rf_heap_release(void *address, uintptr_t pc)
{
    struct rf_self *self = teller();
    uint64_t *side;
    struct rf_span *span = checked(address, &side, "free");
    uint64_t was = __atomic_load_n(side, __ATOMIC_RELAXED), freed = (uint64_t)RF_SIDE_FREED << 32;
    struct rf_cache *cache = rf_hot.self ? rf_hot.self->heap : NULL;
    bool own = __builtin_expect(rf_fresh_blocks != NULL, 0) && rf_escape_frees_own((uintptr_t)address);
    if (__builtin_expect(rf_fresh_blocks && !own, 0))
        rf_escape_not_fresh((uintptr_t)address);
    if (__builtin_expect(self && cache && cache->owner && !side_wide(was), 1)) {
        freed += (was & RF_SIDE_SLACK) + cache->owner - ((uint64_t)RF_SIDE_TAKEN << 32) + tell_freed(span, (uintptr_t)address, own, pc);
    } else {
        size_t size = size_of(span, was), slack = span->block ? span->block - size : 0;
        bool wide = slack >> 13 || (self && self->number >> 16);
        if (self)
            tell_freed(span, (uintptr_t)address, own, pc);
        freed = side_word(RF_SIDE_FREED, note_of(self, pc, RF_A_FREE, wide ? size : span->block), self ? self->number : 0,
                          slack);
    }
    if (__builtin_expect(!__atomic_compare_exchange_n(side, &was, freed, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED), 0))
        bad_block(address, "free");
    if (__builtin_expect(span->block != 0, 1))
        give_small(cache, span, (uintptr_t)address);
    else
        rf_single_give(span);
}

/* To the detector a block that grows or shrinks where it is has been freed and allocated. */
static void tell_resized(struct rf_self *self, struct rf_span *span, uintptr_t block, uintptr_t pc)
{
    size_t usable = span->block ? span->block : span->length;
    bool escaped = rf_is_escaped(block); /* others may still use its old name */
    if (self)
        tell_freed(span, block, false, pc);
    tell_taken(self, block, usable, pc);
    if (escaped && rf_escape_leaves && self)
        rf_escape_gone(self, block, usable);
}

static bool resize_in_place(struct rf_self *self, struct rf_span *span, uint64_t *side, uintptr_t *block, size_t size,
                            uintptr_t pc)
{
    size_t room = size + rf_heap_apart;
    if (size > (size_t)PTRDIFF_MAX - RF_SEGMENT)
        return false;
    if (room <= RF_HEAP_SMALL ? !span->block || rf_class_of(room) != span->class
                              : span->block || (!span->units && room <= RF_HEAP_MEDIUM))
        return false;
    if (span->block) {
        tell_resized(self, span, *block, pc);
    } else if (span->units) {
        size_t length = (room + RF_PAGE - 1) & ~(RF_PAGE - 1);
        if (length > span->units * RF_UNIT || length <= (span->units - 1u) * RF_UNIT)
            return false;
        __atomic_store_n(&span->length, length, __ATOMIC_RELAXED);
        tell_resized(self, span, *block, pc);
    } else {
        if (rf_heap_mine(&rf_arenas[span->arena].pages))
            return false;
        if (self)
            tell_freed(span, *block, false, pc);
        rf_range_return(*block, span->length);
        bool done = rf_large_resize(&rf_arenas[span->arena], span, room);
        tell_taken(self, span->base, span->length, pc);
        if (!done)
            return false;
        *block = span->base;
    }
    span->size = size; /* of a single block; else nobody reads it */
    size_t usable = span->block ? span->block : span->length;
    __atomic_store_n(side, taken_side(self, usable, size, span->block ? span->block - size : 0, pc), __ATOMIC_RELEASE);
    return true;
}

void *rf_heap_resize(void *address, size_t size, uintptr_t pc)
{
    struct rf_self *self = teller();
    uint64_t *side;
    struct rf_span *span = checked(address, &side, "realloc");
    uintptr_t block = (uintptr_t)address;
    if (__builtin_expect(rf_fresh_blocks != NULL, 0))
        rf_escape_not_fresh(block);
    if (resize_in_place(self, span, side, &block, size, pc))
        return (void *)block;
    size_t was = span->block ? span->block : span->length; /* malloc_usable_size() let the program use all of it */
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
    return (span->block ? span->block : span->length) - rf_heap_apart;
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
    block->usable = span.block ? span.block : span.length;
    return true;
}

void rf_heap_thread_end(struct rf_self *self)
{
    rf_cache_end(self);
}
