/* The histories of memory: where they are, and one step of FastTrack on them.
 *
 * 1. Go's hooks name an address, not a size: they stand for the variable that begins there. So an access is one to the byte at the
 *    address; ranges (composite values, copies, strings) are accesses to all of their bytes.
 * 2. A granule of eight bytes has a cell, W and R, and a MASK: the bytes that have this history. The others have none; or, with OTHERS,
 *    they were written in the same W and not read since. That is all that pointers, numbers, ranges, and bytes that one loop writes or
 *    reads one after the other need. Where it does not do, MASK is the first byte alone, and the other seven are in the granule's
 *    `extra`: one history for all seven, or one for each.
 * 3. LOCKED in W is the lock of the granule: of its cell, its notes, and the parts in its extra. Only its holder changes any of it.
 *    Synchronisation objects have a lock of their own (struct object, lock), so that two goroutines that use one pass one line of memory
 *    to and fro and not two. It is taken after the granule's, if both are. Who has both may make and end objects; who changes the
 *    granule has both, if there are objects (OBJECT): so either of them is enough to look at the granule.
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

/* Cells are in patches. GO_TOUCHED_AT: was any of a patch locked since they were last cleared together? */
#define PATCH_BITS (GO_TOUCHED_SHIFT + 1)
#define PATCH ((uintptr_t)1 << (PATCH_BITS - 1)) /* bytes of the program that a patch is for */
#define TOUCHED_SIZE ((UINT64_C(1) << 43) >> PATCH_BITS)

#define LOCKED (UINT64_C(1) << 63)
#define OBJECT (UINT64_C(1) << 62)          /* there is an extra, with objects */
#define SPLIT (UINT64_C(1) << GO_SPLIT_BIT) /* there is an extra, with the history of the seven bytes */
#define EXTRA (OBJECT | SPLIT)
#define OTHERS (UINT64_C(1) << GO_OTHERS_BIT)
#define MASK_SHIFT GO_MASK_SHIFT
#define MASK (UINT64_C(0xff) << MASK_SHIFT)
#define FLAGS (LOCKED | EXTRA | OTHERS | MASK)

_Static_assert(SPLIT >> MASK_SHIFT == GO_FLAG_SPLIT && OTHERS >> MASK_SHIFT == GO_FLAG_OTHERS, "go/layout.h");

struct cell {
    uint64_t w; /* an epoch, and FLAGS */
    uint64_t r; /* an epoch, or with RF_TAG the number of a set of readers */
};

/* Where W and R were. If R is W, which a write makes it, `r` says nothing. What is there already is not written again: the same code does
 * the same to the same variables, and so these lines of memory need not go from one processor to the other. */
struct cell_notes {
    go_place w, r;
};

struct part {
    uint64_t w, r;
    go_place w_note, r_note;
};

enum { REST_IN_CELL, REST_IS_ONE, REST_IS_BYTES }; /* the seven bytes: see MASK; `rest`; `bytes`. SPLIT: not the first */

struct stamp {
    rf_epoch epoch;
    uint32_t note;
    bool writes;
};

struct stamps {
    uint32_t count, cap;
    struct stamp at[];
};

/* See objects.h. Most operations need the first 64 bytes only. */
struct object {
    uint32_t lock;        /* of the first one: for all objects of the granule */
    uint8_t size, kind;   /* of atomic operations on it; go/detectors.h */
    uint16_t many;        /* are there stamps besides the next two? */
    uintptr_t addr;       /* 0: there is none */
    struct view view;     /* what an acquire learns */
    rf_epoch wrote, read; /* the last stamp of each kind; 0: none */
    uint32_t wrote_note, read_note;
    struct stamps *others;
    struct object *next; /* of those in this granule */
};

