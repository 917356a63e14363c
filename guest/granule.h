/* The history of a granule: from a word to its slices, one step of FastTrack on each, and back.
 *
 * 1. Bytes that have one history form a slice: a mask, and FastTrack's cell, W and R (detect/fasttrack.inc), named by moments.
 * 2. Atomic accesses have slices of their own, beside the plain ones and never mixed with them: a set of moments. An atomic access is
 *    checked against the plain slices of its bytes, a plain one also against the atomic slices; two atomic ones do not race. A moment
 *    leaves an atomic set when a later one happens after it and conflicts with all that it conflicts with.
 * 3. Equal slices are joined; what fits a word (guest/hot.h, 2) goes back into one.
 * 4. One moment of atomic accesses fits a word beside a plain write of the whole granule, two of the same bytes if there is none.
 */
#ifndef RF_GUEST_GRANULE_H
#define RF_GUEST_GRANULE_H

#include "core/readmap.h"
#include "guest/access.h"
#include "guest/accu.h"
#include "guest/cells.h"
#include "guest/depot.h"
#include "guest/units.h"

#define RF_MOMENT_MASK ((UINT64_C(1) << 27) - 1)
#define RF_WRITES_BIT (UINT64_C(1) << 27)
#define RF_ODD_BIT (UINT64_C(1) << 55)

#define RF_WORD_M(word) ((unsigned)((word) >> 56))
#define RF_WORD_Y(word) ((uint32_t)((word) >> 28 & RF_MOMENT_MASK))
#define RF_WORD_X(word) ((uint32_t)((word)&RF_MOMENT_MASK))
#define RF_WORD(m, y, x) ((uint64_t)(m) << 56 | (uint64_t)(y) << 28 | (x))

/* M of a word that has atomic accesses to bytes that are aligned to their number, which the lower four bits tell: 1, 2 and 3, 4 to 7,
 * 8 to 15 for eight, four, two bytes, and one. */
#define RF_ATOMIC_TWO 0xe0u
#define RF_ATOMIC_ONE 0xf0u

static inline bool rf_word_is_mixed(uint64_t word)
{
    return (word & (RF_ODD_BIT | RF_WRITES_BIT)) == (RF_ODD_BIT | RF_WRITES_BIT) && RF_WORD_Y(word) &&
           RF_WORD_M(word) < RF_ATOMIC_TWO;
}

static inline bool rf_word_is_atomic(uint64_t word)
{
    return (word & (RF_ODD_BIT | RF_WRITES_BIT)) == (RF_ODD_BIT | RF_WRITES_BIT) && RF_WORD_Y(word) &&
           RF_WORD_M(word) >= RF_ATOMIC_TWO;
}

/* X is no record, then, and Y no read map. */
static inline bool rf_word_has_lanes(uint64_t word)
{
    return RF_WORD_X(word) >= RF_LANES_FIRST;
}

static inline bool rf_word_is_record(uint64_t word)
{
    return (word & (RF_ODD_BIT | RF_WRITES_BIT)) == (RF_ODD_BIT | RF_WRITES_BIT) && !RF_WORD_Y(word);
}

/* All bytes were read by two threads. */
static inline bool rf_word_has_two(uint64_t word)
{
    return RF_WORD_M(word) == 0xff && !(word & (RF_ODD_BIT | RF_WRITES_BIT)) && rf_cell_is_pair(RF_WORD_X(word));
}

/* It names a read map, a record or lanes: only who has the stripe's lock may replace it, but for guest/lanes.h, 5. */
static inline bool rf_word_has_units(uint64_t word)
{
    return ((word & RF_ODD_BIT) && !((word & RF_WRITES_BIT) && RF_WORD_Y(word))) || rf_word_has_lanes(word);
}

static inline bool rf_word_has_map(uint64_t word)
{
    return (word & (RF_ODD_BIT | RF_WRITES_BIT)) == RF_ODD_BIT;
}

/* With the stripe's lock: nobody changes the word's map until rf_word_let_go(), even if it is given back (guest/units.h, 4). */
static inline void rf_word_hold(uint64_t word)
{
    if (__builtin_expect(rf_accu, 0) && rf_word_has_map(word))
        rf_readers_lock(rf_readers_at(RF_WORD_Y(word)));
}

static inline void rf_word_let_go(uint64_t word)
{
    if (__builtin_expect(rf_accu, 0) && rf_word_has_map(word))
        rf_readers_unlock(rf_readers_at(RF_WORD_Y(word)));
}

