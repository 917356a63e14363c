/* The memory of metadata, in huge pages where the system has them: cells are accessed at random, and with pages of four kilobytes there
 * would be more translations than a core remembers.
 *
 * 1. Pieces of PIECE bytes, which is what core/memory.h asks for most of the time, are cut from regions. A piece that is given back is
 *    kept for the next replay, and cleared when it is taken again: regions are never unmapped. Other sizes are libc's, or maps of their own.
 * 2. The first region has small pages, of which those come that are touched: a small analysis stays small.
 * 3. `lock` guards everything here: a piece is rarely asked for, and lasts long.
 */
#include "replay/pieces.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/memory.h"

#define PIECE (RF_PIECE + sizeof(struct rf_piece))
#define HUGE_PAGE ((size_t)2 << 20)
#define FIRST_REGION (4 * PIECE)
#define REGION (4 * HUGE_PAGE)
#define LARGE HUGE_PAGE /* from here on a map of its own */
_Static_assert(PIECE % 16 == 0, "pieces are aligned to 16");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *next, *end; /* of the last region: what was never taken */
static unsigned regions; /* how many there are */
static void *kept;       /* pieces that were given back; each begins with the address of the one before */

static char *map(size_t bytes)
{
    char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* Begins at a huge page; what is mapped around it is address space and nothing else. */
static bool map_region(void)
{
    size_t bytes = regions ? REGION : FIRST_REGION;
    char *mapped = map(bytes + HUGE_PAGE);
    if (!mapped)
        return false;
    next = mapped + -(uintptr_t)mapped % HUGE_PAGE;
    end = next + bytes;
    if (regions++)
        madvise(next, bytes, MADV_HUGEPAGE); /* if not, all is only slower */
    return true;
}

static void *take_piece(void)
{
    char *piece = kept;
    if (piece) {
        memcpy(&kept, piece, sizeof kept);
        memset(piece, 0, PIECE);
        return piece;
    }
    if ((size_t)(end - next) < PIECE && !map_region())
        return NULL;
    piece = next;
    next += PIECE;
    return piece;
}

void *rf_pieces_take(size_t bytes)
{
    void *piece;
    if (bytes == PIECE) {
        pthread_mutex_lock(&lock);
        piece = take_piece();
        pthread_mutex_unlock(&lock);
    } else if (bytes < LARGE) {
        piece = calloc(1, bytes);
    } else {
        piece = map(bytes);
        if (piece)
            madvise(piece, bytes, MADV_HUGEPAGE);
    }
    if (!piece) {
        fprintf(stderr, "redflag: out of memory: %zu more bytes are needed for metadata\n", bytes);
        exit(2);
    }
    return piece;
}

void rf_pieces_give_back(void *piece, size_t bytes)
{
    if (bytes == PIECE) {
        pthread_mutex_lock(&lock);
        memcpy(piece, &kept, sizeof kept);
        kept = piece;
        pthread_mutex_unlock(&lock);
    } else if (bytes < LARGE) {
        free(piece);
    } else {
        munmap(piece, bytes);
    }
}