_Static_assert(offsetof(struct object, lock) == 0 && offsetof(struct object, size) == GO_OBJECT_SIZE &&
                   offsetof(struct object, many) == GO_OBJECT_SIZE + 2 && offsetof(struct object, addr) == GO_OBJECT_ADDR &&
                   offsetof(struct object, view.known) == GO_OBJECT_KNOWN &&
                   offsetof(struct object, view.own) == GO_OBJECT_OWN &&
                   offsetof(struct object, view.extra) == GO_OBJECT_EXTRA &&
                   offsetof(struct object, wrote) == GO_OBJECT_WROTE && offsetof(struct object, read) == GO_OBJECT_READ &&
                   offsetof(struct object, wrote_note) == GO_OBJECT_WROTE_NOTE &&
                   offsetof(struct object, read_note) == GO_OBJECT_READ_NOTE && sizeof(struct object) == 80,
               "go/layout.h");

struct extra {
    struct object object; /* the first; most often the only one. Its lock stays a lock when the extra is not in use */
    struct part *bytes;   /* 1 to 7 */
    uint32_t state, pad;
    union {
        struct part rest;
        struct extra *next; /* of those that are free */
    };
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct extra) == 128, "two lines of memory");

static inline struct cell *cell_of(uintptr_t addr)
{
    return (struct cell *)((addr & GO_ADDRESS_MASK) * 2 + GO_CELLS_AT);
}

static inline struct cell_notes *notes_of(const struct cell *cell)
{
    return (struct cell_notes *)((uintptr_t)cell - GO_CELLS_AT + GO_NOTES_AT);
}

/* It is the granule's if EXTRA; else it may be anybody's, or NULL. */
static inline struct extra **extra_of(const struct cell *cell)
{
    return (struct extra **)(((uintptr_t)cell - GO_CELLS_AT) / 2 + GO_EXTRAS_AT);
}

static inline unsigned mask_of(uint64_t w)
{
    return w >> MASK_SHIFT & 0xff;
}

static inline uint64_t with_mask(uint64_t w, unsigned mask)
{
    return (w & ~MASK) | (uint64_t)mask << MASK_SHIFT;
}

static inline uint8_t *touched_of(const struct cell *cell)
{
    return (uint8_t *)(((uintptr_t)cell - GO_CELLS_AT) >> PATCH_BITS) + GO_TOUCHED_AT;
}

static inline void cell_touch(const struct cell *cell)
{
    if (__builtin_expect(!__atomic_load_n(touched_of(cell), __ATOMIC_RELAXED), 0))
        __atomic_store_n(touched_of(cell), 1, __ATOMIC_RELAXED);
}

