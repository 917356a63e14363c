/* AccuLock: epochs of accu-hb, and a lockset only where they do not order (Xie, Xue, Zhang: AccuLock, section 3,
 * Algorithms 4-13).
 *
 * 1. W is the epoch of the last write that was not redundant; its lockset is what all writes concurrent with each other, up
 *    to and including that one, had in common (Algorithm 11).
 * 2. R has, for each thread that read since that write, the epoch and lockset of its last read that was not redundant
 *    (Algorithm 10). One entry is inline in the cell, several are in a read map. If there is none R repeats W: no entry can be
 *    equal to W, since a read in the epoch of its thread's write is redundant. So one comparison finds most redundant reads.
 * 3. An entry of R is replaced only by a read of the same thread, never by another's, even if that happens after it. A later
 *    write may share a lock with the second read and none with the first; and if the second read had fewer locks, its thread
 *    may replace it again by a read with more. So whom an entry belongs to is a matter of threads, not of slots, which are
 *    handed on and left (core/order.h, 2 and 3); al_thread.mine tells which epochs of a slot are its present owner's.
 * 4. An access in the epoch of an earlier one of its thread is redundant if that one was of the same kind or a write
 *    (Corollaries 1 and 2): releases start epochs, so its lockset contains the earlier one's, and as the earlier one's was
 *    taken in the same mode or in the exclusive one, this holds for read-write locks, too.
 * 5. What one access reports, a later one of the same variable may repeat: after a race W's lockset stays empty.
 *
 * detect/acculock.inc holds the rules: for narrow cells, for wide ones, and for the words of the runtime (guest/granule.h), as FastTrack
 * has them.
 */
#ifndef RF_DETECT_ACCULOCK_H
#define RF_DETECT_ACCULOCK_H

#include "core/readmap.h"
#include "detect/accu.h"

/* A narrow epoch: the tag that makes it a reference to a read map, 11 bits of slot, 20 bits of time. */
#define AL_SLOT_BITS 11
#define AL_TIME_BITS 20

/* In W's lockset: it is that of several writes, not that of the last one. */
#define AL_SEVERAL (1u << 31)

/* How often each state is entered: AccuLock's Table IV. The rest of the accesses is in the same epoch. */
struct al_counts {
    uint64_t read_exclusive, read_shared;
    uint64_t write_exclusive, write_shared;
};

struct al {
    struct rf_engine engine;
    struct rf_accu accu;
    struct rf_readmaps readers;
    struct al_counts counts;
};

struct al_thread {
    struct rf_accu_thread accu;
    rf_epoch mine; /* the first epoch of this thread in its slot */
    uint32_t mine_narrow;
    rf_epoch *earlier; /* the same for the slots that it had before; their last epochs are in its clock */
    uint32_t earlier_count, earlier_cap;
};

static inline rf_epoch al_wide_of(uint32_t narrow)
{
    return rf_epoch_make(narrow >> AL_TIME_BITS, narrow & ((1u << AL_TIME_BITS) - 1));
}

/* Puts this thread's entry into a read map; an entry from a slot that it had before goes. */
static inline bool al_put(struct al *d, const struct al_thread *t, uint32_t map, struct rf_reads *reads, uint32_t note)
{
    enum rf_readmap_change change =
        rf_readmap_put(&d->readers, map, reads, t->mine, t->accu.order.epoch, note, t->accu.held.any);
    for (uint32_t i = 0; change == RF_READ_FIRST && i < t->earlier_count; i++) {
        uint32_t slot = rf_epoch_slot(t->earlier[i]);
        rf_epoch last = rf_epoch_make(slot, rf_clock_get(&t->accu.order.clock, slot));
        rf_readmap_remove(&d->readers, map, reads, t->earlier[i], last);
    }
    return change != RF_READ_SAME;
}

/* A map with one entry. */
static inline uint32_t al_map_of(struct al *d, struct rf_reads *reads, rf_epoch epoch, uint32_t note, rf_lockset locks)
{
    uint32_t map = rf_readmap_new(&d->readers);
    *reads = (struct rf_reads){ 0 };
    rf_readmap_put(&d->readers, map, reads, epoch, epoch, note, locks);
    return map;
}

