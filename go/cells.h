/* The histories of memory: where they are, and one step of FastTrack on them.
 *
 * 1. Go's hooks name an address, not a size: they stand for the variable that begins there. So an access is one to the byte at the
 *    address; ranges (composite values, copies, strings) are accesses to all of their bytes.
 * 2. A granule of eight bytes has a cell, W and R, for its first byte: that is all that a pointer, an int or a float64 needs. WHOLE in W:
 *    the other seven bytes have the same history (ranges). Otherwise they have none, or it is in the granule's `extra`: one for all
 *    seven, or one for each.
 * 3. LOCKED in W is the lock of the granule: of its cell, its notes, its extra and all that hangs there, synchronisation objects
 *    included. Only its holder changes any of it.
 * 4. Without the lock a goroutine may see that a byte's W or R is of its own present epoch. Then this access is already recorded, and
 *    whoever came later was checked against it: nothing is to be done. Where the look goes through `extra` it counts only if the
 *    granule still has the same one afterwards (readers.h, 2, argues the same way); extras stay extras.
 * 5. Cells and sides lie at fixed distances from the addresses that Go's runtime announces. Forty-two bits of an address tell Go's heap
 *    (0xc000000000 to 0xe000000000 under -race), the data of a program and that of a position-independent one apart.
 */
#ifndef RF_GO_CELLS_H
#define RF_GO_CELLS_H

#include "core/event.h"
#include "go/readers.h"

#define ADDRESS_MASK ((UINT64_C(1) << 42) - 8)
#define CELLS_AT 0x100000000000
#define SIDES_AT 0x200000000000
#define TOUCHED_AT 0x320000000000 /* a byte for each PATCH of cells: has any of them ever been locked? */
#define PATCH_BITS 16
#define TOUCHED_SIZE ((UINT64_C(1) << 43) >> PATCH_BITS)

#define LOCKED (UINT64_C(1) << 63)
#define EXTRA (UINT64_C(1) << 62)
#define WHOLE (UINT64_C(1) << 61)
#define FLAGS (LOCKED | EXTRA | WHOLE)

struct cell {
    uint64_t w; /* an epoch, and FLAGS */
    uint64_t r; /* an epoch, or with RF_TAG the number of a set of readers */
};

/* What goes with the cell and is looked at less often. */
struct side {
    uint32_t w_note, r_note;
    struct extra *extra; /* valid if EXTRA */
};

struct part {
    uint64_t w, r;
    uint32_t w_note, r_note;
};

enum { REST_LIKE_CELL, REST_IS_ONE, REST_IS_BYTES }; /* the seven bytes: see WHOLE; `rest`; `bytes` */

struct object;

struct extra {
    struct object *objects; /* objects.h: those with addresses in this granule */
    struct part *bytes;     /* 1 to 7 */
    struct part rest;
    uint32_t state, pad;
    struct extra *next; /* of those that are free */
};

static inline struct cell *cell_of(uintptr_t addr)
{
    return (struct cell *)((addr & ADDRESS_MASK) * 2 + CELLS_AT);
}

static inline struct side *side_of(const struct cell *cell)
{
    return (struct side *)((uintptr_t)cell - CELLS_AT + SIDES_AT);
}

static inline uint8_t *touched_of(const struct cell *cell)
{
    return (uint8_t *)(((uintptr_t)cell - CELLS_AT) >> PATCH_BITS) + TOUCHED_AT;
}

/* W as it was, without LOCKED. */
static inline uint64_t cell_lock(struct cell *cell)
{
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED);
    for (unsigned turns = 0;;) {
        if (w & LOCKED) {
            wait_a_little(&turns);
            w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&cell->w, &w, w | LOCKED, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            break;
    }
    if (__builtin_expect(!*touched_of(cell), 0))
        *touched_of(cell) = 1;
    return w;
}

static inline void cell_unlock(struct cell *cell, uint64_t w)
{
    __atomic_store_n(&cell->w, w, __ATOMIC_RELEASE);
}

/* ---- extras ---- */

static struct {
    uint32_t lock;
    struct extra *free;
} __attribute__((aligned(64))) extra_pools[STRIPES];

