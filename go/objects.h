/* What orders goroutines: objects by address, with the rules that Go's runtime asks for, and the histories of atomic operations.
 *
 * 1. An object hangs at its granule's extra and is found, made, changed and forgotten under the granule's lock.
 * 2. Atomic operations have a history of their own, beside the plain one: a few stamps. An atomic operation is checked against the
 *    plain histories of its bytes, a plain access also against the stamps; two atomic ones do not race. A stamp goes when a later one
 *    happens after it and conflicts with all that it conflicts with.
 * 3. To hand a view on begins a new epoch.
 */
#ifndef RF_GO_OBJECTS_H
#define RF_GO_OBJECTS_H

#include "go/cells.h"

struct stamp {
    rf_epoch epoch;
    uint32_t note;
    bool writes;
};

struct object {
    uintptr_t addr;
    struct object *next;
    struct view view; /* what an acquire learns */
    uint32_t size;    /* of atomic operations on it; 0: there were none */
    uint32_t count, cap;
    struct stamp *stamps;
};

static struct object *object_at(struct cell *cell, uint64_t *w, uintptr_t addr)
{
    struct extra *extra = extra_new(cell, w);
    struct object *object = extra->objects;
    while (object && object->addr != addr)
        object = object->next;
    if (!object) {
        object = take(sizeof *object);
        object->addr = addr;
        object->next = extra->objects;
        extra->objects = object;
    }
    return object;
}

static void objects_end(struct extra *extra, uintptr_t from, uintptr_t to)
{
    for (struct object **place = &extra->objects, *object; (object = *place);) {
        if (object->addr < from || object->addr >= to) {
            place = &object->next;
            continue;
        }
        *place = object->next;
        view_end(&object->view);
        give(object->stamps, object->cap * sizeof *object->stamps);
        give(object, sizeof *object);
    }
}

/* ---- the rules of order, on a locked object ---- */

static inline void object_acquire(struct goroutine *g, const struct object *object)
{
    epoch_before_learning(g);
    view_join(&g->view, &object->view);
}

static inline void object_release(struct goroutine *g, struct object *object) /* L := C */
{
    view_copy(&object->view, &g->view);
    epoch_next(g);
}

static inline void object_release_merge(struct goroutine *g, struct object *object) /* L := L ⊔ C */
{
    view_merge(&object->view, &g->view);
    epoch_next(g);
}

static inline void object_release_acquire(struct goroutine *g, struct object *object) /* L, C := C, C ⊔ L */
{
    struct view old = object->view;
    epoch_before_learning(g);
    object->view = (struct view){ 0 };
    view_copy(&object->view, &g->view);
    epoch_next(g);
    view_join(&g->view, &old);
    view_end(&old);
}

/* ---- atomic operations ---- */

/* A plain access to the bytes of the mask meets the atomic ones. */
static void step_against_stamps(struct step *step, const struct extra *extra, unsigned mask)
{
    for (const struct object *object = extra->objects; object && !step->race; object = object->next) {
        unsigned at = object->addr % RF_GRANULE, bytes = ((1u << object->size) - 1) << at & 0xff;
        for (uint32_t i = 0; (bytes & mask) && i < object->count && !step->race; i++) {
            const struct stamp *stamp = &object->stamps[i];
            if ((step->write || stamp->writes) && !view_knows(&step->g->view, stamp->epoch)) {
                step_race(step, stamp->epoch, stamp->note, stamp->writes);
                step->race_byte = at;
            }
        }
    }
}

/* An atomic operation meets one plain history. */
static void step_against_part(struct step *step, struct part part, unsigned byte)
{
    struct fg_cell cell = { .word = (unsigned __int128)part.w << 64 | part.r, .write_note = part.w_note, .read_note = part.r_note };
    if (step->race || !(part.w | part.r))
        return;
    if (step->write)
        fg_write_check(step, step, &cell);
    else if (fg_races_with_write(step, step, part.w))
        step_race(step, part.w, part.w_note, true);
    if (step->race)
        step->race_byte = byte;
}

static void step_against_plain(struct step *step, struct cell *cell, uint64_t w, unsigned mask)
{
    struct part head = head_of(cell, w);
    const struct extra *extra = side_of(cell)->extra;
    if ((mask & 1) || (w & WHOLE))
        step_against_part(step, head, 0);
    if (extra->state == REST_IS_ONE && (mask & 0xfe))
        step_against_part(step, extra->rest, 1);
    for (unsigned i = 1; extra->state == REST_IS_BYTES && i < 8; i++)
        if (mask >> i & 1)
            step_against_part(step, extra->bytes[i - 1], i);
}

/* Invariant 2. */
static void object_stamp(const struct step *step, struct object *object)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < object->count; i++) {
        struct stamp stamp = object->stamps[i];
        if (stamp.epoch == step->now && (stamp.writes || !step->write)) /* this one says as much */
            return;
        if ((step->write || !stamp.writes) && view_knows(&step->g->view, stamp.epoch))
            continue;
        object->stamps[kept++] = stamp;
    }
    object->stamps = grown(object->stamps, &object->cap, kept + 1, sizeof *object->stamps);
    object->stamps[kept] = (struct stamp){ step->now, step->note, step->write };
    object->count = kept + 1;
}

#endif
