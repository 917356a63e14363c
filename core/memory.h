/* Where the engine's memory comes from: size classes over large pieces that the driver provides.
 *
 * 1. Memory is zero when it is handed out.
 * 2. The caller gives the size back with the block, so blocks have no headers.
 * 3. `bytes` counts what is in use, rounded to classes: it is the number that statistics print. `spare` is the part of it that
 *    pools keep ready and nobody has asked for yet: it is not metadata of anything.
 * 4. A struct rf_memory belongs to one thread; pieces() never returns NULL (the driver ends the run instead).
 * 5. Dozens of places of a detector allocate, few of them often: inlined in each, this would be half of its code, and of the time
 *    that its compiler takes.
 */
#ifndef RF_CORE_MEMORY_H
#define RF_CORE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RF_SMALL 512u /* up to here classes are multiples of 16; above, eight to a power of two */
#ifndef RF_PIECE
#define RF_PIECE (1u << 18) /* what is asked of the driver at a time */
#endif
#define RF_CLASSES (RF_SMALL / 16 + 1 + 8 * 8)

struct rf_memory {
    void *(*pieces)(size_t bytes); /* zeroed, aligned to 16 */
    void (*give_back)(void *piece, size_t bytes);
    size_t bytes, spare;
    char *next, *end;
    void *free[RF_CLASSES];
    struct rf_piece *taken; /* every piece, to give all back at the end */
};

struct rf_piece {
    struct rf_piece *next, *previous;
    size_t bytes;
    size_t pad;
};

/* The size of the class, and its number. */
static inline size_t rf_rounded(size_t size)
{
    if (size <= RF_SMALL)
        return size ? (size + 15) & ~(size_t)15 : 16;
    size_t step = (size_t)1 << (60 - __builtin_clzll(size - 1)); /* an eighth of the largest power of two below */
    return (size + step - 1) & ~(step - 1);
}

static inline unsigned rf_class(size_t rounded)
{
    if (rounded <= RF_SMALL)
        return (unsigned)(rounded / 16);
    unsigned shift = 60 - (unsigned)__builtin_clzll(rounded - 1);
    return RF_SMALL / 16 + (shift - 6) * 8 + (unsigned)(rounded >> shift) - 8; /* 512 has shift 6: 576 is its first */
}

static inline void *rf_take_piece(struct rf_memory *memory, size_t size)
{
    struct rf_piece *piece = memory->pieces(size + sizeof *piece);
    piece->bytes = size + sizeof *piece;
    piece->previous = NULL;
    piece->next = memory->taken;
    if (piece->next)
        piece->next->previous = piece;
    memory->taken = piece;
    return piece + 1;
}

static __attribute__((noinline, unused)) void *rf_alloc(struct rf_memory *memory, size_t size)
{
    size_t rounded = rf_rounded(size);
    memory->bytes += rounded;
    if (rounded > RF_PIECE / 2)
        return rf_take_piece(memory, rounded);
    unsigned class = rf_class(rounded);
    void *block = memory->free[class];
    if (block) {
        memcpy(&memory->free[class], block, sizeof(void *));
        memset(block, 0, rounded);
        return block;
    }
    if ((size_t)(memory->end - memory->next) < rounded) {
        memory->next = rf_take_piece(memory, RF_PIECE);
        memory->end = memory->next + RF_PIECE;
    }
    block = memory->next;
    memory->next += rounded;
    return block;
}

static __attribute__((noinline, unused)) void rf_free(struct rf_memory *memory, void *block, size_t size)
{
    if (!block)
        return;
    size_t rounded = rf_rounded(size);
    memory->bytes -= rounded;
    if (rounded > RF_PIECE / 2) {
        struct rf_piece *piece = (struct rf_piece *)block - 1;
        if (piece->next)
            piece->next->previous = piece->previous;
        if (piece->previous)
            piece->previous->next = piece->next;
        else
            memory->taken = piece->next;
        memory->give_back(piece, piece->bytes);
        return;
    }
    unsigned class = rf_class(rounded);
    memcpy(block, &memory->free[class], sizeof(void *));
    memory->free[class] = block;
}

static __attribute__((noinline, unused)) void *rf_grow_larger(struct rf_memory *memory, void *array, uint32_t *cap,
                                                              size_t need, size_t element)
{
    size_t wanted = *cap ? *cap : 4;
    while (wanted < need)
        wanted *= 2;
    void *larger = rf_alloc(memory, wanted * element);
    if (array)
        memcpy(larger, array, *cap * element);
    rf_free(memory, array, *cap * element);
    *cap = (uint32_t)wanted;
    return larger;
}

/* Grows an array to hold at least `need` elements; *cap is its capacity. The new part is zero. */
static inline void *rf_grow(struct rf_memory *memory, void *array, uint32_t *cap, size_t need, size_t element)
{
    return __builtin_expect(need <= *cap, 1) ? array : rf_grow_larger(memory, array, cap, need, element);
}

/* Gives everything back at once: how an engine ends. */
static inline void rf_memory_end(struct rf_memory *memory)
{
    for (struct rf_piece *piece = memory->taken, *next; piece; piece = next) {
        next = piece->next;
        memory->give_back(piece, piece->bytes);
    }
    memory->taken = NULL;
    memory->next = memory->end = NULL;
    memory->bytes = memory->spare = 0;
    memset(memory->free, 0, sizeof memory->free);
}

#endif
