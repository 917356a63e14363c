/* FastTrack, as Wood's thesis states it in section 5.2: the last read also holds the last write.
 *
 * 1. All writes so far, and all reads before the last write, happen before W or in W.           (Wood, Invariant 1)
 * 2. If R is a set of epochs, every access so far happens before one of them.                   (Invariant 2)
 * 3. If R is one epoch, every access so far happens before it or in it.                         (Invariant 3)
 *    So a check against R alone suffices wherever R is one epoch that happens before now.
 * All three hold until the first race on the variable; after it the history goes on as if the access had been allowed.
 *
 * The history is one word, W in its upper half and R in its lower; each rule reads it once and replaces it at most once, so that a
 * policy can make the step atomic with one compare-and-swap. detect/fasttrack.inc holds the rules; they exist here for narrow words
 * (two epochs of 32 bits) and for wide ones (of 64), which take over when a program has more threads, or longer-lived ones, than
 * narrow epochs can name.
 */
#ifndef RF_DETECT_FASTTRACK_H
#define RF_DETECT_FASTTRACK_H

#include "core/order.h"
#include "core/readmap.h"

/* A narrow epoch: the tag that makes it a reference to a read map, 11 bits of slot, 20 bits of time. */
#define FT_SLOT_BITS 11
#define FT_TIME_BITS 20

/* A note is 28 bits of an event's number: two of them, and the word, are 15 bytes. So a variable and its share of the read maps take
 * less than 16. */
#define FT_NOTE_BITS 28
#define FT_NOTE ((1u << FT_NOTE_BITS) - 1)

/* How often each state is entered: AccuLock's Table III. */
struct ft_counts {
    uint64_t read_exclusive, read_shared;
    uint64_t write_exclusive, write_shared;
};

struct ft {
    struct rf_engine engine;
    struct rf_order order;
    struct rf_readmaps readers;
    struct ft_counts counts;
};

#define ft_thread rf_thread

/* The first reader that does not happen before now; its epoch is 0 if all do. */
static inline struct rf_last_read ft_unordered(const struct ft *d, uint32_t map, uint32_t filter, const struct rf_thread *t)
{
    struct rf_reads reads = { filter, RF_ALL_LOCKS };
    struct rf_last_read found = { 0 };
    for (uint32_t from = 0;;) {
        struct rf_last_read read = rf_readmap_unordered(rf_readmap_at(&d->readers, map), &reads, &t->clock, &from);
        if (!read.epoch)
            return found;
        /* Of several that of the first thread in the trace: workers may give slots in other orders. */
        if (!rf_order_exempt(&d->order, t, read.epoch) &&
            (!found.epoch || rf_order_owner(&d->order, read.epoch) < rf_order_owner(&d->order, found.epoch)))
            found = read;
    }
}

/* Words and notes of neighbours are not aligned: they are for one thread, which takes them as they come. */
struct __attribute__((packed)) ft_cell {
    uint64_t word;
    uint8_t notes[7]; /* of the write, then of the read, or the map's filter; the lower bits first */
};

_Static_assert(sizeof(struct ft_cell) == 15, "cells of pages have no gaps");

static inline uint32_t ft_write_note(const struct ft_cell *cell)
{
    uint32_t bits;
    memcpy(&bits, cell->notes, sizeof bits);
    return bits & FT_NOTE;
}

static inline uint32_t ft_read_note(const struct ft_cell *cell)
{
    uint32_t bits;
    memcpy(&bits, cell->notes + 3, sizeof bits);
    return bits >> 4;
}

static inline void ft_set_read_note(struct ft_cell *cell, uint32_t note)
{
    uint32_t bits = (cell->notes[3] & 15u) | note << 4;
    memcpy(cell->notes + 3, &bits, sizeof bits);
}

static inline void ft_set_notes(struct ft_cell *cell, uint32_t note)
{
    uint32_t low = note, high = (note >> 24 & 15) | note << 4;
    memcpy(cell->notes, &low, sizeof low);
    memcpy(cell->notes + 3, &high, sizeof high);
}

/* Readers are told apart by slots: whoever had a thread's slot before it happens before it. */
static inline enum rf_readmap_change ft_put(struct ft *d, uint32_t map, uint32_t *filter, rf_epoch epoch, uint32_t note)
{
    struct rf_reads reads = { *filter, RF_ALL_LOCKS };
    rf_epoch first = rf_epoch_make(rf_epoch_slot(epoch), 0);
    enum rf_readmap_change change = rf_readmap_put(&d->readers, map, &reads, first, epoch, note, RF_ALL_LOCKS);
    *filter = reads.filter;
    return change;
}

static inline void ft_end(struct ft *d, uint32_t map, uint32_t filter)
{
    rf_readmap_end(&d->readers, map, &(struct rf_reads){ filter, RF_ALL_LOCKS });
}

static inline uint32_t ft_copied(struct ft *d, uint32_t map, uint32_t filter)
{
    return rf_readmap_copy(&d->readers, map, &(struct rf_reads){ filter, RF_ALL_LOCKS });
}

static inline bool ft_race(struct ft *d, rf_epoch earlier, uint32_t note, bool writes)
{
    d->engine.first = (struct rf_side){
        .thread = rf_order_owner(&d->order, earlier),
        .note = note,
        .note_bits = FT_NOTE_BITS,
        .known = true,
        .writes = writes,
        .locks = RF_ALL_LOCKS
    };
    return true;
}