/* How M names these bytes; 0: it cannot. And back. */
static inline unsigned rf_atomic_code(unsigned mask)
{
    unsigned first = (unsigned)__builtin_ctz(mask), run = mask >> first, size = (unsigned)__builtin_ctz(run + 1);
    unsigned log = size == 8 ? 3 : size / 2;
    bool fits = run == (1u << size) - 1 && !(size & (size - 1)) && !(first & (size - 1));
    return fits ? (8 + first) >> log : 0;
}

static inline unsigned rf_atomic_mask(uint64_t word)
{
    extern const uint8_t rf_atomic_masks[16];
    return rf_atomic_masks[RF_WORD_M(word) & 15];
}

/* The word's atomic accesses to these bytes include one of the calling thread's present epoch, which writes if `writes`. The thread need
 * not be busy: the moments of its epoch stay what they are. */
static inline bool rf_word_atomic_repeats(uint64_t word, unsigned mask, bool writes)
{
    if (!rf_word_is_atomic(word) || (mask & ~rf_atomic_mask(word)))
        return false;
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_M(word) < RF_ATOMIC_ONE ? RF_WORD_X(word) : 0;
    uint32_t own = y - rf_hot.first < rf_hot.span ? y : x;
    return own - rf_hot.first < rf_hot.span && (!writes || (rf_note_flags(rf_moment_note(own)) & RF_A_WRITE));
}

/* The bytes that were written in Y, and those that were only read in it, of a word of one of the two plain forms, or mixed. */
struct rf_masks {
    uint8_t written, read;
};

#define RF_LOOSE_NAME(mask) RF_LOOSE_##mask,
enum { RF_LOOSE_BEFORE = RF_LOOSE_FIRST - 1, RF_LOOSE_MASKS(RF_LOOSE_NAME) RF_LOOSE_END };
_Static_assert(RF_LOOSE_END <= RF_ATOMIC_TWO, "what M may be");

extern const struct rf_masks rf_mixed_masks[RF_LOOSE_END];
extern const uint8_t rf_loose_codes[256]; /* of the bytes that were written; 0: there is none */

static inline struct rf_masks rf_word_masks(uint64_t word)
{
    uint8_t m = (uint8_t)RF_WORD_M(word);
    if (word & RF_ODD_BIT)
        return rf_mixed_masks[m];
    return word & RF_WRITES_BIT ? (struct rf_masks){ m, 0 } : (struct rf_masks){ 0, m };
}

/* The mask never has one byte of a pair without the other. */
static inline bool rf_mask_is_paired(unsigned mask)
{
    return !((mask ^ mask >> 1) & 0x55);
}

/* Its pairs as digits of base three. */
static inline unsigned rf_pairs_code(unsigned mask)
{
    return (mask & 1) + (mask >> 2 & 1) * 3 + (mask >> 4 & 1) * 9 + (mask >> 6 & 1) * 27;
}

/* The word for bytes written in y, others that were read in it, and x. false: there is no form for these bytes. */
static inline __attribute__((always_inline)) bool rf_word_of(uint32_t y, uint32_t x, unsigned written, unsigned read, uint64_t *word)
{
    if (!read) {
        *word = RF_WORD(written, y, x) | RF_WRITES_BIT;
        return true;
    }
    if (!written) {
        *word = RF_WORD(read, y, x);
        return true;
    }
    bool paired = rf_mask_is_paired(written) && rf_mask_is_paired(read), loose = !paired && (written | read) == 0xff;
    unsigned code = loose ? rf_loose_codes[written] : 2 * rf_pairs_code(written) + rf_pairs_code(read);
    *word = RF_WORD(code, y, x) | RF_ODD_BIT | RF_WRITES_BIT;
    return loose ? code : paired;
}

/* The word for bytes written in y, bytes that were written in x and read in y, and others that were written in x. x may be a pair. */
static inline __attribute__((always_inline)) bool rf_word_make(uint32_t y, uint32_t x, unsigned written, unsigned read, uint64_t *word)
{
    read &= ~written;
    if ((written | read) == 0xff)
        x = written == 0xff ? 0 : rf_cell_w(x);
    return rf_word_of(y, x, written, read, word);
}

/* An access, as the rules see it. */
struct rf_step {
    struct rf_self *self;
    struct rf_stripe *stripe; /* NULL: its lock is not held, so no unit may be taken or changed */
    uint32_t now;             /* its moment */
    unsigned flags;
    bool fasttrack;    /* AccuLock is not asked for: the compiler knows it, too, where this is a constant */
    bool allowed;      /* it happens, even if it races (guest/refusal.h) */
    bool passes;       /* it is not recorded (guest/pacer.h); then it has no moment, now is 0 */
    bool needs_stripe; /* the step cannot be done without */
    uint32_t race;     /* the moment that it races with; 0: none */
    bool race_writes;  /* that was a write */
    unsigned race_mask; /* ... and the bytes of this granule that have their history in common with the racing ones */
    uint64_t old, made; /* AccuLock: what the step made of what, whenever it would make the same of it while the race is one; else made is 0 */
};