/* W as it was, without LOCKED. */
static inline __attribute__((always_inline)) uint64_t cell_lock(struct cell *cell)
{
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED);
    for (unsigned turns = 0;;) {
        if (w & LOCKED) {
            wait_a_little(&turns, WAIT_SHORT);
            w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&cell->w, &w, w | LOCKED, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            break;
    }
    cell_touch(cell);
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

/* At the beginning of a line of the cache. They are never given back. */
static struct extra *extra_fresh(void)
{
    static uint32_t lock;
    static char *next, *end;
    spin_lock(&lock);
    if (next == end) {
        next = pages_at(0, 1024 * sizeof(struct extra));
        end = next + 1024 * sizeof(struct extra);
    }
    struct extra *extra = (struct extra *)(void *)next;
    next += sizeof *extra;
    spin_unlock(&lock);
    return extra;
}

static __attribute__((noinline)) struct extra *extra_add(struct cell *cell)
{
    unsigned stripe = (unsigned)(pool_here() - pools);
    spin_lock(&extra_pools[stripe].lock);
    struct extra *extra = extra_pools[stripe].free;
    if (extra)
        extra_pools[stripe].free = extra->next;
    spin_unlock(&extra_pools[stripe].lock);
    if (!extra)
        extra = extra_fresh();
    extra->state = REST_IN_CELL;
    __atomic_store_n(extra_of(cell), extra, __ATOMIC_RELEASE);
    return extra;
}

/* The granule's extra, for what `flag` says. */
static inline struct extra *extra_new(struct cell *cell, uint64_t *w, uint64_t flag)
{
    struct extra *extra = *w & EXTRA ? *extra_of(cell) : extra_add(cell);
    *w |= flag;
    return extra;
}

static void part_clear(struct part *part)
{
    if (part->r & RF_TAG)
        readers_end((uint32_t)part->r);
    part->w = part->r = 0;
}

/* The seven bytes are to be in the cell again, without history. Room for bytes stays with the extra: invariant 4. */
static void extra_clear_rest(struct extra *extra)
{
    if (extra->state == REST_IS_ONE)
        part_clear(&extra->rest);
    for (unsigned i = 0; extra->state == REST_IS_BYTES && i < 7; i++)
        part_clear(&extra->bytes[i]);
    extra->state = REST_IN_CELL;
}

/* The extra is not needed any more for what `flag` says. */
static void extra_end(struct cell *cell, uint64_t *w, uint64_t flag)
{
    struct extra *extra = *extra_of(cell);
    *w &= ~flag;
    if (*w & EXTRA)
        return;
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
    go_place note;
    bool write;
    rf_epoch race; /* what it races with; 0: nothing */
    go_place race_note;
    bool race_writes;
    unsigned race_byte;
};

static inline bool step_race(struct step *step, rf_epoch epoch, go_place note, bool writes)
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
#define FT_PLACE go_place
#define FT_WORD unsigned __int128
#define FT_NOW(t) ((t)->now)
#define FT_IS_NOW(t, e) ((e) == (t)->now)
#define FT_ORDERED(t, e) view_knows(&(t)->g->view, e)
#define FT_EXEMPT(d, t, e) false
#define FT_RACE(d, e, note, writes) step_race(d, e, note, writes)
#define FT_RACE_IN_MAP(d, t, map, cell) step_race_in_set(d, map)
#define FT_NEW_MAP(d) ((void)(d), readers_new())
#define FT_PUT(d, map, cell, e, note) readers_put(map, &(d)->g->view, e, place_note(note))
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

#define INLINE static inline __attribute__((always_inline))

static inline go_place read_place(uint64_t w, uint64_t r, go_place w_note, go_place r_note)
{
    return r == w ? w_note : r_note;
}

static inline void place_put(go_place *into, go_place place)
{
    if (*into != place)
        *into = place;
}

/* The step on one history. Scalars, since a struct that is written in parts and read as a whole makes the processor wait. */
INLINE void history_step(struct step *step, uint64_t *w, uint64_t *r, go_place *w_note, go_place *r_note, unsigned byte)
{
    struct fg_cell cell;
    cell.word = (unsigned __int128)*w << 64 | *r;
    cell.write_note = *w_note;
    cell.read_note = read_place(*w, *r, *w_note, *r_note);
    bool race = step->write ? fg_write(step, step, &cell, 0, step->note) : fg_read(step, step, &cell, 0, step->note);
    if (__builtin_expect(race, 0))
        step->race_byte = byte;
    *w = (uint64_t)(cell.word >> 64);
    *r = (uint64_t)cell.word;
    place_put(w_note, cell.write_note);
    if (*r != *w)
        place_put(r_note, cell.read_note);
}

/* The history of the bytes in MASK, and that of those which are not. */
static inline struct part head_of(const struct cell *cell, uint64_t w)
{
    const struct cell_notes *notes = notes_of(cell);
    return (struct part){ w & ~FLAGS, cell->r, notes->w, read_place(w & ~FLAGS, cell->r, notes->w, notes->r) };
}

static inline struct part others_of(const struct cell *cell, uint64_t w)
{
    const struct cell_notes *notes = notes_of(cell);
    return w & OTHERS ? (struct part){ w & ~FLAGS, w & ~FLAGS, notes->w, notes->w } : (struct part){ 0 };
}

static struct part part_copied(struct part part)
{
    if (part.r & RF_TAG)
        part.r = RF_TAG | readers_copied((uint32_t)part.r);
    return part;
}

static inline struct part *extra_bytes(struct extra *extra)
{
    if (!extra->bytes)
        __atomic_store_n(&extra->bytes, take(7 * sizeof *extra->bytes), __ATOMIC_RELEASE);
    return extra->bytes;
}

/* The seven bytes get histories of their own. */
static struct extra *rest_apart(struct cell *cell, uint64_t *w)
{
    struct extra *extra = extra_new(cell, w, SPLIT);
    if (extra->state != REST_IN_CELL)
        return extra;
    struct part head = head_of(cell, *w), others = others_of(cell, *w);
    unsigned mask = mask_of(*w);
    bool moved = false; /* a set of readers has one owner: the first who gets it; the others have copies */
    if (mask >> 1 == 0x7f || mask >> 1 == 0) {
        extra->rest = mask >> 1 ? mask & 1 ? part_copied(head) : head : others;
        __atomic_store_n(&extra->state, REST_IS_ONE, __ATOMIC_RELEASE);
    } else {
        struct part *bytes = extra_bytes(extra);
        for (unsigned i = 1; i < 8; i++) {
            bool mine = mask >> i & 1;
            bytes[i - 1] = !mine ? others : moved || mask & 1 ? part_copied(head) : head;
            moved |= mine;
        }
        __atomic_store_n(&extra->state, REST_IS_BYTES, __ATOMIC_RELEASE);
    }
    if (!(mask & 1)) {
        __atomic_store_n(&cell->r, others.r, __ATOMIC_RELAXED);
        notes_of(cell)->r = others.r_note;
        *w = (*w & FLAGS) | others.w;
    }
    *w = with_mask(*w & ~OTHERS, mask & 1 || others.w ? 1 : 0);
    return extra;
}

static struct part *bytes_apart(struct cell *cell, uint64_t *w)
{
    struct extra *extra = rest_apart(cell, w);
    if (extra->state == REST_IS_BYTES)
        return extra->bytes;
    struct part *bytes = extra_bytes(extra);
    for (unsigned i = 0; i < 7; i++)
        bytes[i] = i < 6 ? part_copied(extra->rest) : extra->rest;
    extra->rest = (struct part){ 0 };
    __atomic_store_n(&extra->state, REST_IS_BYTES, __ATOMIC_RELEASE);
    return bytes;
}

static inline bool part_equal(const struct part *a, const struct part *b)
{
    return a->w == b->w && a->r == b->r && a->w_note == b->w_note && (a->r == a->w || a->r_note == b->r_note) &&
           !(a->r & RF_TAG);
}

/* After an access to the whole granule: if all bytes have one history now, the cell tells it all. */
static void rest_back(struct cell *cell, uint64_t *w)
{
    struct extra *extra = *extra_of(cell);
    struct part head = head_of(cell, *w);
    unsigned count = extra->state == REST_IS_BYTES ? 7 : 1;
    const struct part *rest = extra->state == REST_IS_BYTES ? extra->bytes : &extra->rest;
    for (unsigned i = 0; i < count; i++)
        if (!part_equal(&rest[i], &head))
            return;
    extra->state = REST_IN_CELL;
    *w |= MASK;
    extra_end(cell, w, SPLIT);
}

static void step_on(struct step *step, struct part *part, unsigned byte)
{
    history_step(step, &part->w, &part->r, &part->w_note, &part->r_note, byte);
}

INLINE void step_head(struct step *step, struct cell *cell, uint64_t *w, unsigned byte)
{
    struct cell_notes *notes = notes_of(cell);
    uint64_t epoch = *w & ~FLAGS, r = cell->r;
    history_step(step, &epoch, &r, &notes->w, &notes->r, byte);
    __atomic_store_n(&cell->r, r, __ATOMIC_RELAXED);
    *w = (*w & FLAGS) | epoch;
}

/* The step on bytes `mask` where the cell can tell the result; false, and nothing has changed, if it cannot. */
static bool step_in_cell(struct step *step, struct cell *cell, uint64_t *w, unsigned mask)
{
    unsigned has = mask_of(*w), byte = (unsigned)__builtin_ctz(mask);
    uint64_t epoch = *w & ~FLAGS, r = cell->r, flags = 0;
    struct part head = head_of(cell, *w);
    bool others = *w & OTHERS, all = (mask & has) == has;    /* all that have the cell's history are accessed */
    bool here = r == step->now && head.r_note == step->note; /* R is of this place in the program and this epoch */
    if (step->write) {
        /* Of bytes that were only written, a check against R of the same W is the stricter one (detect/fasttrack.h, 3). */
        if (all && (!others || mask == 0xff)) {
            step_head(step, cell, w, byte);
            *w = with_mask(*w & ~OTHERS, mask);
            return true;
        }
        if (others || mask & has || !here || epoch != step->now || head.w_note != step->note)
            return false;
        *w |= (uint64_t)mask << MASK_SHIFT;
        return true;
    }
    if ((mask & has) == mask && r == step->now)
        return true;
    if (mask == has)
        flags = *w & OTHERS;
    else if (!(mask & ~has)) { /* some of them: the others are left as they were written */
        if (has != 0xff || r != epoch)
            return false;
        flags = OTHERS;
    } else if (!(mask & has) && has) { /* more of the same */
        if (!here || (!others && epoch))
            return false;
        *w |= (uint64_t)mask << MASK_SHIFT;
        return true;
    } else { /* these, and more */
        bool replaces = !(r & RF_TAG) && r != step->now && view_knows(&step->g->view, r);
        if (!all || (!others && epoch) || (!replaces && !here))
            return false;
        flags = *w & OTHERS;
    }
    step_head(step, cell, w, byte);
    *w = with_mask(*w & ~OTHERS, mask) | flags;
    return true;
}

static __attribute__((noinline)) void step_parts(struct step *step, struct cell *cell, uint64_t *w, unsigned mask)
{
    if (!(*w & SPLIT) && step_in_cell(step, cell, w, mask))
        return;
    struct extra *extra = rest_apart(cell, w);
    if (mask & 1) {
        step_head(step, cell, w, 0);
        *w = with_mask(*w, 1);
    }
    if (mask == 1)
        return;
    if ((mask & 0xfe) == 0xfe && extra->state == REST_IS_ONE) {
        step_on(step, &extra->rest, 1);
    } else {
        struct part *bytes = extra->state == REST_IS_BYTES ? extra->bytes : bytes_apart(cell, w);
        for (unsigned left = mask & 0xfe; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            step_on(step, &bytes[i - 1], i);
        }
    }
    if (mask == 0xff)
        rest_back(cell, w);
}

/* The flags that stay if an access to this byte needs the short step below; all ones if it needs more. The cell tells the byte's
 * history: that of no other byte, or, to one who reads it, that others were written with it; of the first byte also where the others
 * have theirs elsewhere. Who is the first to read a byte of a granule that was written as a whole leaves the others as they were. */
INLINE uint64_t flags_for_short(uint64_t w, uint64_t r, unsigned byte, bool write)
{
    uint64_t bit = UINT64_C(1) << (MASK_SHIFT + byte), flags = w & FLAGS & ~bit;
    if (!flags || (!write && flags == OTHERS && w & bit) || (flags == SPLIT && !byte))
        return flags;
    if (!write && (w & FLAGS) == MASK && r == (w & ~FLAGS))
        return OTHERS;
    return UINT64_MAX;
}

/* The step of most accesses: R is one epoch, and it happens before now. false, and nothing has changed, if it is not as simple. The cell
 * is not locked; w and r were just read from it. */
INLINE bool step_shortly(struct goroutine *g, struct cell *cell, uint64_t w, uint64_t r, unsigned byte, go_place note,
                         bool write)
{
    struct step step = { .now = g->now };
    uint64_t flags = flags_for_short(w, r, byte, write);
    if (!__atomic_compare_exchange_n(&cell->w, &w, w | LOCKED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    if (__builtin_expect(__atomic_load_n(&cell->r, __ATOMIC_RELAXED) != r, 0)) {
        cell_unlock(cell, w);
        return false;
    }
    cell_touch(cell);
    g->used = true;
    struct cell_notes *notes = notes_of(cell);
    struct fg_cell history = { .word = (unsigned __int128)(w & ~FLAGS) << 64 | r };
    if (write) {
        fg_write_exclusive(&step, &history, note);
        place_put(&notes->w, history.write_note);
    } else {
        fg_read_exclusive(&step, &history, note);
        place_put(&notes->r, history.read_note);
    }
    __atomic_store_n(&cell->r, (uint64_t)history.word, __ATOMIC_RELAXED);
    cell_unlock(cell, (uint64_t)(history.word >> 64) | flags | UINT64_C(1) << (MASK_SHIFT + byte));
    return true;
}

/* A byte that several have read, and nobody has written since unseen by this goroutine, is read. [FT' READ SHARED AGAIN], or FIRST; or, if
 * all of the others happen before now, it is the only one that counts (Wood, Invariant 2), and R, what is returned, is its epoch: the
 * caller ends the set, when R does not name it any more. */
static uint64_t step_among_readers(struct goroutine *g, uint64_t r, go_place note)
{
    uint32_t set = (uint32_t)r, other;
    if (readers_put_again(set, g->now, note_of_place(g, note)))
        return r;
    if (readers_unordered(set, &g->view, &other)) {
        readers_put(set, &g->view, g->now, note_of_place(g, note));
        return r;
    }
    return g->now;
}

/* The same for a byte that has a history of its own, beside the cell or in it, also where several have read it. */
static bool step_on_byte(struct goroutine *g, struct cell *cell, unsigned byte, go_place note, bool write)
{
    struct step step = { .now = g->now };
    uint64_t w = __atomic_load_n(&cell->w, __ATOMIC_RELAXED);
    if (mask_of(w) != 1u << byte && !(w & SPLIT)) /* most of those that need more */
        return false;
    w = cell_lock(cell);
    struct extra *extra = w & SPLIT && byte ? *extra_of(cell) : NULL;
    struct part *part = extra && extra->state == REST_IS_BYTES ? &extra->bytes[byte - 1] : NULL;
    uint64_t r = part ? part->r : cell->r;
    bool done = false;
    g->used = true;
    if (w & OBJECT || (!part && mask_of(w) != 1u << byte))
        ; /* needs more */
    else if (r & RF_TAG) {
        done = !write && view_knows(&g->view, part ? part->w : w & ~FLAGS);
        uint64_t after = done ? step_among_readers(g, r, note) : r;
        if (after != r) {
            __atomic_store_n(part ? &part->r : &cell->r, after, __ATOMIC_RELAXED);
            place_put(part ? &part->r_note : &notes_of(cell)->r, note);
            readers_end((uint32_t)r);
        }
    } else if (part && view_knows(&g->view, r)) {
        struct fg_cell history = { .word = (unsigned __int128)part->w << 64 | r };
        if (write) {
            fg_write_exclusive(&step, &history, note);
            part->w_note = history.write_note;
        } else {
            fg_read_exclusive(&step, &history, note);
            part->r_note = history.read_note;
        }
        __atomic_store_n(&part->w, (uint64_t)(history.word >> 64), __ATOMIC_RELAXED);
        __atomic_store_n(&part->r, (uint64_t)history.word, __ATOMIC_RELAXED);
        done = true;
    }
    cell_unlock(cell, w);
    return done;
}

/* The bytes of the mask, which is not empty. The cell is locked. */
INLINE void step_bytes(struct step *step, struct cell *cell, uint64_t *w, unsigned mask)
{
    unsigned has = mask_of(*w);
    if ((mask == has || !has) && !(*w & SPLIT && mask != 1) && !(*w & OTHERS && step->write)) {
        step_head(step, cell, w, (unsigned)__builtin_ctz(mask));
        *w = with_mask(*w, mask);
    } else
        step_parts(step, cell, w, mask);
}

#endif
