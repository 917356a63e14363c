/* The race detector that Go programs are linked with by `redflag go`: the functions that Go's runtime calls under -race.
 *
 * Go's runtime switches to the stack of the kernel thread (g0) for each call and passes the goroutine's context, which __tsan_init and
 * __tsan_go_start made; it may be NULL where the runtime acts for itself. `pc` is a return address: pc - 1 lies in the call.
 * This file and all that it includes become one C file, which cgo compiles as a part of package runtime/race (go/README.md).
 *
 * 1. An access that repeats one of its goroutine's present epoch returns after a load and a comparison. All others go the long way.
 * 2. A race is reported after the granule was unlocked.
 */
#include "go/cells.h"
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
    struct report_side now = { addr, step->note, step->g->number, me.created, step->write, false };
    struct report_side before = { addr, step->race_note, owner.goroutine, owner.created, step->race_writes, owner.ended };
    report_race(&now, &before);
}

static inline struct step step_here(struct goroutine *g, bool write, uintptr_t pc)
{
    return (struct step){ .g = g, .now = g->now, .note = note_here(g, pc), .write = write };
}

/* The bytes of the mask in one granule. */
static inline void access_granule(struct step *step, struct cell *cell, unsigned mask)
{
    uint64_t w = cell_lock(cell);
    if (w & EXTRA)
        step_against_stamps(step, side_of(cell)->extra, mask);
    step_bytes(step, cell, &w, mask);
    cell_unlock(cell, w);
}

static __attribute__((noinline)) void access_byte(struct goroutine *g, uintptr_t addr, uintptr_t pc, bool write)
{
    struct step step = step_here(g, write, pc);
    access_granule(&step, cell_of(addr), 1u << addr % RF_GRANULE);
    if (__builtin_expect(step.race != 0, 0))
        race_found(&step, addr);
}

/* Whether a byte's W, or R, is of the present epoch (cells.h, 4). */
static inline bool access_repeats(const struct goroutine *g, uintptr_t addr, bool write)
{
    const struct cell *cell = cell_of(addr);
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_ACQUIRE);
    unsigned byte = addr % RF_GRANULE;
    if (!byte || w & WHOLE) {
        if (write)
            return (w & ~FLAGS) == g->now;
        uint64_t r = __atomic_load_n(&cell->r, __ATOMIC_RELAXED);
        if (!(r & RF_TAG))
            return r == g->now;
        bool has = readers_have((uint32_t)r, g->now);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return has && __atomic_load_n(&cell->r, __ATOMIC_RELAXED) == r;
    }
    if (!(w & EXTRA))
        return false;
    struct extra *const *place = &side_of(cell)->extra, *extra = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    const struct part *bytes = __atomic_load_n(&extra->bytes, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&extra->state, __ATOMIC_ACQUIRE) != REST_IS_BYTES || !bytes)
        return false;
    bool same = __atomic_load_n(write ? &bytes[byte - 1].w : &bytes[byte - 1].r, __ATOMIC_RELAXED) == g->now;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return same && (__atomic_load_n(&cell->w, __ATOMIC_RELAXED) & (EXTRA | WHOLE)) == EXTRA &&
           __atomic_load_n(place, __ATOMIC_RELAXED) == extra;
}

static __attribute__((noinline)) void access_slow(struct goroutine *g, uintptr_t addr, uintptr_t pc, bool write)
{
    if (!access_repeats(g, addr, write))
        access_byte(g, addr, pc, write);
}

void __tsan_read(struct goroutine *g, uintptr_t addr, uintptr_t pc);
void __tsan_read(struct goroutine *g, uintptr_t addr, uintptr_t pc)
{
    if (addr % RF_GRANULE || __atomic_load_n(&cell_of(addr)->r, __ATOMIC_RELAXED) != g->now)
        access_slow(g, addr, pc, false);
}

void __tsan_write(struct goroutine *g, uintptr_t addr, uintptr_t pc);
void __tsan_write(struct goroutine *g, uintptr_t addr, uintptr_t pc)
{
    if (addr % RF_GRANULE || (__atomic_load_n(&cell_of(addr)->w, __ATOMIC_RELAXED) & ~FLAGS) != g->now)
        access_slow(g, addr, pc, true);
}

