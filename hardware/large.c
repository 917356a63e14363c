/* See hardware/large.h. */
#include "hardware/large.h"

#include <sys/mman.h>

#include "trace/grow.h"

#define PAGE ((size_t)2 << 20)
#define CHUNK ((size_t)32 << 20) /* what pieces are cut from; what was never touched takes no memory */
#define LINE ((size_t)64)

static struct {
    char *next, *end;
    void *free; /* pieces that were given back: each has the address of the next */
} pieces;

/* Begins at a large page, so that all of it may be in such pages. */
static void *map(size_t bytes)
{
    char *all = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    rf_check_memory(all == MAP_FAILED ? NULL : all, bytes);
    char *begin = all + (PAGE - (uintptr_t)all % PAGE) % PAGE, *end = begin + bytes;
    if (begin > all)
        munmap(all, (size_t)(begin - all));
    if (end < all + bytes + PAGE)
        munmap(end, (size_t)(all + bytes + PAGE - end));
    madvise(begin, bytes, MADV_HUGEPAGE); /* a system without large pages does without */
    return begin;
}

static size_t pages_of(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

static size_t lines_of(size_t bytes)
{
    return (bytes + LINE - 1) & ~(LINE - 1);
}

static void *take_piece(void)
{
    size_t bytes = lines_of(RF_LARGE_PIECE);
    void *piece = pieces.free;
    if (piece) {
        memcpy(&pieces.free, piece, sizeof piece);
        return memset(piece, 0, RF_LARGE_PIECE);
    }
    if ((size_t)(pieces.end - pieces.next) < bytes) {
        pieces.next = map(CHUNK);
        pieces.end = pieces.next + CHUNK;
    }
    piece = pieces.next;
    pieces.next += bytes;
    return piece;
}

void *rf_large_take(size_t bytes)
{
    if (bytes == RF_LARGE_PIECE)
        return take_piece();
    if (bytes >= RF_LARGE_MAP)
        return map(pages_of(bytes));
    return memset(rf_check_memory(aligned_alloc(LINE, lines_of(bytes)), bytes), 0, bytes);
}

void rf_large_give(void *memory, size_t bytes)
{
    if (bytes == RF_LARGE_PIECE) {
        memcpy(memory, &pieces.free, sizeof(void *));
        pieces.free = memory;
    } else if (bytes >= RF_LARGE_MAP) {
        munmap(memory, pages_of(bytes));
    } else {
        free(memory);
    }
}