/* The for loop of Algorithm 11. Entries of one lockset need not be looked at if it protects this write, too. */
static inline bool al_race_in_map(struct al *d, const struct al_thread *t, uint32_t map, const struct rf_reads *reads)
{
    rf_lockset locks = t->accu.held.exclusive;
    if (!rf_reads_in_table(reads) && !rf_lockset_disjoint(&d->accu.locksets, reads->locks, locks))
        return false;
    const union rf_readmap *m = rf_readmap_at(&d->readers, map);
    struct rf_last_read found = { 0 };
    for (uint32_t from = 0;;) {
        struct rf_last_read read = rf_readmap_unordered(m, reads, &t->accu.order.clock, &from);
        if (!read.epoch)
            return found.epoch && rf_accu_race(&d->accu, &t->accu, found.epoch, found.note, false, found.locks);
        /* Of several that of the first thread in the trace: workers may give slots in other orders. */
        if (rf_lockset_disjoint(&d->accu.locksets, read.locks, locks) &&
            (!found.epoch || rf_order_owner(&d->accu.order, read.epoch) < rf_order_owner(&d->accu.order, found.epoch)))
            found = read;
    }
}

#define AL_STATE struct al
#define AL_THREAD struct al_thread
#define AL_READ_LOCKS(d, t) ((t)->accu.held.any)
#define AL_WRITE_LOCKS(d, t) ((t)->accu.held.exclusive)
#define AL_DISJOINT(d, a, b) rf_lockset_disjoint(&(d)->accu.locksets, a, b)
#define AL_INTERSECT(d, a, b) rf_lockset_intersect(&(d)->accu.locksets, a, b)
#define AL_RACE_WITH_WRITE(d, t, cell)                                                                                       \
    rf_accu_race(&(d)->accu, &(t)->accu, AL_WIDE_OF((cell)->w), (cell)->w_note, true,                                        \
                 (cell)->w_locks & AL_SEVERAL ? RF_ALL_LOCKS : (cell)->w_locks)
#define AL_RACE_WITH_READ(d, t, cell)                                                                                        \
    rf_accu_race(&(d)->accu, &(t)->accu, AL_WIDE_OF((cell)->r), (cell)->r_note, false, (cell)->r_locks)
#define AL_RACE_IN_MAP(d, t, cell) al_race_in_map(d, t, AL_MAP((cell)->r), &(cell)->reads)
#define AL_TO_MAP(d, cell)                                                                                                   \
    AL_SET_MAP(cell, al_map_of(d, &(cell)->reads, AL_WIDE_OF((cell)->r), (cell)->r_note, (cell)->r_locks))
#define AL_PUT(d, t, cell, note) al_put(d, t, AL_MAP((cell)->r), &(cell)->reads, note)
#define AL_END(d, cell) rf_readmap_end(&(d)->readers, AL_MAP((cell)->r), &(cell)->reads)
#define AL_COPIED(d, cell) rf_readmap_copy(&(d)->readers, AL_MAP((cell)->r), &(cell)->reads)
#define AL_COUNT(d, counter) ((d)->counts.counter++)

#define AL(name) al_##name
#define AL_EPOCH uint32_t
#define AL_WIDE_OF(epoch) al_wide_of(epoch)
#define AL_NOW(t) ((t)->accu.order.narrow)
#define AL_IS_NOW(t, e) ((e) == AL_NOW(t))
#define AL_LOOKS_MINE(t, e) ((e) - (t)->mine_narrow <= AL_NOW(t) - (t)->mine_narrow)
#define AL_IS_MINE(d, t, e) (rf_order_owner(&(d)->accu.order, al_wide_of(e)) == (t)->accu.order.index)
#define AL_ORDERED(t, e) rf_epoch_leq(al_wide_of(e), &(t)->accu.order.clock)
#include "detect/acculock.inc"
#undef AL_WIDE_OF

#define AL(name) alw_##name
#define AL_EPOCH uint64_t
#define AL_WIDE_OF(epoch) (epoch)
#define AL_NOW(t) ((t)->accu.order.epoch)
#define AL_IS_NOW(t, e) ((e) == AL_NOW(t))
#define AL_LOOKS_MINE(t, e) ((e) - (t)->mine <= AL_NOW(t) - (t)->mine)
#define AL_IS_MINE(d, t, e) (rf_order_owner(&(d)->accu.order, e) == (t)->accu.order.index)
#define AL_ORDERED(t, e) rf_epoch_leq(e, &(t)->accu.order.clock)
#include "detect/acculock.inc"
#undef AL_WIDE_OF
#undef AL_STATE
#undef AL_THREAD
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