static inline bool rf_step_accu(const struct rf_step *step)
{
    return !step->fasttrack && __builtin_expect(rf_accu, 0);
}

/* e happens before now, or is in the same thread. */
static inline __attribute__((always_inline)) bool rf_step_ordered(const struct rf_step *step, uint32_t moment)
{
    return rf_moment_is_own(step->self, moment) || rf_moment_time(moment) <= rf_clock_get(&step->self->thread.clock, rf_moment_slot(moment));
}

/* The same for all that a cell names. */
static inline __attribute__((always_inline)) bool rf_step_ordered_cell(const struct rf_step *step, uint32_t name)
{
    if (__builtin_expect(rf_cell_is_pair(name), 0))
        return rf_step_ordered(step, rf_cell_w(name)) && rf_step_ordered(step, rf_cell_r(name));
    return rf_step_ordered(step, name);
}

/* Two accesses inside transactions never race (guest/transactions.h, 5). */
static inline bool rf_step_exempt(const struct rf_step *step, uint32_t moment)
{
    return __builtin_expect(step->flags & RF_A_TXN, 0) && rf_note_flags(rf_moment_note(moment)) & RF_A_TXN;
}

/* What protects this access, and it and that of a moment, which was a write or not: AccuLock's locksets. */
static inline rf_lockset rf_step_locks(const struct rf_step *step, bool writes)
{
    return rf_accu_locks(step->self, step->now, writes);
}

static inline rf_lockset rf_step_common(const struct rf_step *step, uint32_t moment, bool writes)
{
    return rf_locks_common(step->self, rf_accu_locks(step->self, moment, writes), rf_step_locks(step, step->flags & RF_A_WRITE));
}

/* Such an access does race with one now that conflicts with it. */
static inline bool rf_step_races_with(const struct rf_step *step, uint32_t moment, bool writes)
{
    if (rf_step_ordered(step, moment))
        return false;
    return __builtin_expect(rf_accu, 0) ? !rf_step_common(step, moment, writes) : !rf_step_exempt(step, moment);
}

/* AccuLock: of this thread, in the slot that it has now. */
static inline bool rf_step_mine(const struct rf_step *step, uint32_t moment)
{
    return rf_moment_slot(moment) == step->self->thread.slot && rf_moment_time(moment) >= step->self->thread.since;
}

/* A moment may leave a set, one of so many, when one of now takes its place. */
static inline __attribute__((always_inline)) bool rf_step_replaces(const struct rf_step *step, uint32_t moment, uint32_t count)
{
    if (rf_step_accu(step) && rf_multi) { /* rule 4 of detect/multilock.h, where it is easily seen */
        uint32_t locks = rf_moment_locks(step->now);
        return (!locks || locks == rf_moment_locks(moment)) && rf_step_ordered(step, moment);
    }
    if (rf_step_accu(step) && count < RF_ACCU_MANY)
        return rf_step_mine(step, moment);
    return rf_step_ordered(step, moment);
}

/* AccuLock: a read now takes the place of the read of a pair. The first one of an epoch has the fewest locks, and stays. */
static inline bool rf_accu_reads_on(const struct rf_step *step, uint32_t name)
{
    return !rf_cell_is_pair(name) || (rf_step_mine(step, rf_cell_r(name)) && !rf_moment_is_now(step->self, rf_cell_r(name)));
}

static inline bool rf_step_race(struct rf_step *step, uint32_t moment, bool writes)
{
    step->race = moment;
    step->race_writes = writes;
    return true;
}

/* The four operations on sets, as FastTrack's rules call them. Without the stripe they only say that they need it. */
static inline uint32_t rf_step_new_set(struct rf_step *step)
{
    step->needs_stripe |= !step->stripe;
    return step->stripe ? rf_readers_new(step->stripe) : 0;
}

/* Moments that happen before the new one are not needed beside it (Wood, Invariant 2). */
static inline enum rf_readmap_change rf_step_put(struct rf_step *step, uint32_t set, uint32_t moment)
{
    if (!step->stripe) {
        step->needs_stripe = true;
        return RF_READ_SAME;
    }
    struct rf_readers *readers = rf_readers_at(set);
    enum rf_readmap_change result = RF_READ_FIRST;
    for (uint32_t i = readers->count; i-- > 0;) {
        uint32_t old = rf_readers_list(readers)[i];
        if (moment != step->now)
            continue;
        if (rf_moment_is_now(step->self, old))
            return RF_READ_SAME;
        if (rf_moment_slot(old) == step->self->thread.slot)
            result = RF_READ_AGAIN;
        if (rf_step_ordered(step, old))
            rf_readers_remove(set, i);
    }
    rf_readers_add(set, moment);
    return result;
}

