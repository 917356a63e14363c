/* The guest's memory: pages from the kernel, and small blocks in size classes.
 *
 * 1. Small blocks are never given back to the kernel and keep their class, so that who reads one that was just given away reads
 *    something of the same shape (read maps rely on it).
 * 2. Everything here is under one spin lock; threads take pieces of a page for their own rf_memory and come here seldom.
 */
#include "guest/memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest/planes.h"
#include "guest/spin.h"

#define LARGE (64u << 10) /* from here on blocks are pages of their own */
#define CLASSES (RF_SMALL / 16 + 1 + 8 * 8) /* as rf_class() counts them, up to LARGE */

static struct {
    uint32_t lock;
    char *next, *end;
    void *free[CLASSES];
    uint64_t bytes;
} pool;

/* Where the kernel is asked to put it: far from where it puts what the program maps, which may unmap something and map over the same
 * addresses later, trusting that nobody else is there. If a place is taken, the kernel chooses. */
#define OURS (RF_PLANES_END + 0x10000000000)
#define OURS_SIZE 0x20000000000

static void *map(size_t bytes, int flags)
{
    static uintptr_t next;
    uintptr_t hint = OURS + __atomic_fetch_add(&next, (bytes + 4095) & ~(size_t)4095, __ATOMIC_RELAXED) % OURS_SIZE;
    long at = RF_SYSCALL(SYS_mmap, hint, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

void *rf_pages(size_t bytes)
{
    void *pages = map(bytes, 0);
    if (!pages)
        rf_die("out of memory: the kernel refuses %zu bytes", bytes);
    __atomic_fetch_add(&pool.bytes, bytes, __ATOMIC_RELAXED);
    return pages;
}

void *rf_reserve(size_t bytes)
{
    return map(bytes, MAP_NORESERVE);
}

void rf_pages_back(void *pages, size_t bytes)
{
    RF_SYSCALL(SYS_munmap, pages, bytes);
    __atomic_fetch_sub(&pool.bytes, bytes, __ATOMIC_RELAXED);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

void *rf_take(size_t bytes)
{
    if (bytes >= LARGE)
        return rf_pages(whole_pages(bytes));
    size_t rounded = rf_rounded(bytes);
    unsigned class = rf_class(rounded);
    rf_spin_lock(&pool.lock);
    void *block = pool.free[class];
    if (block) {
        memcpy(&pool.free[class], block, sizeof(void *));
    } else {
        if (rounded > RF_SMALL) /* it begins with a line of the cache */
            pool.next += -(uintptr_t)pool.next % 64;
        if (pool.next > pool.end || (size_t)(pool.end - pool.next) < rounded) {
            size_t more = 4 * LARGE;
            pool.next = rf_pages(more);
            pool.end = pool.next + more;
        }
        block = pool.next;
        pool.next += rounded;
    }
    rf_spin_unlock(&pool.lock);
    memset(block, 0, rounded);
    return block;
}

void rf_give(void *block, size_t bytes)
{
    if (!block)
        return;
    if (bytes >= LARGE) {
        rf_pages_back(block, whole_pages(bytes));
        return;
    }
    unsigned class = rf_class(rf_rounded(bytes));
    rf_spin_lock(&pool.lock);
    memcpy(block, &pool.free[class], sizeof(void *));
    pool.free[class] = block;
    rf_spin_unlock(&pool.lock);
}

void rf_memory_begin(struct rf_memory *memory)
{
    *memory = (struct rf_memory){ .pieces = rf_take, .give_back = rf_give };
}

/* The size of a class: the inverse of rf_class(). */
static size_t size_of(unsigned class)
{
    unsigned above = class - RF_SMALL / 16;
    return class <= RF_SMALL / 16 ? class * 16 : (size_t)(5 + (above - 1) % 4) << (7 + (above - 1) / 4);
}

/* Blocks that the thread still has in use belong to objects that live on, so pieces are not taken apart: what is free in them is
 * handed over block by block. */
void rf_memory_donate(struct rf_memory *memory)
{
    for (unsigned class = 1; class < RF_CLASSES; class++)
        while (memory->free[class]) {
            void *block = memory->free[class];
            memcpy(&memory->free[class], block, sizeof(void *));
            rf_give(block, size_of(class));
        }
    while (memory->end - memory->next >= 16) {
        size_t rest = (size_t)(memory->end - memory->next) & ~(size_t)15, size = rest < RF_SMALL ? rest : RF_SMALL;
        rf_give(memory->next, size);
        memory->next += size;
    }
    memory->next = memory->end = NULL;
}

uint64_t rf_guest_bytes(void)
{
    return __atomic_load_n(&pool.bytes, __ATOMIC_RELAXED);
}

void rf_memory_fork_before(void)
{
    rf_spin_lock(&pool.lock);
}

void rf_memory_fork_after(void)
{
    rf_spin_unlock(&pool.lock);
}
