/* What no thread's cache has: spans of each class, and spans of one block.
 *
 * A signal handler may interrupt its own thread anywhere in here and allocate and free itself. It never waits for a lock that its
 * own thread holds: it allocates in another arena; and what it frees in an arena that is locked by its own thread waits in
 * `pending`, linked through the blocks, for whoever comes there next. (Pushing is a compare-and-swap, taking is one exchange of the
 * whole list, so there is no ABA.)
 */
#include "guest/heap.h"
#include "guest/heap_spans.h"
#include "guest/self.h"

static bool usable(const struct rf_arena *arena, unsigned class)
{
    return !rf_heap_mine(&arena->pages) && (class >= RF_HEAP_CLASSES || !rf_heap_mine(&arena->central[class].lock));
}

bool rf_heap_spread;

static struct rf_arena *choose_arena(unsigned class)
{
    unsigned first = rf_heap_spread && rf_hot.self ? rf_hot.self->number : 0;
    for (unsigned i = 0; i < RF_ARENAS; i++)
        if (usable(&rf_arenas[(first + i) % RF_ARENAS], class))
            return &rf_arenas[(first + i) % RF_ARENAS];
    return NULL; /* handlers in handlers in handlers */
}

static void wait_pending(struct rf_arena *arena, uintptr_t block)
{
    rf_not_fresh(rf_span_of(block), block);
    void *head = __atomic_load_n(&arena->pending, __ATOMIC_RELAXED);
    do
        *(void **)block = head;
    while (!__atomic_compare_exchange_n(&arena->pending, &head, (void *)block, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void drain(struct rf_arena *arena)
{
    if (__builtin_expect(!__atomic_load_n(&arena->pending, __ATOMIC_RELAXED), 1))
        return;
    void *block = __atomic_exchange_n(&arena->pending, NULL, __ATOMIC_ACQUIRE);
    while (block) {
        void *next = *(void **)block;
        struct rf_span *span = rf_span_of((uintptr_t)block);
        uintptr_t one = (uintptr_t)block;
        if (span->block)
            rf_central_give(&one, 1);
        else
            rf_single_give(span);
        block = next;
    }
}

/* Blocks, then the bits that say which are free, then the sides. */
static void lay_out(struct rf_span *span, unsigned class, bool zero)
{
    size_t block = rf_class_size(class), bytes = span->units * RF_UNIT, count = (bytes - 8) * 8 / (block * 8 + 65);
    span->class = (uint8_t) class;
    span->block = (uint32_t)block;
    span->reciprocal = (((uint64_t)1 << 40) + block - 1) / block;
    span->count = (uint32_t)count;
    span->side = (uint64_t *)(span->base + bytes) - count;
    span->free = span->side - (count + 63) / 64;
    for (size_t i = 0; i < count; i += 64)
        span->free[i / 64] = count - i < 64 ? ((uint64_t)1 << (count - i)) - 1 : ~(uint64_t)0;
    for (size_t i = 0; !zero && i < count; i++)
        span->side[i] = RF_SIDE_STALE;
    __atomic_store_n(&span->length, count * block, __ATOMIC_RELEASE);
}

static void link_span(struct rf_central *central, struct rf_span *span)
{
    span->previous = NULL;
    span->next = central->spans;
    if (span->next)
        span->next->previous = span;
    central->spans = span;
}

static void unlink_span(struct rf_central *central, struct rf_span *span)
{
    *(span->previous ? &span->previous->next : &central->spans) = span->next;
    if (span->next)
        span->next->previous = span->previous;
}

/* Lowest addresses first: pages fill up before new ones are touched. */
static unsigned take_blocks(struct rf_span *span, uintptr_t *out, unsigned want)
{
    unsigned got = 0, word = span->hint, words = (span->count + 63) / 64;
    while (got < want && word < words) {
        uint64_t bits = span->free[word];
        if (!bits) {
            word++;
            continue;
        }
        out[got++] = span->base + (uintptr_t)(word * 64 + (unsigned)__builtin_ctzll(bits)) * span->block;
        span->free[word] = bits & (bits - 1);
    }
    span->hint = word;
    span->used += got;
    return got;
}

unsigned rf_central_take(unsigned class, uintptr_t *out, unsigned want)
{
    struct rf_arena *arena = choose_arena(class);
    if (!arena)
        return 0;
    drain(arena);
    struct rf_central *central = &arena->central[class];
    unsigned got = 0;
    rf_heap_lock(&central->lock);
    while (got < want) {
        struct rf_span *span = central->spans;
        if (!span) {
            bool zero;
            if (got || !(span = rf_run_take(arena, rf_class_size(class) <= RF_UNIT / 8 ? 1 : 4, &zero)))
                break; /* a new span is only begun if there is nothing else */
            lay_out(span, class, zero);
            link_span(central, span);
        }
        got += take_blocks(span, out + got, want - got);
        if (span->used == span->count)
            unlink_span(central, span);
    }
    rf_heap_unlock(&central->lock);
    return got;
}

/* Under the class's lock. The last span of a small class stays even if it is empty: laying out its many sides takes long. */
static void give_block(struct rf_arena *arena, struct rf_central *central, struct rf_span *span, uintptr_t block)
{
    uint32_t index = rf_index_in(span, block);
    span->free[index / 64] |= (uint64_t)1 << index % 64;
    if (index / 64 < span->hint)
        span->hint = index / 64;
    if (span->used-- == span->count)
        link_span(central, span);
    if (!span->used && (span->class >= 16 || span->next || span->previous)) {
        unlink_span(central, span);
        rf_run_give(arena, span);
    }
}

void rf_central_give(const uintptr_t *blocks, unsigned count)
{
    struct rf_central *held = NULL;
    struct rf_arena *arena = NULL;
    for (unsigned i = 0; i < count; i++) {
        struct rf_span *span = rf_span_in_segment(blocks[i]);
        arena = &rf_arenas[span->arena];
        struct rf_central *central = &arena->central[span->class];
        if (held != central) {
            if (held)
                rf_heap_unlock(&held->lock);
            held = NULL;
            if (!usable(arena, span->class)) {
                wait_pending(arena, blocks[i]);
                continue;
            }
            rf_heap_lock(&central->lock);
            held = central;
        }
        give_block(arena, central, span, blocks[i]);
    }
    if (held)
        rf_heap_unlock(&held->lock);
    if (arena && rf_heap_too_dirty(arena) && !rf_heap_mine(&arena->pages))
        rf_heap_purge(arena, false);
}

struct rf_span *rf_single_take(size_t size, size_t align)
{
    struct rf_arena *arena = choose_arena(RF_HEAP_CLASSES);
    if (!arena)
        return NULL;
    drain(arena);
    struct rf_span *span;
    if (size > RF_HEAP_MEDIUM || align > RF_UNIT) {
        span = rf_large_take(arena, size, align);
    } else {
        bool zero;
        span = rf_run_take(arena, (unsigned)((size + RF_UNIT - 1) / RF_UNIT), &zero);
        if (span) {
            span->zero = zero;
            span->class = RF_HEAP_CLASSES;
            span->side = &span->one;
            __atomic_store_n(&span->length, (size + RF_PAGE - 1) & ~(RF_PAGE - 1), __ATOMIC_RELEASE);
        }
    }
    return span;
}

void rf_single_give(struct rf_span *span)
{
    struct rf_arena *arena = &rf_arenas[span->arena];
    if (!usable(arena, RF_HEAP_CLASSES)) {
        wait_pending(arena, span->base);
        return;
    }
    if (span->units)
        rf_run_give(arena, span);
    else
        rf_large_give(arena, span);
    if (rf_heap_too_dirty(arena))
        rf_heap_purge(arena, false);
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
        for (unsigned class = 0; class < RF_HEAP_CLASSES; class ++)
            hold(&rf_arenas[i].central[class].lock);
        hold(&rf_arenas[i].pages);
    }
}

void rf_heap_fork_after(bool child)
{
    (void)child; /* the same in both: the locks' owner is the thread that forked */
    for (unsigned i = 0; i < RF_ARENAS; i++) {
        let_go(&rf_arenas[i].pages);
        for (unsigned class = 0; class < RF_HEAP_CLASSES; class ++)
            let_go(&rf_arenas[i].central[class].lock);
    }
}
