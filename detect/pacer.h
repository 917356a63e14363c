/* PACER (Bond, Coons, McKinley: PACER: proportional detection of data races): FastTrack in sampling periods, and hardly
 * any work outside of them.
 *
 * 1. Only sampled accesses are recorded. R and W are null (0), or they are accesses of sampling periods, as FastTrack would
 *    keep them; an access outside discards what FastTrack would have overwritten.      (section 3.3, Algorithms 12 and 13)
 * 2. If R or W does not happen before now by the clocks, the two accesses race: never a false report.        (Theorem 3)
 * 3. Until the first report on a variable: if the last access that races with this one was sampled, this one is reported; so
 *    a race is found with the probability that its first access is sampled.                                  (Theorem 2)
 *    The converse does not hold, in the paper neither: a race with a sampled access that is not the last one may be
 *    reported, too. It is a race.
 * 4. Outside of sampling periods an access to a variable without history costs two loads.
 *
 * Periods come from the sampler (options.rate >= 0; the marks in the trace are then ignored) or from SAMPLE_BEGIN and
 * SAMPLE_END in the trace. In the second case nobody knows at the start whether there will be any. A trace without them
 * is sampled from beginning to end, since whoever asks for PACER wants to hear of races; a trace with them is not sampled
 * before the first one. So sampling is on until the first mark. If that is SAMPLE_BEGIN, all before it was not to be
 * sampled: the reports are taken back (engine.start_over), and what has been recorded is made to happen before all that
 * follows, so that no race with it is seen.
 *
 * detect/pacer_clock.h has the clocks, detect/pacer.inc the rules for accesses. Where Algorithms 12 and 13 differ from Table 4, which the proofs use, Table 4 is
 * followed: one read epoch is replaced, of a read map only the thread's own entry.
 */
#ifndef RF_DETECT_PACER_H
#define RF_DETECT_PACER_H

#include "detect/pacer_clock.h"

struct pc_cell {
    rf_epoch write;
    rf_epoch read; /* an epoch, or with RF_TAG the address of a read map */
    uint32_t write_note, read_note;
};

/* Table 3. */
struct pc_access_counts {
    uint64_t sampled, slow, fast;
};

struct pc {
    struct rf_engine engine;
    struct pc_clocks clocks;
    bool no_mark_yet; /* the trace decides, and has not spoken */
    uint64_t period_count;
    struct pc_access_counts counts[2]; /* reads, writes */
};

static inline void pc_init(struct pc *d)
{
    pc_clocks_init(&d->clocks, &d->engine);
    d->no_mark_yet = d->clocks.sampling = d->engine.options->rate < 0;
    d->period_count = d->clocks.sampling;
}

static inline struct pc_thread *pc_thread_at(struct pc *d, uint32_t thread)
{
    return pc_clocks_thread(&d->clocks, thread);
}

/* ---- read maps: slot -> time, note ---- */

static inline struct rf_map *pc_map(rf_epoch read)
{
    return (struct rf_map *)(uintptr_t)(read & ~RF_TAG);
}

static inline void pc_map_set(struct rf_map *map, rf_epoch epoch, uint32_t note)
{
    *rf_map_at(map, rf_epoch_slot(epoch)) = (uint64_t)rf_epoch_time(epoch) << 32 | note;
}

static inline rf_epoch pc_map_new(struct pc *d)
{
    struct rf_map *map = rf_alloc(d->engine.memory, sizeof *map);
    rf_map_init(map, d->engine.memory);
    return RF_TAG | (uint64_t)(uintptr_t)map;
}

static inline void pc_forget_reads(struct pc *d, struct pc_cell *cell)
{
    if (cell->read & RF_TAG) {
        rf_map_end(pc_map(cell->read));
        rf_free(d->engine.memory, pc_map(cell->read), sizeof(struct rf_map));
    }
    cell->read = 0;
    cell->read_note = 0;
}

