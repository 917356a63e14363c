/* Memory that comes and goes: its histories are forgotten when Go's runtime hands it out, and their room comes with that of heaps.
 *
 * 1. Nobody uses memory that is handed out but who gets it. So histories without sets of readers or extras are cleared without a lock.
 * 2. Where no cell of a patch was locked since it was cleared, there is nothing to clear, and the cells are not looked at.
 */
#ifndef RF_GO_MEMORY_H
#define RF_GO_MEMORY_H

#include "go/detectors.h"
#include "go/objects.h"
#include "go/sweep.h"

static __attribute__((noinline)) void clear_granule_slowly(struct cell *cell, uintptr_t from, uintptr_t to, unsigned mask)
{
    uint64_t w = cell_lock(cell);
    struct extra *extra = w & EXTRA ? *extra_of(cell) : NULL;
    uint32_t *lock = w & OBJECT ? &extra->object.lock : NULL;
    if (lock) {
        spin_lock(lock);
        objects_end(extra, from, to);
    }
    unsigned has = mask_of(w), left = has & ~mask;
    bool in_cell = !(w & SPLIT);
    if (in_cell && w & OTHERS && (mask | has) != 0xff && mask != 0xff) {
        extra = rest_apart(cell, &w);
        in_cell = false;
        left = mask_of(w) & ~mask;
    }
    if (!left) {
        if (cell->r & RF_TAG)
            readers_end((uint32_t)cell->r);
        __atomic_store_n(&cell->r, 0, __ATOMIC_RELAXED);
        w &= FLAGS;
    }
    w = with_mask(in_cell ? w & ~OTHERS : w, left);
    if (mask == 0xff && w & SPLIT) {
        extra_clear_rest(extra);
        extra_end(cell, &w, SPLIT);
    } else if (!in_cell && mask & 0xfe) {
        struct part *bytes = bytes_apart(cell, &w);
        for (unsigned i = 1; i < 8; i++)
            if (mask >> i & 1)
                part_clear(&bytes[i - 1]);
    }
    if (lock && !extra->object.addr)
        extra_end(cell, &w, OBJECT);
    cell_unlock(cell, w);
    if (lock)
        spin_unlock(lock);
}

/* Nothing is known of these bytes any more. */
static inline void clear_granule(struct cell *cell, uintptr_t from, uintptr_t to, unsigned mask)
{
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED), r = __atomic_load_n(&cell->r, __ATOMIC_RELAXED);
    if (!(w | r))
        return;
    if (mask == 0xff && !(w & (EXTRA | LOCKED)) && !(r & RF_TAG)) { /* nobody else uses this memory now */
        __atomic_store_n(&cell->r, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&cell->w, 0, __ATOMIC_RELAXED);
        return;
    }
    clear_granule_slowly(cell, from, to, mask);
}

/* Bytes from addr on whose cells nobody has locked since they were cleared: most memory that is handed out has no history. addr begins
 * a patch. */
static uintptr_t clear_untouched(uintptr_t addr, uintptr_t end)
{
    const uint8_t *touched = touched_of(cell_of(addr));
    uintptr_t patches = 0, most = (end - addr) / PATCH;
    for (uint64_t eight; most - patches >= 8; patches += 8) {
        memcpy(&eight, touched + patches, sizeof eight);
        if (eight)
            break;
    }
    while (patches < most && !touched[patches])
        patches++;
    return patches * PATCH;
}

static void clear_range(uintptr_t addr, uintptr_t size)
{
    uintptr_t end = addr + size;
    if (others_listen())
        others_clear(addr, size);
    while (addr < end) {
        if (addr % PATCH == 0 && end - addr >= PATCH) {
            addr += clear_untouched(addr, end);
            if (end - addr < PATCH)
                continue;
            /* Nobody else uses this memory now: what is touched from here on is touched after it was handed out. */
            __atomic_store_n(touched_of(cell_of(addr)), 0, __ATOMIC_RELAXED);
            for (uintptr_t next = addr + PATCH; addr < next; addr += RF_GRANULE)
                clear_granule(cell_of(addr), addr, addr + RF_GRANULE, 0xff);
            continue;
        }
        uintptr_t stop = (addr | (PATCH - 1)) + 1;
        stop = stop < end ? stop : end;
        if (!__atomic_load_n(touched_of(cell_of(addr)), __ATOMIC_RELAXED))
            addr = stop;
        while (addr < stop) {
            uintptr_t base = addr & ~(uintptr_t)7, next = base + RF_GRANULE < stop ? base + RF_GRANULE : stop;
            clear_granule(cell_of(addr), addr, next, (0xffu << (addr - base)) & (0xffu >> (base + RF_GRANULE - next)));
            addr = next;
        }
    }
}

void __tsan_malloc(struct goroutine *g, uintptr_t pc, uintptr_t addr, uintptr_t size);
void __tsan_malloc(struct goroutine *g, uintptr_t pc, uintptr_t addr, uintptr_t size)
{
    (void)g, (void)pc;
    clear_range(addr, size);
}

void __tsan_free(uintptr_t addr, uintptr_t size);
void __tsan_free(uintptr_t addr, uintptr_t size)
{
    clear_range(addr, size);
}

void __tsan_map_shadow(uintptr_t addr, uintptr_t size);
void __tsan_map_shadow(uintptr_t addr, uintptr_t size)
{
    uintptr_t from = addr & ~(uintptr_t)4095, to = (addr + size + 4095) & ~(uintptr_t)4095;
    pages_large(pages_at((uintptr_t)cell_of(from), (to - from) * 2), (to - from) * 2);
    pages_large(pages_at((uintptr_t)notes_of(cell_of(from)), (to - from) * 2), (to - from) * 2);
    pages_at((uintptr_t)extra_of(cell_of(from)), to - from);
    spin_lock(&ranges_lock);
    if (range_count && ranges[range_count - 1].to == from)
        ranges[range_count - 1].to = to;
    else if (range_count == sizeof ranges / sizeof *ranges)
        give_up("Go's heap is in too many pieces");
    else {
        ranges[range_count].from = from;
        ranges[range_count].to = to;
        __atomic_store_n(&range_count, range_count + 1, __ATOMIC_RELEASE);
    }
    spin_unlock(&ranges_lock);
}

#endif
