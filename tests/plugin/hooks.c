/* Hooks that only write down, for each epoch, which bytes of the arena were checked, as read or as written, and in the end what was computed.
 * Two builds of one program say the same if both check the same bytes in every epoch. A write that is checked says all that a read would. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/plugin/arena.h"

enum { READ = 1, WRITTEN = 2 };
static uint8_t seen[ARENA_SIZE];
volatile int unknown;

static void check(const void *at, size_t size, int how)
{
    uintptr_t from = (uintptr_t)at - (uintptr_t)ARENA;
    for (size_t i = 0; i < size; i++)
        if (from + i < ARENA_SIZE)
            seen[from + i] |= (uint8_t)how;
}

static int level(size_t i)
{
    return i == ARENA_SIZE ? 0 : seen[i] & WRITTEN ? WRITTEN : seen[i];
}

void synchronise(void)
{
    for (size_t i = 0, from = 0; i <= ARENA_SIZE; i++)
        if (level(i) != level(from)) {
            if (level(from))
                printf("%s %zu-%zu\n", level(from) == WRITTEN ? "w" : "r", from, i - 1);
            from = i;
        }
    memset(seen, 0, sizeof seen);
    puts("--");
}

void say(uint64_t result)
{
    printf("%llx\n", (unsigned long long)result);
}

/* The runtime takes it for granted that what these are given is aligned. */
#define ALIGNED_HOOK(name, size, how)                                                                                       \
    void name(const void *at);                                                                                              \
    void name(const void *at)                                                                                               \
    {                                                                                                                       \
        if ((uintptr_t)at % ((size) < 8 ? (size) : 8))                                                                      \
            abort();                                                                                                        \
        check(at, size, how);                                                                                               \
    }
#define HOOK(name, size, how)                                                                                               \
    void name(const void *at);                                                                                              \
    void name(const void *at)                                                                                               \
    {                                                                                                                       \
        check(at, size, how);                                                                                               \
    }
#define HOOKS(size)                                                                                                         \
    ALIGNED_HOOK(__tsan_read##size, size, READ)                                                                             \
    ALIGNED_HOOK(__tsan_write##size, size, WRITTEN)                                                                         \
    HOOK(__tsan_unaligned_read##size, size, READ)                                                                           \
    HOOK(__tsan_unaligned_write##size, size, WRITTEN)                                                                       \
    HOOK(__tsan_volatile_read##size, size, READ)                                                                            \
    HOOK(__tsan_volatile_write##size, size, WRITTEN)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(const void *at, size_t size);
void __tsan_read_range(const void *at, size_t size)
{
    check(at, size, READ);
}

void __tsan_write_range(const void *at, size_t size);
void __tsan_write_range(const void *at, size_t size)
{
    check(at, size, WRITTEN);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(const void *from);
void __tsan_func_entry(const void *from)
{
    (void)from;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

static __attribute__((constructor)) void make_arena(void)
{
    if (mmap(ARENA, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != ARENA)
        abort();
    uint32_t random = 1;
    for (size_t i = 0; i < ARENA_SIZE; i++) {
        random = random * 1664525 + 1013904223;
        ARENA[i] = (uint8_t)(random >> 24);
    }
}