/* A map of one entry is an epoch, a map of none is null. */
static inline void pc_map_shrink(struct pc *d, struct pc_cell *cell)
{
    const struct rf_map *map = pc_map(cell->read);
    if (map->count > 1)
        return;
    rf_epoch epoch = 0;
    uint32_t note = 0;
    for (uint32_t i = 0; i < map->cap; i++)
        if (map->entries[i].key != RF_NO_KEY) {
            epoch = rf_epoch_make((uint32_t)map->entries[i].key, (uint32_t)(map->entries[i].value >> 32));
            note = (uint32_t)map->entries[i].value;
        }
    pc_forget_reads(d, cell);
    cell->read = epoch;
    cell->read_note = note;
}

/* ---- accesses ---- */

static inline bool pc_leq(const struct pc_thread *t, rf_epoch epoch)
{
    return rf_epoch_leq(epoch, &t->clock->times);
}

/* The recorded access and the present one race: unordered, and not both inside transactions (pacer_clock.h, invariant 7). */
static inline bool pc_races(const struct pc *d, const struct pc_thread *t, rf_epoch epoch)
{
    return !pc_leq(t, epoch) && !(d->clocks.tick == 2 && t->in_transaction && (epoch & 1));
}

static inline bool pc_race(struct pc *d, rf_epoch earlier, uint32_t note, bool writes)
{
    d->engine.first = (struct rf_side){
        .thread = pc_owner(&d->clocks, earlier), .note = note, .known = true, .writes = writes, .locks = RF_ALL_LOCKS
    };
    return true;
}

static inline bool pc_check_write(struct pc *d, struct pc_thread *t, const struct pc_cell *cell)
{
    return pc_races(d, t, cell->write) && pc_race(d, cell->write, cell->write_note, true);
}

/* Of several readers the last one, as the guarantee is about that. */
static inline bool pc_check_reads(struct pc *d, struct pc_thread *t, const struct pc_cell *cell, uint32_t now)
{
    if (!(cell->read & RF_TAG))
        return pc_races(d, t, cell->read) && pc_race(d, cell->read, cell->read_note, false);
    const struct rf_map *map = pc_map(cell->read);
    rf_epoch last = 0;
    uint32_t last_note = 0;
    for (uint32_t i = 0; i < map->cap; i++) {
        const struct rf_entry *entry = &map->entries[i];
        rf_epoch epoch = rf_epoch_make((uint32_t)entry->key, (uint32_t)(entry->value >> 32));
        if (entry->key == RF_NO_KEY || !pc_races(d, t, epoch) || (last && now - last_note <= now - (uint32_t)entry->value))
            continue;
        last = epoch;
        last_note = (uint32_t)entry->value;
    }
    return last && pc_race(d, last, last_note, false);
}

/* Table 4, rules 2-4, sampling. */
static inline void pc_record_read(struct pc *d, struct pc_thread *t, struct pc_cell *cell, uint32_t note)
{
    if (!(cell->read & RF_TAG)) {
        if (pc_leq(t, cell->read)) { /* exclusive */
            cell->read = t->epoch;
            cell->read_note = note;
            return;
        }
        rf_epoch map = pc_map_new(d); /* share */
        pc_map_set(pc_map(map), cell->read, cell->read_note);
        cell->read = map;
    }
    pc_map_set(pc_map(cell->read), t->epoch, note); /* shared */
}

/* The same, not sampling. */
static inline void pc_discard_read(struct pc *d, struct pc_thread *t, struct pc_cell *cell)
{
    if (!(cell->read & RF_TAG)) {
        if (pc_leq(t, cell->read))
            cell->read = cell->read_note = 0;
    } else if (rf_map_remove(pc_map(cell->read), t->slot)) {
        pc_map_shrink(d, cell);
    }
}

/* Nothing changes if t has read in this epoch, or written: whatever races with this read later, races with that one, too. */
static inline bool pc_same_epoch_read(const struct pc_thread *t, const struct pc_cell *cell)
{
    if (cell->read == t->epoch || cell->write == t->epoch)
        return true;
    if (!(cell->read & RF_TAG))
        return false;
    const uint64_t *mine = rf_map_find(pc_map(cell->read), t->slot);
    return mine && *mine >> 32 == rf_epoch_time(t->epoch);
}

