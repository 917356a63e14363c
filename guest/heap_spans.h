/* The heap from below: segments, spans and blocks. Only heap*.c include this.
 *
 *   segment  4 MB at a multiple of 4 MB, cut into 64 units of 64 KB; the first holds its header.
 *   span     a run of units with blocks of one size class, or with one block; or a mapping of its own for one large block.
 *   side     8 bytes for each block: who allocated or freed it, and where. They lie behind the blocks of the span, so that blocks
 *            are aligned like their size and untouched blocks have untouched sides.
 *
 * 1. An address finds its span through a table of segments that only grows; leaves, headers and descriptors of spans are never
 *    unmapped. So lookups take no lock and touch only memory that is there. While a span changes its use, who looks up an address
 *    of it without owning a block there may see either use, or a mixture: he checks that what he reads lies in the segment.
 * 2. The owner of an allocated block needs no care: its span cannot change, and was written before the block was handed out.
 * 3. A free block's memory is never used for lists: a program that writes to what it has freed spoils only its own data.
 *    (One exception: a free inside a signal handler that interrupted the heap, see heap.c.)
 * 4. Order of locks: a class's, then its arena's `pages`. No lock is held while the detector is told anything.
 */
#ifndef RF_GUEST_HEAP_SPANS_H
#define RF_GUEST_HEAP_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/hot.h"
#include "guest/system.h"

#define RF_SEGMENT ((uintptr_t)1 << 22)
#define RF_UNIT ((uintptr_t)1 << 16)
#define RF_UNITS 64u
#define RF_PAGE ((uintptr_t)4096)
#define RF_HEAP_SMALL ((size_t)32 << 10) /* up to here: size classes */
#define RF_HEAP_MEDIUM ((size_t)1 << 20) /* up to here: a span of a segment; above: a mapping of its own */
#define RF_HEAP_CLASSES 72u
#define RF_ARENAS 3u
#define RF_LEAF 13 /* bits of a segment's number that a leaf of the table resolves */
#define RF_ROOT 12 /* ... and its root: 47 bits of address in all */

/* A side, from the bottom: note 32, state 2, wide 1, and then slack 13 and thread 16, or, if wide, thread 29. The slack is what the
 * block has more than was asked for; of a wide side the note knows the size. */
enum rf_side_state {
    RF_SIDE_FRESH, /* never used, and zero: all of the side is 0 then */
    RF_SIDE_TAKEN,
    RF_SIDE_FREED, /* note and thread are those of the free */
    RF_SIDE_OLD    /* never used since the span was laid out, but not zero */
};
#define RF_SIDE_STALE ((uint64_t)RF_SIDE_OLD << 32)
#define RF_SIDE_SLACK ((uint64_t)0x1fff << 35)

struct rf_span {
    uintptr_t base;      /* the first block; 0: none */
    size_t length;       /* of all blocks together */
    uint64_t reciprocal; /* 2^40 / block, rounded up: exact for offsets in a span */
    uint32_t block;      /* size of a block of a class; 0: the span is one block */
    uint64_t *side;      /* one for each block; &one for a single block */
    uint64_t *free;      /* one bit for each block of a class: nobody has it. Under the class's lock */
    uint64_t one;
    size_t size;                /* a single block: as asked for */
    uint32_t count, used, hint; /* blocks, blocks taken, first word of `free` that may have a bit. Under the class's lock */
    uint32_t stamp;             /* when it was freed as a whole: arena->clock then */
    uint8_t units, arena, class;
    bool zero;                       /* a single block: its memory is as the kernel gave it */
    struct rf_span *next, *previous; /* in the list of its class; of large free ones. Under the lock of the list */
};

struct rf_segment {
    uint64_t free, dirty; /* a bit for each unit: in no span; and not zero. Under the arena's `pages` lock */
    uint32_t number;      /* segments are in the order they were made */
    uint32_t arena;
    struct rf_segment *next;
    uint8_t first[RF_UNITS]; /* the first unit of a unit's span; 0: none. Read without a lock */
    struct rf_span span[RF_UNITS];
};

/* The word is the address of its owner's thread pointer, so that a signal handler sees what its own thread holds. */
struct rf_heap_lock {
    uintptr_t owner;
};

struct rf_central {
    struct rf_heap_lock lock;
    struct rf_span *spans; /* that have free blocks */
} __attribute__((aligned(64)));

/* Arena 0 serves all; the others serve signal handlers that interrupted their own thread inside the heap. */
struct rf_arena {
    struct rf_central central[RF_HEAP_CLASSES];
    struct rf_heap_lock pages;                   /* over all that follows but `pending` */
    struct rf_segment *segments, *last, *cursor; /* segments before the cursor are full */
    struct rf_span *large;                       /* free mappings, newest first */
    struct rf_span *spare;                       /* descriptors for large blocks */
    size_t in_use,
        dirty;      /* bytes in spans; bytes free but not given back. `dirty` may be read without the lock, as a hint */
    uint32_t clock; /* advances by a unit for each unit freed: the age of what is dirty */
    uint32_t count; /* of segments */
    void *pending;  /* freed by handlers, linked through the blocks: pushed by anybody, taken all at once */
};

