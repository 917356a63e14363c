/* The heap of the program under test: our own allocator, so that an address tells its block and a block its origin. */
#ifndef RF_GUEST_HEAP_H
#define RF_GUEST_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rf_self;

struct rf_block {
    uintptr_t addr;
    size_t size;     /* as asked for */
    uint32_t note;   /* where it was allocated, and by whom: */
    uint32_t thread; /* the number of the thread */
    bool freed;      /* then note and thread are those of the free */
    size_t usable;   /* what it has, at least as much as was asked for */
};
/* The block that holds this address. No lock: what it says of a block that is just being freed may be a moment old. */
bool rf_heap_block(uintptr_t addr, struct rf_block *block);

/* Bytes that every block has behind what was asked for: 1 if the address behind its end must not be that of another block. Set before
 * there are threads; blocks that are older have none. */
extern size_t rf_heap_apart;

/* For others in the guest that stand for the program: open_memstream and the like. `align` is a power of two, or 0. NULL: no
 * memory; errno is the caller's to set. */
void *rf_heap_allocate(size_t size, size_t align, bool zero, uintptr_t pc);
void *rf_heap_quick(struct rf_self *self, size_t size, uintptr_t pc); /* the same for malloc; `self` as rf_enter() says */
void rf_heap_release(void *block, uintptr_t pc); /* of what is no allocated block: ends the program, as glibc's free does */
void *rf_heap_resize(void *block, size_t size, uintptr_t pc); /* NULL: no memory, the block is as before */
size_t rf_heap_usable(void *block);                           /* what it has, at least as much as was asked for */
size_t rf_heap_trim(void); /* gives all that is free back to the kernel; how much it was */
/* From now on blocks lie in huge pages, where the kernel has them: faster, and up to 2 MB more is resident. There is one thread. */
void rf_heap_huge_pages(void);
/* Threads take new blocks from different arenas, as far as there are enough, so that blocks of two threads, and what is known of them, do not
 * lie side by side in one line of the cache; it takes more pages. Set while there is one thread. */
extern bool rf_heap_spread;
void rf_heap_totals(size_t *in_use, size_t *free);
void rf_heap_thread_end(struct rf_self *self);
/* fork: all of its locks are held around it, and free in the child. */
void rf_heap_fork_before(void);
void rf_heap_fork_after(bool child);

#endif