static struct extra *extra_new(struct cell *cell, uint64_t *w)
{
    struct side *side = side_of(cell);
    if (*w & EXTRA)
        return side->extra;
    unsigned stripe = (unsigned)(pool_here() - pools);
    spin_lock(&extra_pools[stripe].lock);
    struct extra *extra = extra_pools[stripe].free;
    if (extra)
        extra_pools[stripe].free = extra->next;
    spin_unlock(&extra_pools[stripe].lock);
    if (!extra)
        extra = take(sizeof *extra);
    extra->objects = NULL;
    extra->state = REST_LIKE_CELL;
    __atomic_store_n(&side->extra, extra, __ATOMIC_RELEASE);
    *w |= EXTRA;
    return extra;
}

static void part_clear(struct part *part)
{
    if (part->r & RF_TAG)
        readers_end((uint32_t)part->r);
    part->w = part->r = 0;
}

/* The seven bytes are to be like the cell again. Room for bytes stays with the extra: invariant 4. */
static void extra_clear_rest(struct extra *extra)
{
    if (extra->state == REST_IS_ONE)
        part_clear(&extra->rest);
    for (unsigned i = 0; extra->state == REST_IS_BYTES && i < 7; i++)
        part_clear(&extra->bytes[i]);
    extra->state = REST_LIKE_CELL;
}

static void extra_end(struct cell *cell, uint64_t *w)
{
    struct extra *extra = side_of(cell)->extra;
    *w &= ~EXTRA;
    unsigned stripe = (unsigned)(pool_here() - pools);
    spin_lock(&extra_pools[stripe].lock);
    extra->next = extra_pools[stripe].free;
    extra_pools[stripe].free = extra;
    spin_unlock(&extra_pools[stripe].lock);
}

/* ---- the rules ---- */

/* An access, as the rules see it. */
struct step {
    struct goroutine *g;
    rf_epoch now;
    uint32_t note;
    bool write;
    rf_epoch race; /* what it races with; 0: nothing */
    uint32_t race_note;
    bool race_writes;
    unsigned race_byte;
};

static inline bool step_race(struct step *step, rf_epoch epoch, uint32_t note, bool writes)
{
    step->race = epoch;
    step->race_note = note;
    step->race_writes = writes;
    return true;
}

static inline bool step_race_in_set(struct step *step, uint32_t set)
{
    uint32_t note = 0;
    rf_epoch epoch = readers_unordered(set, &step->g->view, &note);
    return epoch && step_race(step, epoch, note, false);
}

#define FT_STATE struct step
#define FT_THREAD struct step
#define FT(name) fg_##name
#define FT_EPOCH uint64_t
#define FT_WORD unsigned __int128
#define FT_NOW(t) ((t)->now)
#define FT_IS_NOW(t, e) ((e) == (t)->now)
#define FT_ORDERED(t, e) view_knows(&(t)->g->view, e)
#define FT_EXEMPT(d, t, e) false
#define FT_RACE(d, e, note, writes) step_race(d, e, note, writes)
#define FT_RACE_IN_MAP(d, t, map, cell) step_race_in_set(d, map)
#define FT_NEW_MAP(d) ((void)(d), readers_new())
#define FT_PUT(d, map, cell, e, note) readers_put(map, &(d)->g->view, e, note)
#define FT_END(d, map, cell) ((void)(d), readers_end(map))
#define FT_COPIED(d, map, cell) ((void)(d), readers_copied(map))
#define FT_COUNT(d, counter) ((void)0)
#include "detect/fasttrack.inc"
#undef FT_STATE
#undef FT_THREAD
#undef FT_EXEMPT
#undef FT_RACE_IN_MAP
#undef FT_NEW_MAP
#undef FT_PUT
#undef FT_END
#undef FT_COPIED
#undef FT_COUNT

/* The step on one history. */
static inline struct part part_step(struct step *step, struct part part)
{
    struct fg_cell cell = { .word = (unsigned __int128)part.w << 64 | part.r, .write_note = part.w_note, .read_note = part.r_note };
    if (step->write)
        fg_write(step, step, &cell, 0, step->note);
    else
        fg_read(step, step, &cell, 0, step->note);
    return (struct part){ (uint64_t)(cell.word >> 64), (uint64_t)cell.word, cell.write_note, cell.read_note };
}

static inline struct part head_of(const struct cell *cell, uint64_t w)
{
    const struct side *side = side_of(cell);
    return (struct part){ w & ~FLAGS, cell->r, side->w_note, side->r_note };
}

