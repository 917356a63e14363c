/* What orders goroutines: objects by address, with the rules that Go's runtime asks for, and the histories of atomic operations.
 *
 * 1. An object hangs at its granule's extra, and is changed under the lock there. It is found without the granule's lock, and without a
 *    look at the cell, whose line of memory others may be changing: extras stay extras, whether the granule still has this one or not,
 *    and an object with the right address is the right one, since it ends before its extra leaves the granule, and to end it takes the
 *    lock.
 * 2. Atomic operations have a history of their own, beside the plain one: a few stamps. An atomic operation is checked against the
 *    plain histories of its bytes, a plain access also against the stamps; two atomic ones do not race. A stamp goes when a later one
 *    happens after it and conflicts with all that it conflicts with.
 * 3. To hand a view on begins a new epoch, unless nothing was done or learned in the present one.
 */
#ifndef RF_GO_OBJECTS_H
#define RF_GO_OBJECTS_H

#include "go/cells.h"

/* Whose lock this is. */
static inline struct object *first_object(uint32_t *lock)
{
    return (struct object *)(void *)lock;
}

static struct object *object_among(struct object *object, uintptr_t addr)
{
    while (object && object->addr != addr)
        object = object->next;
    return object;
}

/* It is there, or is made now. */
static __attribute__((noinline)) struct object *object_made(struct cell *cell, uintptr_t addr, uint32_t **lock)
{
    uint64_t w = cell_lock(cell);
    struct extra *extra = extra_new(cell, &w, OBJECT);
    spin_lock(*lock = &extra->object.lock);
    struct object *object = object_among(&extra->object, addr);
    if (!object) {
        object = &extra->object;
        if (object->addr) {
            struct object *added = take(sizeof *added);
            added->next = object->next;
            object = object->next = added;
        }
        object->addr = addr;
    }
    cell_unlock(cell, w);
    return object;
}

/* The object at this address, locked, if there is one; `lock` is what to unlock. */
INLINE struct object *object_found(const struct cell *cell, uintptr_t addr, uint32_t **lock)
{
    struct extra *extra = __atomic_load_n(extra_of(cell), __ATOMIC_ACQUIRE);
    if (__builtin_expect(!extra, 0))
        return NULL;
    struct object *first = &extra->object;
    spin_lock_for(*lock = &first->lock, WAIT_LONG);
    if (__builtin_expect(first->addr == addr, 1))
        return first;
    struct object *object = object_among(first->next, addr);
    if (!object)
        spin_unlock(&first->lock);
    return object;
}

INLINE struct object *object_lock(struct cell *cell, uintptr_t addr, uint32_t **lock)
{
    struct object *object = object_found(cell, addr, lock);
    return __builtin_expect(object != NULL, 1) ? object : object_made(cell, addr, lock);
}

static inline size_t stamps_size(uint32_t cap)
{
    return sizeof(struct stamps) + cap * sizeof(struct stamp);
}

static void others_forget(uintptr_t addr);

/* The lock keeps its place, and is held all the time: others wait for it. */
static void object_end(struct object *object)
{
    struct object *next = object->next;
    const size_t behind = offsetof(struct object, lock) + sizeof object->lock;
    if (others_listen())
        others_forget(object->addr);
    view_end(&object->view);
    if (object->others)
        give(object->others, stamps_size(object->others->cap));
    if (next) {
        memcpy((char *)object + behind, (const char *)next + behind, sizeof *object - behind);
        give(next, sizeof *next);
    } else
        memset((char *)object + behind, 0, sizeof *object - behind);
}

/* Those with addresses in a range; if the first goes, the second takes its place. Both locks are held. */
static void objects_end(struct extra *extra, uintptr_t from, uintptr_t to)
{
    struct object *object = &extra->object, *next;
    while (object->addr && object->addr >= from && object->addr < to)
        object_end(object);
    while ((next = object->next)) {
        if (next->addr < from || next->addr >= to) {
            object = next;
            continue;
        }
        object->next = next->next;
        next->next = NULL;
        object_end(next);
        give(next, sizeof *next);
    }
}

static inline uint32_t stamp_count(const struct object *object)
{
    return 2 + (object->many ? object->others->count : 0);
}

/* Its epoch is 0 if there is none. */
static inline struct stamp stamp_at(const struct object *object, uint32_t i)
{
    if (i > 1)
        return object->others->at[i - 2];
    return i ? (struct stamp){ object->read, object->read_note, false }
             : (struct stamp){ object->wrote, object->wrote_note, true };
}

/* ---- the rules of order, on a locked object ---- */

static inline void object_acquire(struct goroutine *g, const struct object *object)
{
    if (!view_knows(&g->view, object->view.own) && object->view.known) /* it is likely to be written soon, by a release */
        prefetch_to_write(object->view.known);
    goroutine_learn(g, &object->view);
}

/* What the goroutine handed on since it last learned anything is what it knows now, but for its own epoch. */
static inline void object_release(struct goroutine *g, struct object *object) /* L := C */
{
    rf_epoch own = epoch_handed_on(g);
    if (object->view.own - g->changed <= own - g->changed)
        object->view.own = own;
    else
        view_copy(&object->view, &g->view, own);
}