extern struct rf_arena rf_arenas[RF_ARENAS];
extern uintptr_t
    *rf_heap_table[1 << RF_ROOT]; /* [segment number]: address of the header; of a large block's rf_span, plus 1 */

static inline uintptr_t rf_heap_me(void)
{
    uintptr_t me;
    __asm__("mov %%fs:0, %0" : "=r"(me));
    return me;
}

/* Does this thread hold it, below us, in code that a signal has interrupted? */
static inline bool rf_heap_mine(const struct rf_heap_lock *lock)
{
    return __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == rf_heap_me();
}

/* Odd: held for fork(). What runs in the forking thread then (handlers of pthread_atfork) finds all at rest and goes on. */
static inline void rf_heap_lock(struct rf_heap_lock *lock)
{
    uintptr_t me = rf_heap_me(), none = 0;
    for (unsigned turns = 0;
         !__atomic_compare_exchange_n(&lock->owner, &none, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
         none != (me | 1);
         turns++, none = 0) {
        if (turns > 64)
            rf_yield(); /* the owner may not be running */
        else
            __builtin_ia32_pause();
    }
}

static inline void rf_heap_unlock(struct rf_heap_lock *lock)
{
    if (rf_heap_mine(lock))
        __atomic_store_n(&lock->owner, 0, __ATOMIC_RELEASE);
}

static inline bool rf_heap_forking(void)
{
    return __atomic_load_n(&rf_arenas[0].pages.owner, __ATOMIC_RELAXED) == (rf_heap_me() | 1);
}

/* Classes: multiples of 16 up to 256, then eight to a power of two. */
static inline unsigned rf_class_of(size_t size)
{
    size_t last = size - (size != 0);
    unsigned shift = 60 - (unsigned)__builtin_clzll(last | 255);
    return (unsigned)(last >> shift) + (shift - 4) * 8;
}

static inline size_t rf_class_size(unsigned class)
{
    return class < 8 ? (class + 1) * 16 : (size_t)(9 + class % 8) << (3 + class / 8);
}

/* The span of an address that lies in some segment of spans. */
static inline struct rf_span *rf_span_in_segment(uintptr_t addr)
{
    struct rf_segment *segment = (struct rf_segment *)(addr & ~(RF_SEGMENT - 1));
    return &segment->span[segment->first[addr / RF_UNIT % RF_UNITS]];
}

/* The span of any address, NULL if it has none. */
static inline struct rf_span *rf_span_of(uintptr_t addr)
{
    uintptr_t number = addr / RF_SEGMENT;
    if (number >> (RF_ROOT + RF_LEAF))
        return NULL;
    uintptr_t *leaf = __atomic_load_n(&rf_heap_table[number >> RF_LEAF], __ATOMIC_ACQUIRE);
    uintptr_t entry = leaf ? __atomic_load_n(&leaf[number & ((1u << RF_LEAF) - 1)], __ATOMIC_ACQUIRE) : 0;
    if (!entry)
        return NULL;
    struct rf_span *span = entry & 1 ? (struct rf_span *)(entry - 1) : rf_span_in_segment(addr);
    return addr - span->base < span->length ? span : NULL; /* span[0] has length 0 */
}

static inline uint32_t rf_index_in(const struct rf_span *span, uintptr_t addr)
{
    return (uint32_t)((addr - span->base) * span->reciprocal >> 40); /* 0 for a single block: its reciprocal is 0 */
}

/* A free block that was never handed out is not zero any more. */
static inline void rf_not_fresh(struct rf_span *span, uintptr_t block)
{
    uint64_t *side = &span->side[rf_index_in(span, block)];
    if (!*side)
        *side = RF_SIDE_STALE;
}

/* heap_central.c: blocks of classes, all that no thread's cache has. `out` receives up to `want` blocks; how many is returned, 0: no
 * memory. Given back, the blocks may be of several classes and arenas. */
unsigned rf_central_take(unsigned class, uintptr_t *out, unsigned want);
void rf_central_give(const uintptr_t *blocks, unsigned count);
/* A span of one block. */
struct rf_span *rf_single_take(size_t size, size_t align);
void rf_single_give(struct rf_span *span);

/* heap_pages.c. Under the class's lock: a span of `units` units, its blocks not laid out; NULL: no memory. `zero` says whether it
 * was never used. */
struct rf_span *rf_run_take(struct rf_arena *arena, unsigned units, bool *zero);
void rf_run_give(struct rf_arena *arena, struct rf_span *span);
struct rf_span *rf_large_take(struct rf_arena *arena, size_t size, size_t align);
void rf_large_give(struct rf_arena *arena, struct rf_span *span);
/* To another size, in place or moved, with what it holds. False: nothing has changed. The history must be gone before: addresses
 * that the block leaves may at once be somebody else's. */
bool rf_large_resize(struct rf_arena *arena, struct rf_span *span, size_t size);
/* Gives back to the kernel what has been free for long; everything that is free if `all`. No lock may be held. Returns bytes. */
size_t rf_heap_purge(struct rf_arena *arena, bool all);
bool rf_heap_too_dirty(const struct rf_arena *arena);

#endif
