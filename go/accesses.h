/* Accesses, and calls of functions: what Go's compiler and library tell of them.
 *
 * 1. An access that repeats one of its goroutine's present epoch returns after a load and a comparison. Most others take the short step;
 *    the rest goes the long way.
 * 2. A race is reported after the granule was unlocked.
 */
#ifndef RF_GO_ACCESSES_H
#define RF_GO_ACCESSES_H

#include "go/cells.h"
#include "go/detectors.h"
#include "go/objects.h"
#include "go/report.h"

static __attribute__((noinline)) void race_found(struct step *step, uintptr_t addr)
{
    struct owner owner = owner_of(step->race), me = owner_of(step->g->view.own);
    struct report_side now = { addr, place_note(step->note), step->g->number, me.created, step->write, false };
    struct report_side before = { addr,          place_note(step->race_note), owner.goroutine,
                                  owner.created, step->race_writes,           owner.ended };
    report_race(&now, &before);
}

INLINE void step_with(struct step *step, struct goroutine *g, bool write, go_place note)
{
    g->used = true;
    step->g = g;
    step->now = g->now;
    step->note = note;
    step->write = write;
    step->race = 0;
}

/* The granule is locked, and has objects. */
static __attribute__((noinline)) void access_beside_objects(struct step *step, struct cell *cell, uint64_t w, unsigned mask)
{
    struct extra *extra = *extra_of(cell);
    spin_lock(&extra->object.lock);
    step_against_stamps(step, &extra->object, mask);
    step_bytes(step, cell, &w, mask);
    cell_unlock(cell, w);
    spin_unlock(&extra->object.lock);
}

/* The bytes of the mask in one granule. */
INLINE void access_granule(struct step *step, struct cell *cell, unsigned mask)
{
    uint64_t w = cell_lock(cell);
    if (__builtin_expect((w & OBJECT) != 0, 0)) {
        access_beside_objects(step, cell, w, mask);
        return;
    }
    step_bytes(step, cell, &w, mask);
    cell_unlock(cell, w);
}

/* Whether these bytes' W, or R, is of the present epoch (cells.h, 4), as far as the cell alone can tell. */
static inline bool cell_repeats(const struct goroutine *g, const struct cell *cell, unsigned mask, bool write)
{
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_ACQUIRE);
    if ((mask_of(w) & mask) != mask)
        return false;
    if (write)
        return (w & ~FLAGS) == g->now;
    return __atomic_load_n(&cell->r, __ATOMIC_ACQUIRE) == g->now && __atomic_load_n(&cell->w, __ATOMIC_RELAXED) == w;
}

/* The same of one byte, wherever its history is. */
static inline bool access_repeats(const struct goroutine *g, uintptr_t addr, bool write)
{
    const struct cell *cell = cell_of(addr);
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_ACQUIRE);
    unsigned byte = addr % RF_GRANULE;
    if (mask_of(w) >> byte & 1) {
        if (write)
            return (w & ~FLAGS) == g->now;
        uint64_t r = __atomic_load_n(&cell->r, __ATOMIC_RELAXED);
        bool has = r & RF_TAG ? readers_have((uint32_t)r, g->now) : r == g->now;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return has && __atomic_load_n(&cell->r, __ATOMIC_RELAXED) == r &&
               mask_of(__atomic_load_n(&cell->w, __ATOMIC_RELAXED)) >> byte & 1;
    }
    if (w & OTHERS)
        return (w & ~FLAGS) == g->now;
    if (!(w & SPLIT) || !byte)
        return false;
    struct extra *const *place = extra_of(cell), *extra = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    const struct part *bytes = __atomic_load_n(&extra->bytes, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&extra->state, __ATOMIC_ACQUIRE) != REST_IS_BYTES || !bytes)
        return false;
    bool same = __atomic_load_n(write ? &bytes[byte - 1].w : &bytes[byte - 1].r, __ATOMIC_RELAXED) == g->now;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return same && __atomic_load_n(&cell->w, __ATOMIC_RELAXED) & SPLIT &&
           __atomic_load_n(place, __ATOMIC_RELAXED) == extra &&
           __atomic_load_n(&extra->state, __ATOMIC_RELAXED) == REST_IS_BYTES;
}

/* `call`: what the access is under, besides the goroutine's stack; 0: nothing. */
INLINE go_place access_place(struct goroutine *g, uintptr_t call, uintptr_t pc)
{
    return place_make(pc, call ? note_of_call(g, call) : note_of_stack(g));
}