static inline void head_put(struct cell *cell, uint64_t *w, struct part part)
{
    struct side *side = side_of(cell);
    side->w_note = part.w_note;
    side->r_note = part.r_note;
    __atomic_store_n(&cell->r, part.r, __ATOMIC_RELAXED);
    *w = (*w & FLAGS) | part.w;
}

static struct part part_copied(struct part part)
{
    if (part.r & RF_TAG)
        part.r = RF_TAG | readers_copied((uint32_t)part.r);
    return part;
}

/* The seven bytes get a history of their own. */
static struct extra *rest_apart(struct cell *cell, uint64_t *w)
{
    struct extra *extra = extra_new(cell, w);
    if (extra->state != REST_LIKE_CELL)
        return extra;
    extra->rest = *w & WHOLE ? part_copied(head_of(cell, *w)) : (struct part){ 0 };
    extra->state = REST_IS_ONE;
    *w &= ~WHOLE;
    return extra;
}

static struct part *bytes_apart(struct cell *cell, uint64_t *w)
{
    struct extra *extra = rest_apart(cell, w);
    if (extra->state == REST_IS_BYTES)
        return extra->bytes;
    if (!extra->bytes)
        __atomic_store_n(&extra->bytes, take(7 * sizeof *extra->bytes), __ATOMIC_RELEASE);
    for (unsigned i = 0; i < 7; i++)
        extra->bytes[i] = i < 6 ? part_copied(extra->rest) : extra->rest;
    extra->rest = (struct part){ 0 };
    extra->state = REST_IS_BYTES;
    return extra->bytes;
}

static inline bool part_equal(const struct part *a, const struct part *b)
{
    return a->w == b->w && a->r == b->r && a->w_note == b->w_note && a->r_note == b->r_note && !(a->r & RF_TAG);
}

/* After an access to the whole granule: if all bytes have one history now, the cell tells it all. */
static void rest_back(struct cell *cell, uint64_t *w)
{
    struct extra *extra = side_of(cell)->extra;
    struct part head = head_of(cell, *w);
    unsigned count = extra->state == REST_IS_BYTES ? 7 : 1;
    const struct part *rest = extra->state == REST_IS_BYTES ? extra->bytes : &extra->rest;
    for (unsigned i = 0; i < count; i++)
        if (!part_equal(&rest[i], &head))
            return;
    extra->state = REST_LIKE_CELL;
    *w |= WHOLE;
    if (!extra->objects)
        extra_end(cell, w);
}

static inline void step_on(struct step *step, struct part *part, unsigned byte)
{
    rf_epoch before = step->race;
    *part = part_step(step, *part);
    if (!before && step->race)
        step->race_byte = byte;
}

static void step_head(struct step *step, struct cell *cell, uint64_t *w)
{
    struct part head = head_of(cell, *w);
    step_on(step, &head, 0);
    head_put(cell, w, head);
}

/* All bytes, and none of them has a history apart. */
static void step_whole(struct step *step, struct cell *cell, uint64_t *w)
{
    bool one = *w & WHOLE || !((*w & ~FLAGS) | cell->r);
    step_head(step, cell, w);
    if (one || step->write || (!(*w & ~FLAGS) && cell->r == step->now)) {
        *w |= WHOLE;
        return;
    }
    struct extra *extra = rest_apart(cell, w); /* the others were never accessed before */
    extra->rest = (struct part){ 0, step->now, 0, step->note };
}

/* The bytes of the mask, which is not empty. The cell is locked. */
static void step_bytes(struct step *step, struct cell *cell, uint64_t *w, unsigned mask)
{
    bool apart = *w & EXTRA && side_of(cell)->extra->state != REST_LIKE_CELL;
    if (mask == 0xff && !apart) {
        step_whole(step, cell, w);
        return;
    }
    if (mask == 1) {
        if (*w & WHOLE)
            rest_apart(cell, w);
        step_head(step, cell, w);
        return;
    }
    if (mask & 1) { /* before the others go apart: what they get is a copy of what was */
        if (!apart)
            rest_apart(cell, w);
        step_head(step, cell, w);
    }
    struct extra *extra = rest_apart(cell, w);
    if ((mask & 0xfe) == 0xfe && extra->state == REST_IS_ONE) {
        step_on(step, &extra->rest, 1);
    } else {
        struct part *bytes = bytes_apart(cell, w);
        for (unsigned i = 1; i < 8; i++)
            if (mask >> i & 1)
                step_on(step, &bytes[i - 1], i);
    }
    if (mask == 0xff)
        rest_back(cell, w);
}

#endif