static inline void object_release_merge(struct goroutine *g, struct object *object) /* L := L ⊔ C */
{
    rf_epoch own = epoch_handed_on(g);
    if (object->view.own - g->changed <= own - g->changed)
        object->view.own = own;
    else
        view_merge(&object->view, &g->view, own);
}

static inline void object_release_acquire(struct goroutine *g, struct object *object) /* L, C := C, C ⊔ L */
{
    struct view old = object->view;
    object->view = (struct view){ 0 };
    view_copy(&object->view, &g->view, epoch_handed_on(g));
    goroutine_learn(g, &old);
    view_end(&old);
}

/* ---- atomic operations ---- */

/* A plain access to the bytes of the mask meets the atomic ones. */
static void step_against_stamps(struct step *step, const struct object *object, unsigned mask)
{
    for (; object && !step->race; object = object->next) {
        unsigned at = object->addr % RF_GRANULE, bytes = ((1u << object->size) - 1) << at & 0xff;
        uint32_t count = bytes & mask ? stamp_count(object) : 0;
        for (uint32_t i = 0; i < count && !step->race; i++) {
            struct stamp stamp = stamp_at(object, i);
            if ((step->write || stamp.writes) && !view_knows(&step->g->view, stamp.epoch)) {
                step_race(step, stamp.epoch, stamp.note, stamp.writes);
                step->race_byte = at;
            }
        }
    }
}

/* An atomic operation meets one plain history. */
static void step_against_part(struct step *step, struct part part, unsigned byte)
{
    if (step->race || !(part.w | part.r))
        return;
    struct fg_cell cell = { .word = (unsigned __int128)part.w << 64 | part.r,
                            .write_note = part.w_note,
                            .read_note = read_place(part.w, part.r, part.w_note, part.r_note) };
    if (step->write)
        fg_write_check(step, step, &cell);
    else if (fg_races_with_write(step, step, part.w))
        step_race(step, part.w, part.w_note, true);
    if (step->race)
        step->race_byte = byte;
}

static __attribute__((noinline)) void step_against_parts(struct step *step, struct cell *cell, uint64_t w, unsigned mask)
{
    const struct extra *extra = *extra_of(cell);
    unsigned byte = (unsigned)__builtin_ctz(mask);
    if (mask & mask_of(w))
        step_against_part(step, head_of(cell, w), byte);
    if (mask & ~mask_of(w))
        step_against_part(step, others_of(cell, w), byte);
    if (extra->state == REST_IS_ONE && (mask & 0xfe))
        step_against_part(step, extra->rest, 1);
    for (unsigned i = 1; extra->state == REST_IS_BYTES && i < 8; i++)
        if (mask >> i & 1)
            step_against_part(step, extra->bytes[i - 1], i);
}

INLINE void step_against_plain(struct step *step, struct cell *cell, unsigned mask)
{
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED), r = __atomic_load_n(&cell->r, __ATOMIC_RELAXED);
    const struct view *view = &step->g->view;
    if (!(w & SPLIT) && !(r & RF_TAG) && view_knows(view, w & ~FLAGS) && (!step->write || view_knows(view, r)))
        return; /* whichever bytes it is the history of */
    step_against_parts(step, cell, w, mask);
}

static void stamp_add(struct object *object, struct stamp stamp)
{
    struct stamps *others = object->others;
    if (!others || others->count == others->cap) {
        uint32_t cap = others ? 2 * others->cap : 4;
        struct stamps *larger = take(stamps_size(cap));
        if (others) {
            memcpy(larger, others, stamps_size(others->cap));
            give(others, stamps_size(others->cap));
        }
        larger->cap = cap;
        object->others = others = larger;
    }
    others->at[others->count++] = stamp;
    object->many = 1;
}

/* Invariant 2: those that this one does not say as much as, or that it does not happen after, come to the others. */
static __attribute__((noinline)) void object_stamp_among(const struct step *step, struct object *object)
{
    const struct view *view = &step->g->view;
    uint32_t count = object->many ? object->others->count : 0, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct stamp stamp = object->others->at[i];
        if ((stamp.writes && !step->write) || !view_knows(view, stamp.epoch))
            object->others->at[kept++] = stamp;
    }
    if (count)
        object->others->count = kept;
    object->many = kept != 0;
    if (step->write && !view_knows(view, object->wrote))
        stamp_add(object, stamp_at(object, 0));
    if (!view_knows(view, object->read))
        stamp_add(object, stamp_at(object, 1));
    object->read = 0;
}

INLINE void object_stamp(const struct step *step, struct object *object)
{
    const struct view *view = &step->g->view;
    if (object->wrote == step->now || (!step->write && object->read == step->now)) /* it says as much */
        return;
    if (object->many || !view_knows(view, object->read) || (step->write && !view_knows(view, object->wrote)))
        object_stamp_among(step, object);
    if (step->write) {
        object->wrote = step->now;
        object->wrote_note = (uint32_t)step->note;
        object->read = 0;
    } else {
        object->read = step->now;
        object->read_note = (uint32_t)step->note;
    }
}

#endif