static void access_under(struct goroutine *g, uintptr_t addr, uintptr_t call, uintptr_t pc, bool write)
{
    if (access_repeats(g, addr, write))
        return;
    if (call)
        frame_push(g, call);
    access_byte(g, addr, pc, write);
    if (call)
        frame_pop(g);
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
    struct step step = step_here(g, write, pc);
    bool told = false;
    for (uintptr_t end = addr + size; addr < end;) {
        uintptr_t base = addr & ~(uintptr_t)7, next = base + RF_GRANULE < end ? base + RF_GRANULE : end;
        unsigned mask = (0xffu << (addr - base)) & (0xffu >> (base + RF_GRANULE - next));
        struct cell *cell = cell_of(addr);
        uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED);
        bool same = w & WHOLE && (write ? (w & ~FLAGS) : __atomic_load_n(&cell->r, __ATOMIC_RELAXED)) == g->now;
        if (!same) {
            access_granule(&step, cell, mask);
            if (__builtin_expect(step.race != 0, 0)) {
                if (!told)
                    race_found(&step, base + step.race_byte);
                told = true;
                step.race = 0;
            }
        }
        addr = next;
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

/* Nothing is known of these bytes any more. */
static void clear_granule(struct cell *cell, uintptr_t from, uintptr_t to, unsigned mask)
{
    if (!(__atomic_load_n(&cell->w, __ATOMIC_RELAXED) | __atomic_load_n(&cell->r, __ATOMIC_RELAXED)))
        return;
    uint64_t w = cell_lock(cell);
    if (mask != 0xff && (mask & 0xfe || w & WHOLE)) {
        struct part *bytes = bytes_apart(cell, &w);
        for (unsigned i = 1; i < 8; i++)
            if (mask >> i & 1)
                part_clear(&bytes[i - 1]);
    }
    if (mask & 1) {
        struct part head = head_of(cell, w);
        part_clear(&head);
        head_put(cell, &w, head);
    }
    if (w & EXTRA) {
        struct extra *extra = side_of(cell)->extra;
        objects_end(extra, from, to);
        if (mask == 0xff) {
            extra_clear_rest(extra);
            extra_end(cell, &w);
        }
    }
    if (mask == 0xff)
        w = 0;
    cell_unlock(cell, w);
}

static void clear_range(uintptr_t addr, uintptr_t size)
{
    uintptr_t end = addr + size;
    while (addr < end) {
        uintptr_t base = addr & ~(uintptr_t)7, next = base + RF_GRANULE < end ? base + RF_GRANULE : end;
        clear_granule(cell_of(addr), addr, next, (0xffu << (addr - base)) & (0xffu >> (base + RF_GRANULE - next)));
        addr = next;
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
    pages_at((uintptr_t)cell_of(from), (to - from) * 2);
    pages_at((uintptr_t)side_of(cell_of(from)), (to - from) * 2);
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

#define ON_OBJECT(rule)                                       \
    do {                                                      \
        if (!g || g->ignore)                                  \
            return;                                           \
        epoch_room(g);                                        \
        struct cell *cell = cell_of(addr);                    \
        uint64_t w = cell_lock(cell);                         \
        struct object *object = object_at(cell, &w, addr);    \
        rule(g, object);                                      \
        cell_unlock(cell, w);                                 \
    } while (0)

void __tsan_acquire(struct goroutine *g, uintptr_t addr);
void __tsan_acquire(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_acquire);
}

void __tsan_release(struct goroutine *g, uintptr_t addr);
void __tsan_release(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release);
}

void __tsan_release_merge(struct goroutine *g, uintptr_t addr);
void __tsan_release_merge(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release_merge);
}

void __tsan_release_acquire(struct goroutine *g, uintptr_t addr);
void __tsan_release_acquire(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release_acquire);
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
    uint64_t w;
    uintptr_t addr;
    unsigned mask;
    bool done; /* nothing is to be looked at: only the operation is done */
};

static inline struct atomic atomic_begin(struct goroutine *g, uintptr_t call, uintptr_t pc, uintptr_t addr, unsigned size)
{
    struct atomic a = { .addr = addr, .done = !g || g->ignore };
    if (a.done)
        return a;
    (void)pc; /* inside sync/atomic, which is of no interest */
    epoch_room(g);
    a.step = step_here(g, false, call);
    a.cell = cell_of(addr);
    a.mask = ((1u << size) - 1) << addr % RF_GRANULE & 0xff;
    a.w = cell_lock(a.cell);
    a.object = object_at(a.cell, &a.w, addr);
    a.object->size = size;
    return a;
}

static inline void atomic_end(struct atomic *a, bool write, bool acquire, bool release)
{
    if (a->done)
        return;
    struct goroutine *g = a->step.g;
    a->step.write = write;
    a->step.now = g->now;
    step_against_plain(&a->step, a->cell, a->w, a->mask);
    if (acquire)
        object_acquire(g, a->object);
    a->step.now = g->now;
    object_stamp(&a->step, a->object);
    if (release)
        object_release(g, a->object);
    cell_unlock(a->cell, a->w);
    if (__builtin_expect(a->step.race != 0, 0))
        race_found(&a->step, (a->addr & ~(uintptr_t)7) + a->step.race_byte);
}