static __attribute__((noinline)) void access_slowly(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc, bool write)
{
    struct step step;
    if (access_repeats(g, addr, write))
        return;
    go_place note = access_place(g, call, pc);
    if (step_on_byte(g, cell_of(addr), addr % RF_GRANULE, note, write))
        return;
    step_with(&step, g, write, note);
    access_granule(&step, cell_of(addr), 1u << addr % RF_GRANULE);
    if (__builtin_expect(step.race != 0, 0))
        race_found(&step, addr);
}

static __attribute__((noinline)) void access_by_others(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc, bool write)
{
    if (call)
        frame_push(g, call);
    others_access(g, addr, 1, pc, write ? RF_A_WRITE : 0);
    if (call)
        frame_pop(g);
}

/* Go's file of hooks has looked whether this repeats an earlier access (cli/go_fast.c), if it is the one that we made of it: so the
 * simplest other case comes first. */
INLINE void access_at(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc, bool write)
{
    struct cell *cell = cell_of(addr);
    unsigned byte = addr % RF_GRANULE;
    /* The variable, too: the program comes to it next, and what is done here lets no later load begin early. */
    __builtin_prefetch(notes_of(cell));
    if (write)
        prefetch_to_write((const void *)addr);
    else
        __builtin_prefetch((const void *)addr);
    if (others_listen()) {
        access_by_others(g, addr, call, pc, write);
        return;
    }
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED), r = __atomic_load_n(&cell->r, __ATOMIC_RELAXED);
    if (flags_for_short(w, r, byte, write) == UINT64_MAX || r & RF_TAG || !view_knows(&g->view, r) ||
        !step_shortly(g, cell, w, r, byte, access_place(g, call, pc), write))
        access_slowly(g, addr, call, pc, write);
}

void __tsan_read(struct goroutine *g, uintptr_t addr, uintptr_t pc);
void __tsan_read(struct goroutine *g, uintptr_t addr, uintptr_t pc)
{
    access_at(g, addr, 0, pc, false);
}

void __tsan_write(struct goroutine *g, uintptr_t addr, uintptr_t pc);
void __tsan_write(struct goroutine *g, uintptr_t addr, uintptr_t pc)
{
    access_at(g, addr, 0, pc, true);
}

/* Those with a call are not in Go's file of hooks. */
INLINE void access_under(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc, bool write)
{
    if (!cell_repeats(g, cell_of(addr), 1u << addr % RF_GRANULE, write))
        access_at(g, addr, call, pc, write);
}

void __tsan_read_pc(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc);
void __tsan_read_pc(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc)
{
    access_under(g, addr, call, pc, false);
}

void __tsan_write_pc(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc);
void __tsan_write_pc(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc)
{
    access_under(g, addr, call, pc, true);
}

/* Whole granules one after the other, those at the ends in part. A race is told once for all of them. */
static void access_range(struct goroutine *g, uintptr_t addr, uintptr_t size, uintptr_t pc, bool write)
{
    if (others_listen()) {
        others_access(g, addr, size, pc, write ? RF_A_WRITE : 0);
        return;
    }
    struct step step;
    step.g = NULL;
    bool told = false;
    for (uintptr_t end = addr + size; addr < end;) {
        uintptr_t base = addr & ~(uintptr_t)7, next = base + RF_GRANULE < end ? base + RF_GRANULE : end;
        unsigned mask = (0xffu << (addr - base)) & (0xffu >> (base + RF_GRANULE - next));
        struct cell *cell = cell_of(addr);
        addr = next;
        if (cell_repeats(g, cell, mask, write))
            continue;
        if (!step.g)
            step_with(&step, g, write, place_here(g, pc));
        access_granule(&step, cell, mask);
        if (__builtin_expect(step.race != 0, 0)) {
            if (!told)
                race_found(&step, base + step.race_byte);
            told = true;
            step.race = 0;
        }
    }
}

void __tsan_read_range(struct goroutine *g, uintptr_t addr, uintptr_t size, uintptr_t pc);
void __tsan_read_range(struct goroutine *g, uintptr_t addr, uintptr_t size, uintptr_t pc)
{
    access_range(g, addr, size, pc, false);
}

void __tsan_write_range(struct goroutine *g, uintptr_t addr, uintptr_t size, uintptr_t pc);
void __tsan_write_range(struct goroutine *g, uintptr_t addr, uintptr_t size, uintptr_t pc)
{
    access_range(g, addr, size, pc, true);
}

void __tsan_func_enter(struct goroutine *g, uintptr_t pc);
void __tsan_func_enter(struct goroutine *g, uintptr_t pc)
{
    frame_push(g, pc);
}

void __tsan_func_exit(struct goroutine *g);
void __tsan_func_exit(struct goroutine *g)
{
    frame_pop(g);
}

#endif