static inline void pc_forget_all(struct pc *d, struct pc_cell *cell)
{
    pc_forget_reads(d, cell);
    cell->write = cell->write_note = 0;
}

#define PC(name) pc_##name
#define PC_STATE struct pc
#define PC_THREAD struct pc_thread
#define PC_CELL struct pc_cell
#define PC_READ_NOW(t, cell) pc_same_epoch_read(t, cell)
#define PC_WRITTEN_NOW(t, cell) ((cell)->write == (t)->epoch)
#define PC_CHECK_WRITE(d, t, cell) pc_check_write(d, t, cell)
#define PC_CHECK_READS(d, t, cell, note) pc_check_reads(d, t, cell, note)
#define PC_SAMPLING(d) ((d)->clocks.sampling)
#define PC_RECORD_READ(d, t, cell, note) pc_record_read(d, t, cell, note)
#define PC_RECORD_WRITE(d, t, cell, note) ((cell)->write = (t)->epoch, (cell)->write_note = (note))
#define PC_DISCARD_READ(d, t, cell) pc_discard_read(d, t, cell)
#define PC_FORGET(d, cell) pc_forget_all(d, cell)
#include "detect/pacer.inc"

/* Invariant 4; true if there is nothing more to do. */
static inline bool pc_fast(const struct pc *d, const struct pc_cell *cell, struct pc_access_counts *counts)
{
    if (d->clocks.sampling) {
        counts->sampled++;
        return false;
    }
    bool none = !(cell->read | cell->write);
    counts->fast += none;
    counts->slow += !none;
    return none;
}

static inline bool pc_read(struct pc *d, struct pc_thread *t, struct pc_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return !pc_fast(d, cell, &d->counts[0]) && cell->read != t->epoch && pc_read_slow(d, t, cell, note);
}

static inline bool pc_write(struct pc *d, struct pc_thread *t, struct pc_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    return !pc_fast(d, cell, &d->counts[1]) && cell->write != t->epoch && pc_write_slow(d, t, cell, note);
}

static inline void pc_copy(struct pc *d, struct pc_cell *to, const struct pc_cell *from)
{
    *to = *from;
    if (!(from->read & RF_TAG))
        return;
    to->read = pc_map_new(d);
    const struct rf_map *map = pc_map(from->read);
    for (uint32_t i = 0; i < map->cap; i++)
        if (map->entries[i].key != RF_NO_KEY)
            *rf_map_at(pc_map(to->read), map->entries[i].key) = map->entries[i].value;
}

static inline void pc_clear(struct pc *d, struct pc_cell *cell)
{
    pc_forget_reads(d, cell);
    *cell = (struct pc_cell){ 0 };
}

/* ---- synchronisation: Algorithms 1-4, 14 and 15, and Table 6, with PACER's operations on clocks ---- */

static inline void pc_release(struct pc *d, struct pc_thread *t, uint64_t key, bool exclusive)
{
    struct pc_sync *lock = pc_sync_at(&d->clocks, RF_SPACE_LOCK, key);
    if (exclusive && pc_subsumes(t, &lock->readers))
        pc_object_end(&d->clocks, &lock->readers);
    pc_publish(&d->clocks, t, exclusive ? &lock->released : &lock->readers);
    pc_tick(&d->clocks, t);
}

static inline void pc_fork(struct pc *d, struct pc_thread *t, uint32_t index)
{
    struct pc_clocks *c = &d->clocks;
    struct pc_thread *child = pc_known_thread(c, index);
    if (!child)
        child = pc_thread_new(c, index, t);
    else if (child->joined)
        pc_thread_begin(c, child, t);
    pc_join(c, child, t->clock, t->slot, pc_version(t));
    pc_handed(c, t);
}

/* RF_JOIN_LAST: its name stays, for reports. */
static inline void pc_gone(struct pc_clocks *c, uint32_t index)
{
    struct pc_thread *t = c->threads[index];
    pc_clock_drop(c, t->clock);
    rf_clock_end(&t->versions, c->engine->memory);
    rf_free(c->engine->memory, t, sizeof *t);
    c->threads[index] = NULL;
}

