/* Segments, runs of units in them, large mappings; and how memory goes back to the kernel.
 *
 * 1. What is freed stays as it is, history and all, while it is young: a late access to it is still seen. Once more than
 *    RF_DIRTY + a part of what is in use is free, all that is older than half of that amount goes.
 * 2. Segments are never unmapped: their pages go back, their addresses stay. Large mappings are unmapped.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest/access.h"
#include "guest/heap.h"
#include "guest/heap_spans.h"

#define RF_DIRTY ((size_t)1 << 20)
#define RF_DIRTY_SHARE 16 /* one part in so many of what is in use */

struct rf_arena rf_arenas[RF_ARENAS];
uintptr_t *rf_heap_table[1 << RF_ROOT];

static uintptr_t map(uintptr_t hint, size_t bytes, int protection)
{
    long at = RF_SYSCALL(SYS_mmap, hint, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at < 0 && at > -4096 ? 0 : (uintptr_t)at;
}

static void unmap(uintptr_t at, size_t bytes)
{
    if (bytes)
        RF_SYSCALL(SYS_munmap, at, bytes);
}

/* `bytes` (whole pages) at a multiple of `align`. The kernel likes to go on where it mapped last: often one call is enough. */
static uintptr_t map_aligned(size_t bytes, size_t align, int protection)
{
    static uintptr_t last; /* only a guess: any value will do */
    uintptr_t guess = __atomic_load_n(&last, __ATOMIC_RELAXED);
    guess = guess > bytes + align ? (guess - bytes) & ~(align - 1) : 0;
    uintptr_t at = map(guess, bytes, protection);
    if (at & (align - 1)) {
        unmap(at, bytes);
        if (bytes + align < bytes || !(at = map(0, bytes + align, protection)))
            return 0;
        uintptr_t aligned = (at + align - 1) & ~(align - 1);
        unmap(at, aligned - at);
        unmap(aligned + bytes, at + align - aligned);
        at = aligned;
    }
    if (at)
        __atomic_store_n(&last, at, __ATOMIC_RELAXED);
    return at;
}

/* All segments that [at, at + bytes) touches become `entry`. False: no memory for the table, nothing has changed. */
static bool enter(uintptr_t at, size_t bytes, uintptr_t entry)
{
    uintptr_t number = at / RF_SEGMENT, end = (at + bytes - 1) / RF_SEGMENT + 1;
    for (uintptr_t n = number >> RF_LEAF; n <= (end - 1) >> RF_LEAF; n++) {
        if (__atomic_load_n(&rf_heap_table[n], __ATOMIC_ACQUIRE))
            continue;
        uintptr_t *none = NULL, *leaf = (uintptr_t *)map(0, sizeof *leaf << RF_LEAF, PROT_READ | PROT_WRITE);
        if (!leaf)
            return false;
        if (!__atomic_compare_exchange_n(&rf_heap_table[n], &none, leaf, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            unmap((uintptr_t)leaf, sizeof *leaf << RF_LEAF); /* another arena was faster */
    }
    for (; number < end; number++)
        __atomic_store_n(&rf_heap_table[number >> RF_LEAF][number & ((1u << RF_LEAF) - 1)], entry, __ATOMIC_RELEASE);
    return true;
}

/* The opposite: never allocates, so it cannot fail. */
static void leave(uintptr_t at, size_t bytes)
{
    for (uintptr_t number = at / RF_SEGMENT, end = (at + bytes - 1) / RF_SEGMENT + 1; number < end; number++) {
        uintptr_t *leaf = __atomic_load_n(&rf_heap_table[number >> RF_LEAF], __ATOMIC_ACQUIRE);
        if (leaf)
            __atomic_store_n(&leaf[number & ((1u << RF_LEAF) - 1)], 0, __ATOMIC_RELEASE);
    }
}

static bool huge; /* set before there are threads */

void rf_heap_huge_pages(void)
{
    huge = true;
    for (unsigned i = 0; i < RF_ARENAS; i++)
        for (struct rf_segment *segment = rf_arenas[i].segments; segment; segment = segment->next)
            RF_SYSCALL(SYS_madvise, segment, RF_SEGMENT, MADV_HUGEPAGE);
}

static struct rf_segment *make_segment(struct rf_arena *arena)
{
    uintptr_t at = map_aligned(RF_SEGMENT, RF_SEGMENT, PROT_READ | PROT_WRITE);
    if (!at)
        return NULL;
    /* Small blocks fill pages one by one; a huge page for the first of them would all be resident. */
    RF_SYSCALL(SYS_madvise, at, RF_SEGMENT, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    struct rf_segment *segment = (struct rf_segment *)at;
    segment->free = ~(uint64_t)1;
    segment->number = arena->count;
    segment->arena = (uint32_t)(arena - rf_arenas);
    if (!enter(at, RF_SEGMENT, at)) {
        unmap(at, RF_SEGMENT);
        return NULL;
    }
    arena->count++;
    __atomic_store_n(arena->last ? &arena->last->next : &arena->segments, segment, __ATOMIC_RELEASE);
    return arena->last = segment;
}

static uint64_t run_mask(unsigned first, unsigned units)
{
    return (units == 64 ? ~(uint64_t)0 : ((uint64_t)1 << units) - 1) << first;
}

/* The first of `units` free units in a row, 0 if there is none (unit 0 is never free). */
static unsigned find_run(uint64_t free, unsigned units)
{
    for (unsigned have = 1; have < units;) { /* a bit stands for `have` free units from there on */
        unsigned step = units - have < have ? units - have : have;
        free &= free >> step;
        have += step;
    }
    return free ? (unsigned)__builtin_ctzll(free) : 0;
}

/* The units of `run` belong to no span any more: not the rest of the spans that it cuts either. */
static void forget_spans(struct rf_segment *segment, uint64_t run)
{
    for (; run; run &= run - 1) {
        unsigned first = segment->first[__builtin_ctzll(run)];
        for (unsigned u = first; first && u < first + segment->span[first].units; u++)
            __atomic_store_n(&segment->first[u], 0, __ATOMIC_RELAXED);
    }
}

struct rf_span *rf_run_take(struct rf_arena *arena, unsigned units, bool *zero)
{
    rf_heap_lock(&arena->pages);
    struct rf_segment *segment = arena->cursor ? arena->cursor : arena->segments;
    unsigned first = 0;
    while (segment && !segment->free && segment->next)
        segment = segment->next;
    arena->cursor = segment;
    for (; segment && !(first = find_run(segment->free, units)); segment = segment->next)
        ;
    struct rf_span *span = NULL;
    if (first || (segment = make_segment(arena))) {
        if (!first)
            first = 1;
        uint64_t run = run_mask(first, units);
        *zero = !(segment->dirty & run);
        forget_spans(segment, segment->dirty & run);
        arena->dirty -= (size_t)__builtin_popcountll(segment->dirty & run) * RF_UNIT;
        arena->in_use += units * RF_UNIT;
        segment->free &= ~run;
        segment->dirty &= ~run;
        span = &segment->span[first];
        *span = (struct rf_span){ .units = (uint8_t)units, .arena = (uint8_t)segment->arena };
        __atomic_store_n(&span->base, (uintptr_t)segment + first * RF_UNIT, __ATOMIC_RELEASE);
        for (unsigned u = first; u < first + units; u++)
            __atomic_store_n(&segment->first[u], first, __ATOMIC_RELAXED);
    }
    rf_heap_unlock(&arena->pages);
    return span;
}

void rf_run_give(struct rf_arena *arena, struct rf_span *span)
{
    struct rf_segment *segment = (struct rf_segment *)((uintptr_t)span & ~(RF_SEGMENT - 1));
    uint64_t run = run_mask((unsigned)(span - segment->span), span->units);
    rf_heap_lock(&arena->pages);
    segment->free |= run;
    segment->dirty |= run;
    if (arena->cursor && segment->number < arena->cursor->number)
        arena->cursor = segment;
    span->stamp = arena->clock;
    arena->clock += span->units;
    arena->in_use -= span->units * RF_UNIT;
    arena->dirty += span->units * RF_UNIT;
    rf_heap_unlock(&arena->pages);
}

static size_t whole_pages(size_t size)
{
    return (size + RF_PAGE - 1) & ~(RF_PAGE - 1);
}

/* Under `pages`. */
static struct rf_span *take_descriptor(struct rf_arena *arena)
{
    if (!arena->spare) {
        size_t bytes = 4 * RF_PAGE;
        struct rf_span *spans = (struct rf_span *)map(0, bytes, PROT_READ | PROT_WRITE);
        for (size_t i = 0; spans && i < bytes / sizeof *spans; i++) {
            spans[i].next = arena->spare;
            arena->spare = &spans[i];
        }
    }
    struct rf_span *span = arena->spare;
    if (span)
        arena->spare = span->next;
    return span;
}

static void unlink_large(struct rf_arena *arena, struct rf_span *span)
{
    *(span->previous ? &span->previous->next : &arena->large) = span->next;
    if (span->next)
        span->next->previous = span->previous;
    arena->dirty -= span->length;
}

struct rf_span *rf_large_take(struct rf_arena *arena, size_t size, size_t align)
{
    size_t length = whole_pages(size);
    align = align < RF_SEGMENT ? RF_SEGMENT : align;
    rf_heap_lock(&arena->pages);
    struct rf_span *span = arena->large;
    while (span && (span->length < length || span->length - length > length / 8 || (span->base & (align - 1))))
        span = span->next;
    if (span) {
        unlink_large(arena, span);
        span->zero = false;
    } else if ((span = take_descriptor(arena))) {
        uintptr_t at = map_aligned(length, align, PROT_READ | PROT_WRITE);
        *span = (struct rf_span){ .arena = (uint8_t)(arena - rf_arenas), .zero = true, .side = &span->one };
        span->length = at ? length : 0;
        span->base = at;
        if (at && !enter(at, length, (uintptr_t)span | 1)) {
            unmap(at, length);
            at = 0;
        }
        if (!at) {
            span->length = 0;
            span->next = arena->spare;
            arena->spare = span;
            span = NULL;
        }
    }
    if (span)
        arena->in_use += span->length;
    rf_heap_unlock(&arena->pages);
    return span;
}

void rf_large_give(struct rf_arena *arena, struct rf_span *span)
{
    rf_heap_lock(&arena->pages);
    span->previous = NULL;
    span->next = arena->large;
    if (span->next)
        span->next->previous = span;
    arena->large = span;
    span->stamp = arena->clock;
    arena->clock += (uint32_t)(span->length / RF_UNIT);
    arena->in_use -= span->length;
    arena->dirty += span->length;
    rf_heap_unlock(&arena->pages);
}

bool rf_large_resize(struct rf_arena *arena, struct rf_span *span, size_t size)
{
    size_t length = whole_pages(size), before = span->length;
    uintptr_t base = span->base, to = base;
    bool done = true;
    rf_heap_lock(&arena->pages);
    if (length < before) {
        unmap(base + length, before - length);
        uintptr_t left = (base + length + RF_SEGMENT - 1) & ~(RF_SEGMENT - 1), end = base + before;
        if (left < end)
            leave(left, end - left);
    } else if (length > before) {
        if (RF_SYSCALL(SYS_mremap, base, before, length, 0) == (long)base) {
            done = enter(base, length, (uintptr_t)span | 1);
            if (!done)
                unmap(base + before, length - before);
        } else {
            to = map_aligned(length, RF_SEGMENT, PROT_NONE); /* only addresses: the pages move there */
            done = to && enter(to, length, (uintptr_t)span | 1) &&
                   RF_SYSCALL(SYS_mremap, base, before, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (long)to;
            if (done) {
                leave(base, before);
            } else if (to) {
                leave(to, length);
                unmap(to, length);
            }
        }
    }
    if (done) {
        __atomic_store_n(&span->base, to, __ATOMIC_RELAXED);
        __atomic_store_n(&span->length, length, __ATOMIC_RELAXED);
        arena->in_use += length - before;
    }
    rf_heap_unlock(&arena->pages);
    return done;
}

static size_t limit_of(const struct rf_arena *arena)
{
    return RF_DIRTY + __atomic_load_n(&arena->in_use, __ATOMIC_RELAXED) / RF_DIRTY_SHARE;
}

bool rf_heap_too_dirty(const struct rf_arena *arena)
{
    return __atomic_load_n(&arena->dirty, __ATOMIC_RELAXED) > limit_of(arena);
}

/* Under `pages`: the dirty units that are old enough, taken out of what is free. */
static uint64_t take_old(struct rf_arena *arena, struct rf_segment *segment, uint32_t age)
{
    uint64_t old = 0;
    for (uint64_t dirty = segment->dirty; dirty; dirty &= dirty - 1) {
        unsigned unit = (unsigned)__builtin_ctzll(dirty), first = segment->first[unit];
        if (!first || arena->clock - segment->span[first].stamp >= age)
            old |= (uint64_t)1 << unit;
    }
    forget_spans(segment, old);
    segment->free &= ~old;
    segment->dirty &= ~old;
    arena->dirty -= (size_t)__builtin_popcountll(old) * RF_UNIT;
    return old;
}

static size_t purge_segment(struct rf_arena *arena, struct rf_segment *segment, uint32_t age)
{
    rf_heap_lock(&arena->pages);
    uint64_t old = take_old(arena, segment, age);
    rf_heap_unlock(&arena->pages);
    for (uint64_t rest = old; rest;) {
        unsigned first = (unsigned)__builtin_ctzll(rest);
        uint64_t from = ~(rest >> first); /* units in a row go together */
        unsigned units = from ? (unsigned)__builtin_ctzll(from) : 64 - first;
        uintptr_t at = (uintptr_t)segment + first * RF_UNIT;
        rf_range_return(at, units * RF_UNIT);
        RF_SYSCALL(SYS_madvise, at, units * RF_UNIT, MADV_DONTNEED);
        rest &= ~run_mask(first, units);
    }
    if (old) {
        rf_heap_lock(&arena->pages);
        segment->free |= old;
        if (arena->cursor && segment->number < arena->cursor->number)
            arena->cursor = segment;
        rf_heap_unlock(&arena->pages);
    }
    return (size_t)__builtin_popcountll(old) * RF_UNIT;
}

static size_t purge_large(struct rf_arena *arena, uint32_t age)
{
    size_t bytes = 0;
    for (;;) {
        rf_heap_lock(&arena->pages);
        struct rf_span *span = arena->large;
        while (span && arena->clock - span->stamp < age)
            span = span->next;
        if (span) {
            unlink_large(arena, span);
            leave(span->base, span->length);
        }
        rf_heap_unlock(&arena->pages);
        if (!span)
            return bytes;
        bytes += span->length;
        rf_range_return(span->base, span->length);
        unmap(span->base, span->length);
        __atomic_store_n(&span->length, 0, __ATOMIC_RELAXED);
        rf_heap_lock(&arena->pages);
        span->next = arena->spare;
        arena->spare = span;
        rf_heap_unlock(&arena->pages);
    }
}

size_t rf_heap_purge(struct rf_arena *arena, bool all)
{
    uint32_t age = all ? 0 : (uint32_t)(limit_of(arena) / RF_UNIT / 2);
    size_t bytes = purge_large(arena, age);
    rf_heap_lock(&arena->pages);
    struct rf_segment *segment = arena->segments;
    rf_heap_unlock(&arena->pages);
    for (; segment; segment = __atomic_load_n(&segment->next, __ATOMIC_ACQUIRE))
        if (__atomic_load_n(&segment->dirty, __ATOMIC_RELAXED))
            bytes += purge_segment(arena, segment, age);
    return bytes;
}
