/* The guest's own memory: never libc's. */
#ifndef RF_GUEST_MEMORY_H
#define RF_GUEST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/memory.h"

void *rf_pages(size_t bytes);                  /* zeroed pages from the kernel; ends the program with one line if there are none */
void *rf_reserve(size_t bytes);                /* addresses; pages come when they are touched. NULL if the kernel refuses */
void rf_pages_back(void *pages, size_t bytes); /* unmap */

/* Small blocks that live long or pass between threads: a lock of its own inside, size classes. Zeroed. */
void *rf_take(size_t bytes);
void rf_give(void *block, size_t bytes);

/* For struct rf_memory of a thread: pieces()/give_back() callbacks over rf_take(). */
void rf_memory_begin(struct rf_memory *memory);
void rf_memory_donate(struct rf_memory *memory); /* the thread ends: all it had goes back */

uint64_t rf_guest_bytes(void); /* what the guest has in use, words not counted */

/* fork: a thread that is just becoming known takes blocks without being busy. */
void rf_memory_fork_before(void);
void rf_memory_fork_after(void);

#endif