static inline bool rf_step_race_in_set(struct rf_step *step, uint32_t set)
{
    struct rf_readers *readers = rf_readers_at(set);
    uint32_t *list = rf_readers_list(readers);
    for (uint32_t i = 0; step->stripe && i < readers->count; i++)
        if (rf_step_races_with(step, list[i], false))
            return rf_step_race(step, list[i], false);
    step->needs_stripe |= !step->stripe;
    return false;
}

static inline void rf_step_end_set(struct rf_step *step, uint32_t set)
{
    if (step->stripe)
        rf_readers_end(step->stripe, set);
    else
        step->needs_stripe = true;
}

static inline uint32_t rf_step_copied_set(struct rf_step *step, uint32_t set)
{
    if (!step->stripe) {
        step->needs_stripe = true;
        return set;
    }
    uint32_t copy = rf_readers_new(step->stripe);
    for (uint32_t i = 0; i < rf_readers_at(set)->count; i++)
        rf_readers_add(copy, rf_readers_list(rf_readers_at(set))[i]);
    return copy;
}

#define FT_STATE struct rf_step
#define FT_THREAD struct rf_step
#define FT(name) ftm_##name
#define FT_EPOCH uint32_t
#define FT_WORD uint64_t
#define FT_NOW(t) ((t)->now)
#define FT_IS_NOW(t, e) (!((e) >> 31) && rf_moment_is_now((t)->self, e))
#define FT_ORDERED(t, e) rf_step_ordered(t, e)
#define FT_EXEMPT(d, t, e) rf_step_exempt(t, e)
#define FT_RACE(d, e, note, writes) rf_step_race(d, e, writes)
#define FT_RACE_IN_MAP(d, t, map, cell) rf_step_race_in_set(d, map)
#define FT_NEW_MAP(d) rf_step_new_set(d)
#define FT_PUT(d, map, cell, e, note) ((void)(note), rf_step_put(d, map, e))
#define FT_END(d, map, cell) rf_step_end_set(d, map)
#define FT_COPIED(d, map, cell) rf_step_copied_set(d, map)
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

/* AccuLock's entry of a thread in a set. */
static inline bool rf_accu_put(const struct rf_step *step, uint32_t set)
{
    struct rf_readers *readers = rf_readers_at(set);
    uint32_t count = readers->count, place = count;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t old = rf_readers_list(readers)[i];
        if (rf_moment_is_now(step->self, old))
            return false;
        if (!rf_step_replaces(step, old, readers->count))
            continue;
        if (place < count)
            rf_readers_remove(set, place); /* the last one of the list comes here, and has been looked at */
        place = i;
    }
    if (place < count)
        __atomic_store_n(&rf_readers_list(readers)[place], step->now, __ATOMIC_RELAXED);
    else
        rf_readers_add(set, step->now);
    return true;
}

static inline uint32_t rf_accu_set_of(struct rf_step *step, uint32_t moment)
{
    uint32_t set = rf_readers_new(step->stripe);
    rf_readers_add(set, moment);
    return set;
}

/* W's moment when its lockset is that. */
static inline uint64_t rf_accu_written(struct rf_step *step, rf_lockset locks)
{
    uint32_t now = locks & AL_SEVERAL ? rf_accu_several(step->self, step->now, locks) : step->now;
    return (uint64_t)now << 32 | now;
}