/* `key` is the index of who is joined, and flags (core/event.h). */
static inline void pc_join_thread(struct pc *d, struct pc_thread *t, uint64_t key)
{
    struct pc_clocks *c = &d->clocks;
    uint32_t index = (uint32_t)key;
    struct pc_thread *child = pc_known_thread(c, index);
    if (!child)
        child = pc_thread_new(c, index, NULL);
    pc_join(c, t, child->clock, child->slot, pc_version(child));
    if (child->joined || child == t)
        return;
    child->joined = true;
    c->live[child->live_at] = c->live[--c->live_count];
    c->live[child->live_at]->live_at = child->live_at;
    struct pc_slot *slot = &c->slots[child->slot];
    slot->time = rf_epoch_time(child->epoch);
    slot->version = pc_version(child);
    slot->needed = key & RF_JOIN_QUIET ? child->handed : slot->time;
    slot->last = child->clock;
    slot->last->holders++;
    c->idle = rf_grow(c->engine->memory, c->idle, &c->idle_cap, c->idle_count + 1, sizeof *c->idle);
    c->idle[c->idle_count++] = child->slot;
}

/* What a commit receives, or hands on, through one object. */
static inline void pc_transaction(struct pc_clocks *c, struct pc_thread *t, struct pc_sync *sync, bool begin)
{
    if (begin)
        pc_receive(c, t, &sync->released);
    else
        pc_publish(c, t, &sync->released);
}

/* The objects are the bytes of its variables, as parts of different commits may overlap; with RF_TXN_ALL there is one. */
static inline void pc_transactions(struct pc *d, struct pc_thread *t, const struct rf_event *event, bool begin)
{
    struct pc_clocks *c = &d->clocks;
    enum rf_transactions mode = d->engine.options->transactions;
    enum rf_op meets = begin ? RF_COMMIT_READ : RF_COMMIT_WRITE; /* RF_TXN_WRITES: an earlier W and a later R' */
    if (mode == RF_TXN_ALL) {
        pc_transaction(c, t, &c->everything, begin);
        return;
    }
    for (uint32_t i = 1; i <= event->size; i++)
        for (uint32_t byte = 0; (mode != RF_TXN_WRITES || event[i].op == meets) && byte < event[i].size; byte++)
            pc_transaction(c, t, pc_sync_at(c, RF_SPACE_TRANSACTION, event[i].addr + byte), begin);
}

static inline void pc_commit_begin(struct pc *d, struct pc_thread *t, const struct rf_event *event)
{
    struct pc_clocks *c = &d->clocks;
    pc_transactions(d, t, event, true);
    t->in_transaction = true;
    if (c->tick == 2 && c->sampling) {
        pc_advance(c, t, 2);
        t->epoch++; /* odd; the clock is t's alone, nobody has seen this version of it, and the limit leaves room */
        t->clock->times.times[t->slot]++;
    }
}

static inline void pc_commit_end(struct pc *d, struct pc_thread *t, const struct rf_event *event)
{
    struct pc_clocks *c = &d->clocks;
    pc_transactions(d, t, event, false);
    t->in_transaction = false;
    if (c->sampling)
        pc_advance(c, t, 1); /* new; and even again, if it was odd */
}

static inline void pc_mark(struct pc *d, const struct rf_event *event)
{
    if ((d->engine.options->rate >= 0) != (event->addr == RF_FROM_SAMPLER))
        return;
    bool first = d->no_mark_yet;
    d->no_mark_yet = false;
    if (event->op == RF_SAMPLE_END) {
        d->clocks.sampling = false;
        return;
    }
    if (first) {
        pc_seal_past(&d->clocks);
        memset(d->counts, 0, sizeof d->counts);
        memset(d->clocks.counts, 0, sizeof d->clocks.counts);
        d->period_count = 0;
        d->engine.start_over = true;
    }
    d->period_count++;
    pc_sample_begin(&d->clocks);
}

