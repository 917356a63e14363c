/* The race detector that Go programs are linked with by `redflag go`: the functions that Go's runtime calls under -race.
 *
 * Go's runtime switches to the stack of the kernel thread (g0) for each call and passes the goroutine's context, which __tsan_init and
 * __tsan_go_start made; it may be NULL where the runtime acts for itself. `pc` is a return address: pc - 1 lies in the call.
 * This file and all that it includes become one C file, which cgo compiles as a part of package runtime/race (go/README.md).
 *
 * 1. An access that repeats one of its goroutine's present epoch returns after a load and a comparison. All others go the long way.
 * 2. A race is reported after the granule was unlocked.
 */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* cgo's own choice leaves the loops over clocks as they are */
#endif

#include "go/cells.h"
#include "go/detectors.h"
#include "go/goroutines.h"
#include "go/objects.h"
#include "go/options.h"
#include "go/report.h"
#include "go/sweep.h"
#include "go/system.h"

/* ---- accesses ---- */

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

/* ---- memory ---- */

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

/* ---- order ---- */

#define ON_OBJECT(rule, others_rule)                                                                                        \
    do {                                                                                                                    \
        if (!g || g->ignore)                                                                                                \
            return;                                                                                                         \
        epoch_room(g);                                                                                                      \
        uint32_t *lock;                                                                                                     \
        struct object *object = object_lock(cell_of(addr), addr, &lock);                                                    \
        if (others_listen())                                                                                                \
            others_rule;                                                                                                    \
        else                                                                                                                \
            rule(g, object);                                                                                                \
        spin_unlock(lock);                                                                                                  \
    } while (0)

void __tsan_acquire(struct goroutine *g, uintptr_t addr);
void __tsan_acquire(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_acquire, others_acquire(g, object));
}

void __tsan_release(struct goroutine *g, uintptr_t addr);
void __tsan_release(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release, others_release(g, first_object(lock), object, false));
}

void __tsan_release_merge(struct goroutine *g, uintptr_t addr);
void __tsan_release_merge(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release_merge, others_release(g, first_object(lock), object, true));
}

void __tsan_release_acquire(struct goroutine *g, uintptr_t addr);
void __tsan_release_acquire(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release_acquire, (others_acquire(g, object), others_release(g, first_object(lock), object, false)));
}

void __tsan_go_ignore_sync_begin(struct goroutine *g);
void __tsan_go_ignore_sync_begin(struct goroutine *g)
{
    if (g)
        g->ignore++;
}

void __tsan_go_ignore_sync_end(struct goroutine *g);
void __tsan_go_ignore_sync_end(struct goroutine *g)
{
    if (g && g->ignore)
        g->ignore--;
}

/* ---- atomic operations ---- */

struct atomic {
    struct step step;
    struct cell *cell;
    struct object *object;
    uint32_t *lock;
    uintptr_t addr, call;
    bool done; /* nothing is to be looked at: only the operation is done */
};

/* Go code calls sync/atomic through wrappers, which pass arguments on the stack: `call` is in one, and where its own caller goes on lies
 * behind the arguments and a saved register. Other callers are their own. */
static inline uintptr_t atomic_caller(uintptr_t call, const void *arguments, size_t size)
{
    uintptr_t caller = call;
    if (__builtin_expect(caller_at(call) == CALLER_WRAPPER, 1))
        memcpy(&caller, (const char *)arguments + size + sizeof caller, sizeof caller);
    return caller;
}

INLINE void atomic_begin(struct atomic *a, struct goroutine *g, uintptr_t call, uintptr_t pc, uintptr_t addr, unsigned size,
                         bool writes)
{
    a->done = !g || g->ignore;
    if (others_listen()) {
        a->done = !g || others_lock_function(g, call, addr) || g->ignore;
        a->call = call;
    }
    if (a->done)
        return;
    epoch_room(g);
    a->step.g = g;
    a->step.now = g->now;
    a->step.race = 0;
    a->step.note = place_make(pc, note_of_call(g, call));
    g->used = true;
    a->addr = addr;
    a->cell = cell_of(addr);
    __builtin_prefetch(a->cell); /* on their way while the object is locked */
    if (writes)
        prefetch_to_write((const void *)addr);
    a->object = object_lock(a->cell, addr, &a->lock);
    a->object->size = (uint16_t)size;
}

INLINE void atomic_end(struct atomic *a, bool write, bool acquire, bool release)
{
    if (a->done)
        return;
    struct goroutine *g = a->step.g;
    if (others_listen()) {
        others_atomic(g, a->addr, acquire, release);
        spin_unlock(a->lock);
        others_access(g, a->addr, a->object->size, a->call, RF_A_ATOMIC | (write ? RF_A_WRITE : 0));
        return;
    }
    a->step.write = write;
    step_against_plain(&a->step, a->cell, ((1u << a->object->size) - 1) << a->addr % RF_GRANULE & 0xff);
    if (acquire)
        object_acquire(g, a->object);
    a->step.now = g->now;
    g->used = true; /* of this epoch, which may have begun with what was learned: the stamp names it */
    object_stamp(&a->step, a->object);
    if (release)
        object_release(g, a->object);
    spin_unlock(a->lock);
    if (__builtin_expect(a->step.race != 0, 0))
        race_found(&a->step, (a->addr & ~(uintptr_t)7) + a->step.race_byte);
}

/* A mutex that was taken acquires only: what its owner did before is handed on when it is given back.
 *
 * The arguments of a function of sync/atomic, as they lie on its caller's stack, results included. */