/* With the stripe's lock: AccuLock goes with no policy but compare-and-swap. */
#define AL_STATE struct rf_step
#define AL_THREAD struct rf_step
#define AL(name) alm_##name
#define AL_EPOCH uint32_t
#define AL_OWN_CELL
#define AL_CELL struct ftm_cell
#define AL_W(cell) ((uint32_t)((cell)->word >> 32))
#define AL_R(cell) ((uint32_t)(cell)->word)
#define AL_NOW(t) ((t)->now)
#define AL_IS_NOW(t, e) (!((e) >> 31) && rf_moment_is_now((t)->self, e))
#define AL_LOOKS_MINE(t, e) (!((e) >> 31) && rf_step_mine(t, e))
#define AL_IS_MINE(d, t, e) false
#define AL_ORDERED(t, e) rf_step_ordered(t, e)
#define AL_READ_LOCKS(d, t) rf_step_locks(t, false)
#define AL_WRITE_LOCKS(d, t) rf_step_locks(t, true)
#define AL_W_LOCKS(d, cell) rf_accu_locks((d)->self, AL_W(cell), true)
#define AL_R_LOCKS(d, cell) rf_accu_locks((d)->self, AL_R(cell), false)
#define AL_DISJOINT(d, a, b) (!rf_locks_common((d)->self, a, b))
#define AL_INTERSECT(d, a, b) rf_locks_common((d)->self, a, b)
#define AL_RACE_WITH_WRITE(d, t, cell) rf_step_race(d, AL_W(cell), true)
#define AL_RACE_WITH_READ(d, t, cell) rf_step_race(d, AL_R(cell), false)
#define AL_RACE_IN_MAP(d, t, cell) rf_step_race_in_set(d, AL_MAP(AL_R(cell)))
#define AL_SET_READ(d, t, cell, note) ((cell)->word = (uint64_t)AL_W(cell) << 32 | (t)->now)
#define AL_SET_WRITTEN(d, t, cell, note, locks) ((cell)->word = rf_accu_written(t, locks))
#define AL_SET_MAP(cell, map) ((cell)->word = (uint64_t)AL_W(cell) << 32 | AL_MAP_REF(map))
#define AL_TO_MAP(d, cell) AL_SET_MAP(cell, rf_accu_set_of(d, AL_R(cell)))
#define AL_PUT(d, t, cell, note) rf_accu_put(t, AL_MAP(AL_R(cell)))
#define AL_END(d, cell) rf_step_end_set(d, AL_MAP(AL_R(cell)))
#define AL_COPIED(d, cell) rf_step_copied_set(d, AL_MAP(AL_R(cell)))
#define AL_COUNT(d, counter) ((void)0)
#include "detect/acculock.inc"
#undef AL_STATE
#undef AL_THREAD
#undef AL_OWN_CELL
#undef AL_READ_LOCKS
#undef AL_WRITE_LOCKS
#undef AL_DISJOINT
#undef AL_INTERSECT
#undef AL_RACE_WITH_WRITE
#undef AL_RACE_WITH_READ
#undef AL_RACE_IN_MAP
#undef AL_TO_MAP
#undef AL_PUT
#undef AL_END
#undef AL_COPIED
#undef AL_COUNT

/* PACER's, outside of sampling periods; within them it is FastTrack. R repeats W when there was no read since. With the stripe's lock. Of a
 * set those go that happen before now, the thread's own among them: whoever races with such a read later races with this one, too, which is
 * the later one of the two. */
static inline void rf_pass_discard(struct rf_step *step, struct ftm_cell *cell)
{
    uint32_t r = (uint32_t)cell->word, w = (uint32_t)(cell->word >> 32), left = r;
    if (r >> 31) {
        uint32_t set = r & INT32_MAX;
        struct rf_readers *readers = rf_readers_at(set);
        for (uint32_t i = readers->count; i-- > 0;)
            if (rf_step_ordered(step, rf_readers_list(readers)[i]))
                rf_readers_remove(set, i);
        if (readers->count <= 1) {
            left = readers->count ? rf_readers_list(readers)[0] : w;
            rf_readers_end(step->stripe, set);
        }
    } else if (rf_step_ordered(step, r)) {
        left = w;
    }
    cell->word = (uint64_t)w << 32 | left;
}

static inline bool rf_pass_read_now(const struct rf_step *step, const struct ftm_cell *cell)
{
    uint32_t r = (uint32_t)cell->word, w = (uint32_t)(cell->word >> 32);
    if (!(r >> 31))
        return rf_moment_is_now(step->self, r) || rf_moment_is_now(step->self, w);
    struct rf_readers *readers = rf_readers_at(r & INT32_MAX);
    for (uint32_t i = 0; i < readers->count; i++)
        if (rf_moment_is_now(step->self, rf_readers_list(readers)[i]))
            return true;
    return rf_moment_is_now(step->self, w);
}

#define PC(name) pcm_##name
#define PC_STATE struct rf_step
#define PC_THREAD struct rf_step
#define PC_CELL struct ftm_cell
#define PC_READ_NOW(t, cell) rf_pass_read_now(t, cell)
#define PC_WRITTEN_NOW(t, cell) rf_moment_is_now((t)->self, (uint32_t)((cell)->word >> 32))
#define PC_CHECK_WRITE(d, t, cell)                                                                                           \
    (ftm_races_with_write(d, t, (uint32_t)((cell)->word >> 32)) && rf_step_race(d, (uint32_t)((cell)->word >> 32), true))
#define PC_CHECK_READS(d, t, cell, note) ftm_write_check(d, t, cell)
#define PC_SAMPLING(d) false
#define PC_RECORD_READ(d, t, cell, note) ((void)0)
#define PC_RECORD_WRITE(d, t, cell, note) ((void)0)
#define PC_DISCARD_READ(d, t, cell) rf_pass_discard(t, cell)
#define PC_FORGET(d, cell) ftm_clear(d, cell)
#include "detect/pacer.inc"