static inline void pc_forget(struct pc *d, uint64_t key)
{
    uint64_t *place = rf_map_find(&d->clocks.objects[RF_SPACE_SIGNAL], key);
    if (!place)
        return;
    struct pc_sync *sync = (struct pc_sync *)(uintptr_t)*place;
    pc_object_end(&d->clocks, &sync->released);
    rf_free(d->engine.memory, sync, sizeof *sync);
    rf_map_remove(&d->clocks.objects[RF_SPACE_SIGNAL], key);
}

static inline void pc_sync(struct pc *d, struct pc_thread *t, const struct rf_event *event)
{
    struct pc_clocks *c = &d->clocks;
    enum rf_op op = (enum rf_op)event->op;
    if (op == RF_SAMPLE_BEGIN || op == RF_SAMPLE_END) {
        pc_mark(d, event);
        return;
    }
    c->counts[c->sampling].operations++;
    switch (op) {
    case RF_ACQUIRE:
    case RF_READ_ACQUIRE: {
        struct pc_sync *lock = pc_sync_at(c, RF_SPACE_LOCK, event->addr);
        pc_receive(c, t, &lock->released);
        if (op == RF_ACQUIRE && lock->readers.clock)
            pc_receive(c, t, &lock->readers);
        break;
    }
    case RF_RELEASE:
    case RF_READ_RELEASE:
        pc_release(d, t, event->addr, op == RF_RELEASE);
        break;
    case RF_FORK:
        pc_fork(d, t, (uint32_t)event->addr);
        break;
    case RF_JOIN:
        pc_join_thread(d, t, event->addr);
        if (event->addr & RF_JOIN_LAST)
            pc_gone(c, (uint32_t)event->addr);
        break;
    case RF_VOLATILE_READ:
    case RF_WAIT:
        pc_receive(c, t, &pc_sync_at(c, op == RF_WAIT ? RF_SPACE_SIGNAL : RF_SPACE_VOLATILE, event->addr)->released);
        break;
    case RF_VOLATILE_WRITE:
    case RF_SIGNAL:
        pc_publish(c, t, &pc_sync_at(c, op == RF_SIGNAL ? RF_SPACE_SIGNAL : RF_SPACE_VOLATILE, event->addr)->released);
        pc_handed(c, t);
        break;
    case RF_COMMIT:
        pc_commit_begin(d, t, event);
        break;
    case RF_FORGET:
        pc_forget(d, event->addr);
        break;
    default:
        break;
    }
}

static inline bool pc_must_widen(const struct pc *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *pc_locksets(const struct pc *d)
{
    (void)d;
    return NULL;
}

static inline rf_lockset pc_held(const struct pc_thread *t, bool write)
{
    (void)t, (void)write;
    return RF_ALL_LOCKS;
}

/* Tables 1 and 3. */
static inline void pc_statistics(const struct pc *d, rf_statistic_fn *emit, void *context)
{
    const struct pc_clock_counts *in = &d->clocks.counts[1], *out = &d->clocks.counts[0];
    const struct pc_access_counts *reads = &d->counts[0], *writes = &d->counts[1];
    uint64_t sampled = reads->sampled + writes->sampled;
    emit(context, "sampling slow joins", in->slow_joins);
    emit(context, "sampling fast joins", in->fast_joins);
    emit(context, "non-sampling slow joins", out->slow_joins);
    emit(context, "non-sampling fast joins", out->fast_joins);
    emit(context, "sampling deep copies", in->deep_copies);
    emit(context, "sampling shallow copies", in->shallow_copies);
    emit(context, "non-sampling deep copies", out->deep_copies);
    emit(context, "non-sampling shallow copies", out->shallow_copies);
    emit(context, "sampling slow reads", reads->sampled);
    emit(context, "non-sampling slow reads", reads->slow);
    emit(context, "non-sampling fast reads", reads->fast);
    emit(context, "sampling slow writes", writes->sampled);
    emit(context, "non-sampling slow writes", writes->slow);
    emit(context, "non-sampling fast writes", writes->fast);
    emit(context, "accesses sampled", sampled);
    emit(context, "accesses", sampled + reads->slow + reads->fast + writes->slow + writes->fast);
    emit(context, "synchronisations sampled", in->operations);
    emit(context, "synchronisations", in->operations + out->operations);
    emit(context, "sampling began", d->period_count);
}

#endif