#define ATOMICS(bits)                                                                                                       \
    struct atomic_load##bits {                                                                                              \
        uint##bits##_t *addr, result;                                                                                       \
    };                                                                                                                      \
    struct atomic_change##bits {                                                                                            \
        uint##bits##_t *addr, value;                                                                                        \
        uint##bits##_t result __attribute__((aligned(8)));                                                                  \
    };                                                                                                                      \
    struct atomic_swap##bits {                                                                                              \
        uint##bits##_t *addr, old, new;                                                                                     \
        uint8_t result __attribute__((aligned(8)));                                                                         \
    };                                                                                                                      \
    void __tsan_go_atomic##bits##_load(struct goroutine *, uintptr_t, uintptr_t, struct atomic_load##bits *);               \
    void __tsan_go_atomic##bits##_load(struct goroutine *g, uintptr_t call, uintptr_t pc, struct atomic_load##bits *x)      \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        atomic_begin(&a, g, atomic_caller(call, x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, false);                    \
        x->result = __atomic_load_n(x->addr, __ATOMIC_SEQ_CST);                                                             \
        atomic_end(&a, false, true, false);                                                                                 \
    }                                                                                                                       \
    void __tsan_go_atomic##bits##_store(struct goroutine *, uintptr_t, uintptr_t, struct atomic_load##bits *);              \
    void __tsan_go_atomic##bits##_store(struct goroutine *g, uintptr_t call, uintptr_t pc, struct atomic_load##bits *x)     \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        atomic_begin(&a, g, atomic_caller(call, x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, true);                     \
        __atomic_store_n(x->addr, x->result, __ATOMIC_SEQ_CST);                                                             \
        atomic_end(&a, true, false, true);                                                                                  \
    }                                                                                                                       \
    void __tsan_go_atomic##bits##_exchange(struct goroutine *, uintptr_t, uintptr_t, struct atomic_change##bits *);         \
    void __tsan_go_atomic##bits##_exchange(struct goroutine *g, uintptr_t call, uintptr_t pc,                               \
                                           struct atomic_change##bits *x)                                                   \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        atomic_begin(&a, g, atomic_caller(call, x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, true);                     \
        x->result = __atomic_exchange_n(x->addr, x->value, __ATOMIC_SEQ_CST);                                               \
        atomic_end(&a, true, true, true);                                                                                   \
    }                                                                                                                       \
    void __tsan_go_atomic##bits##_fetch_add(struct goroutine *, uintptr_t, uintptr_t, struct atomic_change##bits *);        \
    void __tsan_go_atomic##bits##_fetch_add(struct goroutine *g, uintptr_t call, uintptr_t pc,                              \
                                            struct atomic_change##bits *x)                                                  \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        atomic_begin(&a, g, atomic_caller(call, x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, true);                     \
        x->result = __atomic_fetch_add(x->addr, x->value, __ATOMIC_SEQ_CST);                                                \
        atomic_end(&a, true, true, true);                                                                                   \
    }                                                                                                                       \
    void __tsan_go_atomic##bits##_compare_exchange(struct goroutine *, uintptr_t, uintptr_t, struct atomic_swap##bits *);   \
    void __tsan_go_atomic##bits##_compare_exchange(struct goroutine *g, uintptr_t call, uintptr_t pc,                       \
                                                   struct atomic_swap##bits *x)                                             \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        uintptr_t caller = atomic_caller(call, x, sizeof *x);                                                               \
        bool locks = bits == 32 && caller_at(caller) == CALLER_LOCKS;                                                       \
        uint##bits##_t old = x->old;                                                                                        \
        if (locks) /* what it protects is likely to lie behind it */                                                        \
            prefetch_to_write(cell_of((uintptr_t)x->addr + RF_GRANULE));                                                    \
        atomic_begin(&a, g, caller, pc, (uintptr_t)x->addr, bits / 8, true);                                                \
        bool done = __atomic_compare_exchange_n(x->addr, &old, x->new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
        x->result = done;                                                                                                   \
        atomic_end(&a, done, true, done && !locks);                                                                         \
    }

ATOMICS(32)
ATOMICS(64)

/* ---- goroutines, begin and end of the program ---- */

void __tsan_go_start(struct goroutine *parent, struct goroutine **child, uintptr_t pc);
void __tsan_go_start(struct goroutine *parent, struct goroutine **child, uintptr_t pc)
{
    *child = goroutine_begin(parent, pc);
}

void __tsan_go_end(struct goroutine *g);
void __tsan_go_end(struct goroutine *g)
{
    if (g)
        goroutine_end(g);
}

void __tsan_finalizer_goroutine(struct goroutine *g);
void __tsan_finalizer_goroutine(struct goroutine *g)
{
    goroutine_learn_all(g);
}

/* Go's processors: nothing of ours belongs to one. */
void __tsan_proc_create(void **processor);
void __tsan_proc_create(void **processor)
{
    static char any;
    *processor = &any;
}

void __tsan_proc_destroy(void *processor);
void __tsan_proc_destroy(void *processor)
{
    (void)processor;
}

void __tsan_report_count(uint64_t *count);
void __tsan_report_count(uint64_t *count)
{
    *count = __atomic_load_n(&report_count, __ATOMIC_RELAXED);
}

void __tsan_init(struct goroutine **first, void **processor, void (*callback)(uintptr_t, void *));
void __tsan_init(struct goroutine **first, void **processor, void (*callback)(uintptr_t, void *))
{
    go_callback = callback;
    code_base = (uintptr_t)callback - (1u << 30);
    memory_begin();
    options_from("GORACE");
    options_from("REDFLAG_OPTIONS");
    others_begin();
    notes_begin();
    readers_begin();
    pages_at(GO_TOUCHED_AT, TOUCHED_SIZE);
    *first = goroutine_begin(NULL, 0);
    __tsan_proc_create(processor);
}

void __tsan_fini(void);
void __tsan_fini(void)
{
    exit(report_end());
}