static inline bool ft_race_in_map(struct ft *d, const struct rf_thread *t, uint32_t map, uint32_t filter)
{
    struct rf_last_read read = ft_unordered(d, map, filter, t);
    return read.epoch && ft_race(d, read.epoch, read.note, false);
}

static inline rf_epoch ft_wide_of(uint32_t narrow)
{
    return rf_epoch_make(narrow >> FT_TIME_BITS, narrow & ((1u << FT_TIME_BITS) - 1));
}

#define FT_STATE struct ft
#define FT_THREAD struct rf_thread
#define FT_EXEMPT(d, t, e) rf_order_exempt(&(d)->order, t, e)
#define FT_RACE_IN_MAP(d, t, map, cell) ft_race_in_map(d, t, map, FT(read_note)(cell))
#define FT_NEW_MAP(d) rf_readmap_new(&(d)->readers)
#define FT_PUT(d, map, filter, e, note) ft_put(d, map, filter, FT_WIDE_OF(e), note)
#define FT_END(d, map, cell) ft_end(d, map, FT(read_note)(cell))
#define FT_COPIED(d, map, cell) ft_copied(d, map, FT(read_note)(cell))
#define FT_COUNT(d, counter) ((d)->counts.counter++)

#define FT_OWN_CELL
#define FT(name) ft_##name
#define FT_EPOCH uint32_t
#define FT_WORD uint64_t
#define FT_WIDE_OF(e) ft_wide_of(e)
#define FT_NOW(t) ((t)->narrow)
#define FT_IS_NOW(t, e) ((e) == (t)->narrow)
#define FT_ORDERED(t, e) rf_epoch_leq(ft_wide_of(e), &(t)->clock)
#define FT_RACE(d, e, note, writes) ft_race(d, ft_wide_of(e), note, writes)
#include "detect/fasttrack.inc"
#undef FT_WIDE_OF
#undef FT_OWN_CELL

#define FT(name) ftw_##name
#define FT_EPOCH uint64_t
#define FT_WORD unsigned __int128
#define FT_WIDE_OF(e) (e)
#define FT_NOW(t) ((t)->epoch)
#define FT_IS_NOW(t, e) ((e) == (t)->epoch)
#define FT_ORDERED(t, e) rf_epoch_leq(e, &(t)->clock)
#define FT_RACE(d, e, note, writes) ft_race(d, e, note, writes)
#include "detect/fasttrack.inc"
#undef FT_WIDE_OF

#undef FT_STATE
#undef FT_THREAD
#undef FT_EXEMPT
#undef FT_RACE_IN_MAP
#undef FT_NEW_MAP
#undef FT_PUT
#undef FT_END
#undef FT_COPIED
#undef FT_COUNT

static inline void ft_init(struct ft *d)
{
    rf_order_init(&d->order, &d->engine);
    rf_order_narrow(&d->order, FT_SLOT_BITS, FT_TIME_BITS);
    rf_readmaps_init(&d->readers, d->engine.memory);
}

static inline struct rf_thread *ft_thread_at(struct ft *d, uint32_t thread)
{
    return rf_order_thread(&d->order, thread);
}

static inline void ft_sync(struct ft *d, struct rf_thread *t, const struct rf_event *event)
{
    rf_order_sync(&d->order, t, event);
}

static inline void ft_commit_end(struct ft *d, struct rf_thread *t, const struct rf_event *event)
{
    rf_order_commit_end(&d->order, t, event);
}

/* Narrow epochs no longer name every thread: the driver must give each cell its wide form before the next access. */
static inline bool ft_must_widen(const struct ft *d)
{
    return d->order.overflow;
}

static inline bool ftw_must_widen(const struct ft *d)
{
    (void)d;
    return false;
}

static inline void ft_widened(struct ft *d)
{
    rf_order_widen(&d->order);
}

static inline uint64_t ft_wide_word(uint32_t narrow)
{
    return narrow >> 31 ? RF_TAG | (narrow & INT32_MAX) : ft_wide_of(narrow);
}

static inline void ft_widen(struct ftw_cell *wide, const struct ft_cell *narrow)
{
    uint32_t w = (uint32_t)(narrow->word >> 32), r = (uint32_t)narrow->word;
    wide->word = (unsigned __int128)ft_wide_word(w) << 64 | ft_wide_word(r);
    wide->write_note = ft_write_note(narrow);
    wide->read_note = ft_read_note(narrow);
}

static inline const struct rf_locksets *ft_locksets(const struct ft *d)
{
    (void)d;
    return NULL;
}

static inline rf_lockset ft_held(const struct rf_thread *t, bool write)
{
    (void)t, (void)write;
    return RF_ALL_LOCKS;
}

static inline void ft_statistics(const struct ft *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "read same epoch", d->engine.reads - d->counts.read_exclusive - d->counts.read_shared);
    emit(context, "read exclusive", d->counts.read_exclusive);
    emit(context, "read shared", d->counts.read_shared);
    emit(context, "write same epoch", d->engine.writes - d->counts.write_exclusive - d->counts.write_shared);
    emit(context, "write exclusive", d->counts.write_exclusive);
    emit(context, "write shared", d->counts.write_shared);
    emit(context, "clock operations", d->order.clock_operations);
}

#endif