#define RF_IS_SET (UINT32_C(1) << 31) /* of a cell's R: it is the number of a set */

struct rf_slice {
    uint8_t mask;
    bool atomic;          /* then R is its only moment, or its set */
    struct ftm_cell cell; /* word: W, R */
};

static inline uint32_t rf_slice_w(const struct rf_slice *slice)
{
    return (uint32_t)(slice->cell.word >> 32);
}

static inline uint32_t rf_slice_r(const struct rf_slice *slice)
{
    return (uint32_t)slice->cell.word;
}

struct rf_slices {
    unsigned count;
    bool twofold; /* two are of the same bytes, both atomic or both not, and not in a set: rf_slices_gather() */
    struct rf_slice list[2 * RF_RECORD_MOST];
};

void rf_slices_of(uint64_t word, struct rf_slices *slices);
void rf_slices_end(struct rf_slices *slices, struct rf_step *step); /* the units that they name are given back */
/* The rules on one granule, with the stripe's lock and, for a word without units, compare-and-swap. guest/access.c */
void rf_step_locked(uint64_t *place, unsigned mask, struct rf_step *step);
/* The step on all bytes of the mask. */
void rf_slices_step(struct rf_slices *slices, unsigned mask, struct rf_step *step);
/* What that would race with, told in the step; nothing changes. Units are looked at under their lock. */
bool rf_slices_race(const struct rf_slices *slices, unsigned mask, struct rf_step *step);
/* Back to a word; takes a record if it must (step->stripe, or step->needs_stripe is set), that of the word they come from if it
 * has room. */
uint64_t rf_slices_word(struct rf_slices *slices, struct rf_step *step, uint64_t old);

void rf_word_clear(uint64_t *place); /* guest/ranges.c: back to "never accessed", units given back */
/* guest/access.c: a record, but not what its slices name, is given back. */
void rf_word_end_record(struct rf_stripe *stripe, uint64_t word);
/* `next` took the place of `old`, perhaps with its record: if not, that is given back. */
void rf_record_end_unless(struct rf_stripe *stripe, uint64_t old, uint64_t next);
/* What is left of a word when these bytes were never accessed. With the stripe's lock, which step->stripe is. */
uint64_t rf_word_without(struct rf_step *step, uint64_t word, unsigned mask);

void rf_slices_join(struct rf_slices *slices); /* equal ones become one, empty ones go */
/* A word with two atomic moments, or two of reads, has two slices of the same bytes; before they are changed they become one with a set,
 * taken from step->stripe. */
void rf_slices_gather(struct rf_slices *slices, struct rf_step *step);
uint64_t rf_slice_in_record(const struct rf_slice *slice);

/* What rf_slices_step() would make of a word without units, for a plain access in the cases that nearly all are: everything that the
 * access meets happens before it ([FT' READ EXCL], [FT' WRITE EXCL]). false: not such a case. */
static inline bool rf_word_quick(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
    __attribute__((always_inline));

/* AccuLock's step on a granule whose bytes were last written together, races included, which step->race tells: where it predicts one for
 * every block that is handed over by a lock, they are not rare. false: not such a case. */
bool rf_word_accu(struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next);
/* AccuLock's read of all bytes that have the word's read map, with that map's lock alone (guest/units.h, 4). false: it was not done. */
bool rf_accu_reads_map(const uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step);

/* The same for an atomic access, if all is ordered that it conflicts with (invariant 4). */
bool rf_word_atomic_quick(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next);

/* The same for a word that has atomic accesses to just these bytes: where atomics are used, nearly all. */
static inline __attribute__((always_inline)) bool rf_word_atomic_again(const struct rf_step *step, uint64_t word, uint64_t *next)
{
    unsigned m = RF_WORD_M(word), code = m & 15;
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), other = y, plain = 0;
    bool writes = step->flags & RF_A_WRITE;
    if (rf_step_replaces(step, y, 1) && (writes || !(rf_note_flags(rf_moment_note(y)) & RF_A_WRITE)))
        other = 0;
    if (m >= RF_ATOMIC_ONE) {
        plain = x;
        if (plain && (other || !rf_step_ordered(step, plain)))
            return false;
    } else if (!rf_step_replaces(step, x, 1) || !(writes || !(rf_note_flags(rf_moment_note(x)) & RF_A_WRITE))) {
        if (other)
            return false;
        other = x;
    }
    *next = (other ? RF_WORD(RF_ATOMIC_TWO | code, step->now, other) : RF_WORD(RF_ATOMIC_ONE | code, step->now, plain)) |
            RF_ODD_BIT | RF_WRITES_BIT;
    return true;
}

