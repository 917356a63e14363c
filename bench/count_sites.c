/* How often each place of a program calls a hook of a plain access: preloaded before the library that has all hooks, it takes these, counts
 * by return address, and prints "0xOFFSET COUNT" of the program's own to the file named by COUNT_SITES when it ends. For
 * bench/production_caper.py.
 *
 * 1. Threads count in eight tables, by their number: only two that share one may lose a count to each other.
 * 2. A place whose table is full is not counted. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PLACES (1u << 16)
#define TABLES 8u

static struct {
    uintptr_t pc;
    uint64_t count;
} tables[TABLES][PLACES];
static unsigned threads;
static __thread unsigned mine;

static void count(uintptr_t pc)
{
    if (!mine)
        mine = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % TABLES + 1;
    unsigned at = (unsigned)(pc * 0x9e3779b97f4a7c15u >> 40) % PLACES;
    for (unsigned tries = 0; tries < 64; tries++, at = (at + 1) % PLACES) {
        uintptr_t none = 0;
        if (tables[mine - 1][at].pc == pc ||
            __atomic_compare_exchange_n(&tables[mine - 1][at].pc, &none, pc, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || none == pc) {
            tables[mine - 1][at].count++;
            return;
        }
    }
}

#define HOOK(name)                                                                                                          \
    void __tsan_##name(void *address);                                                                                      \
    void __tsan_##name(void *address)                                                                                       \
    {                                                                                                                       \
        (void)address;                                                                                                      \
        count((uintptr_t)__builtin_return_address(0));                                                                      \
    }
#define SIZES(kind) HOOK(kind##1) HOOK(kind##2) HOOK(kind##4) HOOK(kind##8) HOOK(kind##16)
SIZES(read)
SIZES(write)
SIZES(unaligned_read)
SIZES(unaligned_write)
SIZES(volatile_read)
SIZES(volatile_write)
HOOK(vptr_read)
HOOK(vptr_update)
HOOK(read_range)
HOOK(write_range)

static int first_module(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

static __attribute__((destructor)) void print(void)
{
    uintptr_t base = 0;
    FILE *out = getenv("COUNT_SITES") ? fopen(getenv("COUNT_SITES"), "w") : NULL;
    dl_iterate_phdr(first_module, &base);
    for (unsigned t = 0; out && t < TABLES; t++)
        for (unsigned i = 0; i < PLACES; i++)
            if (tables[t][i].pc)
                fprintf(out, "0x%zx %llu\n", (size_t)(tables[t][i].pc - 1 - base), (unsigned long long)tables[t][i].count);
    if (out)
        fclose(out);
}