/* The arguments of a function of sync/atomic, as they lie on its caller's stack, results included. */
#define ATOMICS(bits)                                                                                                      \
    struct atomic_load##bits {                                                                                             \
        uint##bits##_t *addr, result;                                                                                      \
    };                                                                                                                     \
    struct atomic_change##bits {                                                                                           \
        uint##bits##_t *addr, value;                                                                                       \
        uint##bits##_t result __attribute__((aligned(8)));                                                                 \
    };                                                                                                                     \
    struct atomic_swap##bits {                                                                                             \
        uint##bits##_t *addr, old, new;                                                                                    \
        uint8_t result __attribute__((aligned(8)));                                                                        \
    };                                                                                                                     \
    void __tsan_go_atomic##bits##_load(struct goroutine *, uintptr_t, uintptr_t, struct atomic_load##bits *);              \
    void __tsan_go_atomic##bits##_load(struct goroutine *g, uintptr_t call, uintptr_t pc, struct atomic_load##bits *x)     \
    {                                                                                                                      \
        struct atomic a = atomic_begin(g, call, pc, (uintptr_t)x->addr, bits / 8);                                         \
        x->result = __atomic_load_n(x->addr, __ATOMIC_SEQ_CST);                                                            \
        atomic_end(&a, false, true, false);                                                                                \
    }                                                                                                                      \
    void __tsan_go_atomic##bits##_store(struct goroutine *, uintptr_t, uintptr_t, struct atomic_load##bits *);             \
    void __tsan_go_atomic##bits##_store(struct goroutine *g, uintptr_t call, uintptr_t pc, struct atomic_load##bits *x)    \
    {                                                                                                                      \
        struct atomic a = atomic_begin(g, call, pc, (uintptr_t)x->addr, bits / 8);                                         \
        __atomic_store_n(x->addr, x->result, __ATOMIC_SEQ_CST);                                                            \
        atomic_end(&a, true, false, true);                                                                                 \
    }                                                                                                                      \
    void __tsan_go_atomic##bits##_exchange(struct goroutine *, uintptr_t, uintptr_t, struct atomic_change##bits *);        \
    void __tsan_go_atomic##bits##_exchange(struct goroutine *g, uintptr_t call, uintptr_t pc, struct atomic_change##bits *x) \
    {                                                                                                                      \
        struct atomic a = atomic_begin(g, call, pc, (uintptr_t)x->addr, bits / 8);                                         \
        x->result = __atomic_exchange_n(x->addr, x->value, __ATOMIC_SEQ_CST);                                              \
        atomic_end(&a, true, true, true);                                                                                  \
    }                                                                                                                      \
    void __tsan_go_atomic##bits##_fetch_add(struct goroutine *, uintptr_t, uintptr_t, struct atomic_change##bits *);       \
    void __tsan_go_atomic##bits##_fetch_add(struct goroutine *g, uintptr_t call, uintptr_t pc, struct atomic_change##bits *x) \
    {                                                                                                                      \
        struct atomic a = atomic_begin(g, call, pc, (uintptr_t)x->addr, bits / 8);                                         \
        x->result = __atomic_fetch_add(x->addr, x->value, __ATOMIC_SEQ_CST);                                               \
        atomic_end(&a, true, true, true);                                                                                  \
    }                                                                                                                      \
    void __tsan_go_atomic##bits##_compare_exchange(struct goroutine *, uintptr_t, uintptr_t, struct atomic_swap##bits *);  \
    void __tsan_go_atomic##bits##_compare_exchange(struct goroutine *g, uintptr_t call, uintptr_t pc,                      \
                                                   struct atomic_swap##bits *x)                                            \
    {                                                                                                                      \
        struct atomic a = atomic_begin(g, call, pc, (uintptr_t)x->addr, bits / 8);                                         \
        uint##bits##_t old = x->old;                                                                                       \
        bool done = __atomic_compare_exchange_n(x->addr, &old, x->new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
        x->result = done;                                                                                                  \
        atomic_end(&a, done, true, done);                                                                                  \
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
    memory_begin();
    options_from("GORACE");
    options_from("REDFLAG_OPTIONS");
    notes_begin();
    readers_begin();
    pages_at(TOUCHED_AT, TOUCHED_SIZE);
    *first = goroutine_begin(NULL, 0);
    __tsan_proc_create(processor);
}

void __tsan_fini(void);
void __tsan_fini(void)
{
    exit(report_end());
}