/* The same for what concerns records, with the stripe's lock: it is changed or taken, and *next is the word to be. */
bool rf_locked_quick(const uint64_t *place, const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next);

/* Whether an access to these bytes repeats one of the present epoch: nothing would change. No lock needed; `word` was loaded from
 * *place. */
bool rf_word_repeats(const uint64_t *place, uint64_t word, unsigned mask, unsigned flags);

/* An access to a granule whose Y is a moment of the present epoch: its bytes join Y. That is one moment for several places in the
 * program; which place it was for these bytes is kept in guest/nearby.h as long as there is room. */
static inline bool rf_word_join(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
    __attribute__((always_inline));

/* AccuLock: bytes of X may join Y, a moment of this epoch. What was written in this epoch may have a lockset of several writes, which
 * stays. Bytes that are read from the place that Y is (step->now) meet the write that those met which Y has: what there was to tell was
 * told then. */
static inline bool rf_accu_joins(const struct rf_step *step, uint32_t y, uint32_t x)
{
    if (rf_moment_locks(y) != step->self->locks)
        return false;
    if (step->flags & RF_A_WRITE)
        return rf_step_ordered_cell(step, x) && !rf_moment_is_now(step->self, rf_cell_w(x));
    if (!rf_accu_reads_on(step, x))
        return false;
    return rf_step_ordered_cell(step, x) || (y == step->now && rf_accu_tells_once());
}

static inline bool rf_word_join(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    bool writes = step->flags & RF_A_WRITE, written = word & RF_WRITES_BIT;
    if (!(word & RF_ODD_BIT) && (written || !writes)) { /* they are in M, or join it if it says the same of them */
        unsigned more = mask & ~RF_WORD_M(word);
        if (more && rf_step_accu(step)) {
            if (!rf_accu_joins(step, RF_WORD_Y(word), RF_WORD_X(word)))
                return false;
        } else if (more && !rf_step_ordered_cell(step, RF_WORD_X(word))) {
            return false;
        }
        if (!more || writes == written) {
            *next = word | (uint64_t)more << 56;
            if (more && RF_WORD_M(*next) == 0xff)
                *next = (*next & ~RF_MOMENT_MASK) | (written ? 0 : rf_cell_w(RF_WORD_X(word)));
            return true;
        }
    }
    if (rf_word_is_atomic(word) || rf_word_has_two(word))
        return false;
    struct rf_masks masks = rf_word_masks(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word);
    unsigned more = mask & ~(unsigned)(masks.written | masks.read);
    if (more && !rf_step_ordered_cell(step, x))
        return false;
    if (rf_step_accu(step)) {
        if (rf_moment_locks(y) != step->self->locks || (more && !writes && !rf_accu_reads_on(step, x)))
            return false;
        /* A write to bytes that were last written in X: it was unordered with a read that shared a lock, or has a lockset to keep. */
        if (writes && (mask & ~(unsigned)masks.written) &&
            (!rf_step_ordered_cell(step, x) || rf_moment_is_now(step->self, rf_cell_w(x))))
            return false;
    }
    if (step->flags & RF_A_WRITE)
        masks.written |= (uint8_t)mask;
    else
        masks.read |= (uint8_t)mask;
    return rf_word_make(y, x, masks.written, masks.read, next);
}

/* Nothing has to be told of the access of this moment, nor kept, beside one now. For AccuLock: either it is ordered, or there is a common
 * lock, and W's lockset, if both are writes, is that of the access now. */
static inline __attribute__((always_inline)) bool rf_step_passes(const struct rf_step *step, uint32_t moment, bool writes)
{
    if (rf_step_ordered(step, moment))
        return true;
    if (!rf_step_accu(step))
        return false;
    rf_lockset common = rf_step_common(step, moment, writes);
    return common && (!writes || !(step->flags & RF_A_WRITE) || common == rf_step_locks(step, true));
}

/* The same for all that a cell names. */
static inline __attribute__((always_inline)) bool rf_step_passes_cell(const struct rf_step *step, uint32_t name)
{
    return __builtin_expect(rf_cell_is_pair(name), 0) ? rf_step_ordered_cell(step, name) : rf_step_passes(step, name, true);
}

/* A read of all bytes that have one of the two cells of a word that says where they were written, and of no others. */
static inline __attribute__((always_inline)) bool rf_word_read_half(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), read;
    if (!rf_step_passes(step, y, true) || !rf_step_passes_cell(step, x) || rf_moment_is_now(step->self, rf_cell_r(x)))
        return false;
    if (rf_step_accu(step) && (rf_moment_is_now(step->self, y) || !rf_accu_reads_on(step, x)))
        return false;
    if (mask == (~m & 0xff) && (read = rf_cell_named(rf_cell_w(x), step->now))) {
        *next = RF_WORD(m, y, read) | RF_WRITES_BIT;
        return true;
    }
    if (mask != m || rf_cell_is_pair(x) || !(read = rf_cell_named(y, step->now)))
        return false;
    *next = RF_WORD(~m & 0xff, x, read) | RF_WRITES_BIT;
    return true;
}