/* The map of this cell will be needed soon. (Unless it is always inlined, gcc takes it for a function without effect.) */
static inline __attribute__((always_inline)) void al_fetch(const struct al *d, const struct al_cell *cell)
{
    if (cell->r >> 31)
        __builtin_prefetch(rf_readmap_at(&d->readers, cell->r & INT32_MAX), 1);
}

static inline __attribute__((always_inline)) void alw_fetch(const struct al *d, const struct alw_cell *cell)
{
    if (cell->r >> 63)
        __builtin_prefetch(rf_readmap_at(&d->readers, (uint32_t)(cell->r & INT32_MAX)), 1);
}

static inline void al_init(struct al *d)
{
    rf_accu_init(&d->accu, &d->engine, sizeof(struct al_thread));
    rf_order_narrow(&d->accu.order, AL_SLOT_BITS, AL_TIME_BITS);
    rf_readmaps_init(&d->readers, d->engine.memory);
}

static inline rf_epoch al_first(const struct al_thread *t)
{
    return rf_epoch_make(t->accu.order.slot, t->accu.order.since);
}

/* A thread has another slot after its times were used up (core/order.h, 3). */
static inline void al_refresh(struct al *d, struct al_thread *t)
{
    if (t->mine) {
        t->earlier = rf_grow(d->engine.memory, t->earlier, &t->earlier_cap, t->earlier_count + 1, sizeof *t->earlier);
        t->earlier[t->earlier_count++] = t->mine;
    }
    t->mine = al_first(t);
    t->mine_narrow = t->accu.order.slot << AL_TIME_BITS | rf_epoch_time(t->mine);
}

static inline struct al_thread *al_thread_at(struct al *d, uint32_t thread)
{
    struct al_thread *t = (struct al_thread *)rf_accu_thread_at(&d->accu, thread);
    if (t->mine != al_first(t)) { /* it is new, or lives again: others may have had its earlier slots, so they say nothing */
        t->mine = 0;
        t->earlier_count = 0;
        al_refresh(d, t);
    }
    return t;
}

static inline void al_sync(struct al *d, struct al_thread *t, const struct rf_event *event)
{
    struct al_thread *gone = NULL;
    if (event->op == RF_JOIN && event->addr & RF_JOIN_LAST)
        gone = (struct al_thread *)rf_order_known_thread(&d->accu.order, (uint32_t)event->addr);
    if (gone)
        rf_free(d->engine.memory, gone->earlier, gone->earlier_cap * sizeof *gone->earlier);
    rf_accu_sync(&d->accu, &t->accu, event);
    if (rf_epoch_slot(t->mine) != t->accu.order.slot)
        al_refresh(d, t);
}

static inline void al_commit_end(struct al *d, struct al_thread *t, const struct rf_event *event)
{
    (void)event;
    rf_accu_commit_end(&d->accu, &t->accu);
    if (rf_epoch_slot(t->mine) != t->accu.order.slot)
        al_refresh(d, t);
}

/* Narrow epochs no longer name every thread: the driver must give each cell its wide form before the next access. */
static inline bool al_must_widen(const struct al *d)
{
    return d->accu.order.overflow;
}

static inline bool alw_must_widen(const struct al *d)
{
    (void)d;
    return false;
}

static inline void al_widened(struct al *d)
{
    rf_order_widen(&d->accu.order);
}

static inline void al_widen(struct alw_cell *wide, const struct al_cell *narrow)
{
    *wide = (struct alw_cell){ .w = al_wide_of(narrow->w),
                               .r = narrow->r >> 31 ? RF_TAG | (narrow->r & INT32_MAX) : al_wide_of(narrow->r),
                               .w_note = narrow->w_note,
                               .w_locks = narrow->w_locks,
                               .reads = narrow->reads };
}

static inline const struct rf_locksets *al_locksets(const struct al *d)
{
    return &d->accu.locksets;
}

static inline rf_lockset al_held(const struct al_thread *t, bool write)
{
    return rf_accu_held(&t->accu, write);
}

static inline void al_statistics(const struct al *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "read same epoch", d->engine.reads - d->counts.read_exclusive - d->counts.read_shared);
    emit(context, "read exclusive", d->counts.read_exclusive);
    emit(context, "read shared", d->counts.read_shared);
    emit(context, "write same epoch", d->engine.writes - d->counts.write_exclusive - d->counts.write_shared);
    emit(context, "write exclusive", d->counts.write_exclusive);
    emit(context, "write shared", d->counts.write_shared);
    rf_accu_statistics(&d->accu, emit, context);
}

#endif
