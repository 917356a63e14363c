/* The doors to the kernel, a lock, and memory, for code that is linked into Go programs.
 *
 * 1. Hooks run on the stack of a kernel thread (g0), where Go cannot preempt them; signal handlers of Go's runtime call no hooks. So a
 *    lock is held by a thread that runs or that the kernel has put aside: who waits for it yields after a while.
 * 2. There are no variables of a kernel thread: Go's linker cannot link them. Where many threads would wait for one lock there are
 *    STRIPES of it; which one a thread uses depends on where its stack is.
 * 3. Memory is never given back to the kernel, but for blocks above LARGE: so what was once an address of ours can always be read.
 */
#ifndef RF_GO_SYSTEM_H
#define RF_GO_SYSTEM_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/memory.h"

static inline long call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void write_all(int fd, const char *text, size_t size)
{
    while (size) {
        long done = call_kernel(SYS_write, fd, (long)text, (long)size, 0, 0, 0);
        if (done == -4) /* EINTR */
            continue;
        if (done <= 0)
            return;
        text += done;
        size -= (size_t)done;
    }
}

/* The run cannot go on: one line, and 67, which is no program's result. */
static __attribute__((noreturn)) void give_up(const char *why)
{
    write_all(2, "redflag: ", 9);
    write_all(2, why, strlen(why));
    write_all(2, "\n", 1);
    for (;;)
        call_kernel(SYS_exit_group, 67, 0, 0, 0, 0, 0);
}

/* The compiler would ask for the line of memory as if it were only read. Old processors do nothing here. */
static inline void prefetch_to_write(const void *line)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
}

/* ---- locks ---- */

#define WAIT_SHORT 8u
/* For objects that goroutines meet at. A look at the lock takes its line of memory away from who holds it and works there: one who waits
 * while the other does many operations in a row costs less than two who take turns at each. */
#define WAIT_LONG 64u

static __attribute__((noinline)) void wait_a_little(unsigned *turns, unsigned length)
{
    if (++*turns > 8) {
        call_kernel(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        return;
    }
    for (unsigned i = 0; i < length; i++)
        __builtin_ia32_pause();
}

static inline void spin_lock_for(uint32_t *lock, unsigned length)
{
    for (unsigned turns = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);)
        while (__atomic_load_n(lock, __ATOMIC_RELAXED))
            wait_a_little(&turns, length);
}

static inline void spin_lock(uint32_t *lock)
{
    spin_lock_for(lock, WAIT_SHORT);
}

static inline void spin_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* ---- memory ---- */

#define STRIPES 16u
#define LARGE 65536u

/* Pages that exist when they are touched; at a given place, or anywhere. */
static void *pages_at(uintptr_t where, size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (where ? MAP_FIXED : 0);
    long at = call_kernel(SYS_mmap, (long)where, (long)bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at < 0 && at > -4096)
        give_up("the kernel gives no memory for histories");
    return (void *)at;
}

/* Go's heap grows without holes, and so do its histories. In small pages each would come twice: as zeroes when it is read, and for good
 * when it is written, for which all processors are interrupted. If the kernel has no large pages for us nothing is lost. */
static void pages_large(void *pages, size_t bytes)
{
    call_kernel(SYS_madvise, (long)pages, (long)bytes, MADV_HUGEPAGE, 0, 0, 0);
}

static void *pool_pieces(size_t bytes)
{
    return pages_at(0, bytes);
}

static void pool_give_back(void *piece, size_t bytes)
{
    call_kernel(SYS_munmap, (long)piece, (long)bytes, 0, 0, 0, 0);
}

static struct pool {
    uint32_t lock;
    struct rf_memory memory;
} __attribute__((aligned(64))) pools[STRIPES];

static inline struct pool *pool_here(void)
{
    uintptr_t stack = (uintptr_t)__builtin_frame_address(0) >> 14;
    return &pools[(stack ^ stack >> 9) % STRIPES];
}

/* Zeroed. A block may be given back to another stripe than it came from. */
static void *take(size_t size)
{
    if (size > LARGE)
        return pages_at(0, size);
    struct pool *pool = pool_here();
    spin_lock(&pool->lock);
    void *block = rf_alloc(&pool->memory, size);
    spin_unlock(&pool->lock);
    return block;
}

static void give(void *block, size_t size)
{
    if (!block)
        return;
    if (size > LARGE) {
        pool_give_back(block, size);
        return;
    }
    struct pool *pool = pool_here();
    spin_lock(&pool->lock);
    rf_free(&pool->memory, block, size);
    spin_unlock(&pool->lock);
}

static void memory_begin(void)
{
    for (unsigned i = 0; i < STRIPES; i++) {
        pools[i].memory.pieces = pool_pieces;
        pools[i].memory.give_back = pool_give_back;
    }
}

/* An array of at least `need` elements; the new part is zero. */
static void *grown(void *array, uint32_t *cap, uint32_t need, size_t element)
{
    if (need <= *cap)
        return array;
    uint32_t wanted = *cap ? *cap : 8;
    while (wanted < need)
        wanted *= 2;
    char *larger = take(wanted * element);
    if (array)
        memcpy(larger, array, *cap * element);
    give(array, *cap * element);
    *cap = wanted;
    return larger;
}

#endif