/* An access to all bytes of a word that was read in two moments: those that happen before a read leave; a write comes after both. AccuLock's reads
 * replace their own thread's only, in a read map from now on. */
static inline __attribute__((always_inline)) bool rf_word_quick_two(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), w = rf_cell_w(x);
    bool after_y = rf_step_ordered(step, y), after_r = rf_step_ordered(step, rf_cell_r(x));
    if (mask != 0xff || !rf_step_ordered(step, w))
        return false;
    if (rf_step_accu(step) && (!(step->flags & RF_A_WRITE) || rf_moment_is_now(step->self, w)))
        return false;
    if (!(step->flags & RF_A_WRITE) && rf_moment_is_hot(rf_cell_r(x))) /* it repeats that, and changes nothing */
        return false;
    if (step->flags & RF_A_WRITE) {
        *next = RF_WORD(0xff, step->now, 0) | RF_WRITES_BIT;
        return after_y && after_r;
    }
    x = after_y && after_r ? w : after_y ? x : after_r ? rf_cell_named(w, y) : 0;
    *next = RF_WORD(0xff, step->now, x);
    return x || (after_y && after_r);
}

static inline bool rf_word_quick(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), now = step->now;
    if ((word & RF_ODD_BIT) && mask != 0xff)
        return false;
    if (rf_word_has_two(word))
        return rf_word_quick_two(step, word, mask, next);
    if (step->flags & RF_A_WRITE) {
        if (!rf_step_passes(step, y, word & RF_WRITES_BIT) || !rf_step_passes_cell(step, x))
            return false;
        if (rf_step_accu(step) &&
            (rf_moment_is_now(step->self, rf_cell_w(x)) || (y != now && rf_moment_is_now(step->self, y))))
            return false; /* what was written in this epoch may have a lockset of several writes, which stays */
        if (mask == 0xff) {
            *next = RF_WORD(0xff, now, 0) | RF_WRITES_BIT;
            return true;
        }
        if (!(word & RF_WRITES_BIT) && word) {
            if ((m & ~mask) && ((m | mask) != 0xff || !(x = rf_cell_named(rf_cell_w(x), y)))) /* all that is left was read in Y, */
                return false;
            *next = RF_WORD(mask, now, x) | RF_WRITES_BIT; /* or nothing */
            return true;
        }
        if (y == now && m) /* more bytes of the same */
            *next = (m | mask) == 0xff ? RF_WORD(0xff, now, 0) | RF_WRITES_BIT : word | (uint64_t)mask << 56;
        else if (m == 0xff || (m | mask) == 0xff) /* what is left was all written in Y */
            *next = RF_WORD(mask, now, y) | RF_WRITES_BIT;
        else if (!(m & ~mask)) /* or in X */
            *next = RF_WORD(mask, now, x) | RF_WRITES_BIT;
        else
            return false;
        return true;
    }
    if (word & RF_WRITES_BIT) {
        if (word & RF_ODD_BIT)
            return false;
        if (m != 0xff)
            return rf_word_read_half(step, word, mask, next);
        *next = RF_WORD(mask, now, y);
        return rf_step_passes(step, y, true);
    }
    if (!rf_step_passes_cell(step, x))
        return false;
    if (rf_step_accu(step) && (mask & ~m) && !rf_accu_reads_on(step, x))
        return false;
    if (y == now && m) {
        *next = RF_WORD(m | mask, now, (m | mask) == 0xff ? rf_cell_w(x) : x);
        return true;
    }
    if (rf_step_accu(step) && rf_moment_is_now(step->self, y)) /* the first read of the epoch has the fewest locks */
        return false;
    if (!rf_step_replaces(step, y, 1)) { /* it stays beside this one */
        bool guarded = rf_step_accu(step) && step->self->locks; /* guest/accu_access.h, 3 */
        if (mask != 0xff || m != 0xff || guarded || !(x = rf_cell_named(x, y)))
            return false;
        *next = RF_WORD(0xff, now, x);
        return true;
    }
    if ((m & ~mask) && ((m | mask) != 0xff || !(x = rf_cell_named(rf_cell_w(x), y)))) /* the rest was read in Y, or none */
        return false;
    *next = RF_WORD(mask, now, mask == 0xff ? rf_cell_w(x) : x);
    return true;
}

#endif
