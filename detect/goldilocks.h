/* Goldilocks: happens-before by locksets that grow (Elmas, Qadeer, Tasiran, PLDI 2007). A variable's lockset holds who may
 * access it next without a race: threads, and what a thread can receive to become one of them.
 *
 * 1. cell.write is WriteInfo(o, d), cell.read is ReadInfo(o, d, t): one info, or, tagged, a record with one info for each
 *    thread that has read since the last write. 0 is null.
 * 2. Until the first race on a variable, a read happens after the last write, and a write after the last write and all
 *    reads since, or the two are transactional. So the infos kept are enough to find the first race.
 * 3. A thread that wrote and then reads with the same info leaves no ReadInfo: what races with this read races with the
 *    write.
 * 4. A thread that has read since the last write need not check that write again, unless its read was in a transaction:
 *    then the check may have been waived.
 * 5. Under RF_TXN_WRITES, and after a copy, transactional accesses may be unordered, though they do not race. One history
 *    is kept for each variable: a transactional access that replaces an ordinary one hides what the latter would have raced
 *    with. What is reported is a race in any case.
 *
 * Infos and their list: detect/goldilocks_list.h. Figure 5 without laziness, for tests: detect/goldilocks_eager.h.
 */
#ifndef RF_DETECT_GOLDILOCKS_H
#define RF_DETECT_GOLDILOCKS_H

#include "detect/goldilocks_eager.h"
#include "detect/goldilocks_trim.h"

struct gl_cell {
    uint32_t write, read;
    uint32_t write_note, read_note;
};

#define GL_MANY (UINT32_C(1) << 31) /* cell.read refers to gl.readers */

struct gl_reader {
    uint32_t thread, info, note;
};

struct gl_readers {
    struct gl_reader *list;
    uint32_t count, cap;
    uint32_t next_unused;
};

/* ---- several readers ---- */

static inline uint32_t gl_readers_new(struct gl *d)
{
    uint32_t index = d->unused_readers;
    if (index) {
        d->unused_readers = d->readers[index].next_unused;
    } else {
        index = d->readers_count++;
        d->readers = rf_grow(d->engine.memory, d->readers, &d->readers_cap, d->readers_count, sizeof *d->readers);
    }
    d->readers[index] = (struct gl_readers){ 0 };
    return index;
}

static inline void gl_readers_add(struct gl *d, uint32_t index, struct gl_reader reader)
{
    struct gl_readers *readers = &d->readers[index];
    readers->list = rf_grow(d->engine.memory, readers->list, &readers->cap, readers->count + 1, sizeof *readers->list);
    readers->list[readers->count++] = reader;
}

static inline struct gl_reader *gl_readers_find(const struct gl *d, uint32_t index, uint32_t thread)
{
    const struct gl_readers *readers = &d->readers[index];
    for (uint32_t i = 0; i < readers->count; i++)
        if (readers->list[i].thread == thread)
            return &readers->list[i];
    return NULL;
}

/* A reference to an info less; in the eager evaluation every reference is a lockset of its own. */
static inline void gl_give_back(struct gl *d, uint32_t info)
{
    if (d->eager)
        d->sets[info].live = false;
    else
        gl_drop(d, info);
}

static inline uint32_t gl_share(struct gl *d, uint32_t info)
{
    if (d->eager)
        return gle_copy(d, info);
    d->infos[info].references++;
    return info;
}

static inline void gl_forget_reads(struct gl *d, struct gl_cell *cell)
{
    if (cell->read & GL_MANY) {
        uint32_t index = cell->read & ~GL_MANY;
        struct gl_readers *readers = &d->readers[index];
        for (uint32_t i = 0; i < readers->count; i++)
            gl_give_back(d, readers->list[i].info);
        rf_free(d->engine.memory, readers->list, readers->cap * sizeof *readers->list);
        readers->list = NULL;
        readers->next_unused = d->unused_readers;
        d->unused_readers = index;
    } else if (cell->read) {
        gl_give_back(d, cell->read);
    }
    cell->read = 0;
}

/* ---- Check-Happens-Before ---- */

/* Some lock was held at the access and is held by t now, in modes that exclude each other. As locks exclude (the trace is
 * well-formed), it was released after the access and acquired by t after that. The paper's alock is one such lock, chosen at
 * random; here all are compared. An info never outlives a change of the locks held, so they are those of the access. */
static inline bool gl_common_lock(struct gl *d, const struct gl_info *info, const struct gl_thread *t)
{
    if (!rf_lockset_disjoint(&d->locksets, info->exclusive, t->held.any))
        return true;
    return info->any != info->exclusive && !rf_lockset_disjoint(&d->locksets, info->any, t->held.exclusive);
}

/* Does the earlier access that *reference stands for happen before now (or may it be unordered)? */
static inline bool gl_check_happens_before(struct gl *d, uint32_t *reference, struct gl_thread *t)
{
    if (d->eager)
        return gle_ordered(d, *reference, t);
    uint32_t index = gl_resolve(d, reference);
    const struct gl_info *info = &d->infos[index];
    if (info->xact && t->xact) {
        d->counts.transaction++;
        return true;
    }
    if (info->owner == t->index) {
        d->counts.same_thread++;
        return true;
    }
    if (gl_common_lock(d, info, t)) {
        d->counts.lock++;
        return true;
    }
    return gl_apply_lockset_rules(d, index, t);
}

static inline uint32_t gl_owner(const struct gl *d, uint32_t info)
{
    return d->eager ? d->sets[info].thread : d->infos[info].owner;
}

static inline bool gl_race(struct gl *d, uint32_t info, uint32_t note, bool writes)
{
    d->engine.first = (struct rf_side){
        .thread = gl_owner(d, info), .note = note, .known = true, .writes = writes, .locks = RF_ALL_LOCKS
    };
    if (!d->eager && !d->infos[info].blurred)
        d->engine.first.locks = writes ? d->infos[info].exclusive : d->infos[info].any;
    return true;
}

/* ---- accesses ---- */

/* The info of an access now, referred to once more. */
static inline uint32_t gl_info_now(struct gl *d, struct gl_thread *t)
{
    if (d->eager)
        return gle_access(d, t);
    uint32_t index = t->info == GL_NO_INFO ? gl_info_new(d, t) : t->info;
    d->infos[index].references++;
    return index;
}

static __attribute__((noinline, unused)) bool gl_read_new(struct gl *d, struct gl_thread *t, struct gl_cell *cell,
                                                          uint32_t note)
{
    bool many = cell->read & GL_MANY;
    struct gl_reader *mine = many ? gl_readers_find(d, cell->read & ~GL_MANY, t->index) : NULL;
    bool alone = cell->read && !many && gl_owner(d, cell->read) == t->index;
    uint32_t before = mine ? mine->info : alone ? cell->read : 0, other = cell->read; /* before: my last read */
    if (before && before == t->info) {
        d->counts.same_thread++;
        return false;
    }
    bool race = false;
    if (!d->eager && before && !d->infos[before].xact)
        d->counts.same_thread++; /* invariant 4 */
    else if (cell->write && !gl_check_happens_before(d, &cell->write, t))
        race = gl_race(d, cell->write, cell->write_note, true);

    struct gl_reader now = { t->index, gl_info_now(d, t), note };
    if (mine) {
        *mine = now;
    } else if (many) {
        gl_readers_add(d, cell->read & ~GL_MANY, now);
    } else if (alone || !cell->read) {
        cell->read = now.info;
        cell->read_note = note;
    } else {
        uint32_t index = gl_readers_new(d);
        gl_readers_add(d, index, (struct gl_reader){ gl_owner(d, other), other, cell->read_note });
        gl_readers_add(d, index, now);
        cell->read = GL_MANY | index;
    }
    if (before)
        gl_give_back(d, before);
    return race;
}

static inline bool gl_read(struct gl *d, struct gl_thread *t, struct gl_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    if (__builtin_expect(cell->read == t->info || cell->write == t->info, 1)) { /* invariant 3 */
        d->counts.same_thread++;
        return false;
    }
    return gl_read_new(d, t, cell, note);
}

/* A read since the last write that does not happen before now. */
static inline bool gl_races_with_read(struct gl *d, struct gl_thread *t, struct gl_cell *cell)
{
    if (!(cell->read & GL_MANY))
        return cell->read && !gl_check_happens_before(d, &cell->read, t) && gl_race(d, cell->read, cell->read_note, false);
    const struct gl_readers *readers = &d->readers[cell->read & ~GL_MANY];
    for (uint32_t i = 0; i < readers->count; i++)
        if (!gl_check_happens_before(d, &readers->list[i].info, t))
            return gl_race(d, readers->list[i].info, readers->list[i].note, false);
    return false;
}

static __attribute__((noinline, unused)) bool gl_write_new(struct gl *d, struct gl_thread *t, struct gl_cell *cell,
                                                           uint32_t note)
{
    bool race =
        cell->write && !gl_check_happens_before(d, &cell->write, t) && gl_race(d, cell->write, cell->write_note, true);
    race = race || gl_races_with_read(d, t, cell);
    uint32_t info = gl_info_now(d, t);
    gl_forget_reads(d, cell);
    if (cell->write)
        gl_give_back(d, cell->write);
    cell->write = info;
    cell->write_note = note;
    return race;
}

static inline bool gl_write(struct gl *d, struct gl_thread *t, struct gl_cell *cell, uint32_t site, uint32_t note)
{
    (void)site;
    if (__builtin_expect(cell->write == t->info && !cell->read, 1)) {
        d->counts.same_thread++;
        return false;
    }
    return gl_write_new(d, t, cell, note);
}

static inline void gl_copy(struct gl *d, struct gl_cell *to, const struct gl_cell *from)
{
    *to = *from;
    if (from->write)
        to->write = gl_share(d, from->write);
    if (from->read & GL_MANY) {
        uint32_t index = gl_readers_new(d), source = from->read & ~GL_MANY;
        for (uint32_t i = 0; i < d->readers[source].count; i++) {
            struct gl_reader reader = d->readers[source].list[i];
            reader.info = gl_share(d, reader.info);
            gl_readers_add(d, index, reader);
        }
        to->read = GL_MANY | index;
    } else if (from->read) {
        to->read = gl_share(d, from->read);
    }
}

static inline void gl_clear(struct gl *d, struct gl_cell *cell)
{
    gl_forget_reads(d, cell);
    if (cell->write)
        gl_give_back(d, cell->write);
    memset(cell, 0, sizeof *cell);
}

/* ---- synchronisation ---- */

static inline void gl_init(struct gl *d)
{
    struct rf_memory *memory = d->engine.memory;
    d->eager = d->engine.options->eager;
    d->limit = d->engine.options->event_list ? d->engine.options->event_list : GL_LIMIT;
    rf_locksets_init(&d->locksets, memory);
    for (int i = 0; i < GL_KINDS; i++)
        rf_map_init(&d->kinds[i], memory);
    d->element_count = d->info_count = d->readers_count = d->set_count = 1;
    d->infos = rf_grow(memory, NULL, &d->info_cap, 16, sizeof *d->infos);
    d->elements = rf_grow(memory, NULL, &d->element_cap, 16, sizeof *d->elements);
    gl_segment_add(d);
}

static inline struct gl_thread *gl_thread_at(struct gl *d, uint32_t index)
{
    if (index < d->thread_cap && d->threads[index])
        return d->threads[index];
    struct rf_memory *memory = d->engine.memory;
    d->threads = rf_grow(memory, d->threads, &d->thread_cap, (size_t)index + 1, sizeof *d->threads);
    struct gl_thread *t = d->threads[index] = rf_alloc(memory, sizeof *t);
    t->index = index;
    t->element = gl_element_new(d);
    t->info = GL_NO_INFO;
    return t;
}

/* Half a commit for one of its variables. An access to a whole granule stands for its bytes: it hands over through the
 * granule's element, and receives through that and the elements of bytes, if there are any. */
static inline void gl_commit_variable(struct gl *d, struct gl_thread *t, const struct rf_event *access, bool receive)
{
    uint64_t granule = access->addr & ~(uint64_t)(RF_GRANULE - 1);
    bool whole = access->size == RF_GRANULE;
    if (!receive && whole) {
        gl_publish(d, t, GL_DATA, granule);
        return;
    }
    uint64_t known = 0;
    if (receive) {
        const uint64_t *found = rf_map_find(&d->kinds[GL_DATA], granule);
        known = found ? *found : 0;
        gl_receive(d, t, (uint32_t)known);
    } else {
        *rf_map_at(&d->kinds[GL_DATA], granule) |= GL_HAS_BYTES;
    }
    for (uint64_t byte = access->addr; byte < access->addr + access->size; byte++) {
        if (!receive)
            gl_publish(d, t, GL_BYTE, byte);
        else if (known & GL_HAS_BYTES)
            gl_receive(d, t, gl_element_find(d, GL_BYTE, byte));
    }
}

/* Rule 9 in two halves; detect/goldilocks_eager.h says why. */
static inline void gl_commit(struct gl *d, struct gl_thread *t, const struct rf_event *event, bool before)
{
    enum rf_transactions order = d->engine.options->transactions;
    if (order == RF_TXN_ALL && before)
        gl_receive(d, t, gl_element_find(d, GL_ALL, 0));
    else if (order == RF_TXN_ALL)
        gl_publish(d, t, GL_ALL, 0);
    for (uint32_t i = 1; order != RF_TXN_ALL && i <= event->size; i++)
        if (order != RF_TXN_WRITES || event[i].op == (before ? RF_COMMIT_READ : RF_COMMIT_WRITE))
            gl_commit_variable(d, t, &event[i], before);
    gl_info_end(d, t);
    t->xact = before;
}

static inline void gl_sync(struct gl *d, struct gl_thread *t, const struct rf_event *event)
{
    uint64_t o = event->addr;
    if (d->eager) {
        gle_sync(d, t->index, event);
        t->xact = event->op == RF_COMMIT;
        return;
    }
    switch ((enum rf_op)event->op) {
    case RF_ACQUIRE:
    case RF_READ_ACQUIRE:
        gl_receive(d, t, gl_element_find(d, GL_LOCK, o));
        if (event->op == RF_ACQUIRE)
            gl_receive(d, t, gl_element_find(d, GL_READERS, o));
        rf_held_acquire(&t->held, &d->locksets, o, event->op == RF_ACQUIRE);
        gl_info_end(d, t);
        break;
    case RF_RELEASE:
    case RF_READ_RELEASE:
        gl_publish(d, t, event->op == RF_RELEASE ? GL_LOCK : GL_READERS, o);
        rf_held_release(&t->held, &d->locksets, o, event->op == RF_RELEASE);
        break;
    case RF_VOLATILE_READ:
        gl_receive(d, t, gl_element_find(d, GL_VOLATILE, o));
        break;
    case RF_VOLATILE_WRITE:
        gl_publish(d, t, GL_VOLATILE, o);
        break;
    case RF_WAIT:
        gl_receive(d, t, gl_element_find(d, GL_SIGNAL, o));
        break;
    case RF_SIGNAL:
        gl_publish(d, t, GL_SIGNAL, o);
        break;
    case RF_FORGET:
        gl_forget(d, t, o);
        break;
    case RF_FORK:
        gl_enqueue(d, t, t->element, gl_thread_at(d, (uint32_t)o)->element);
        gl_info_end(d, t);
        break;
    case RF_JOIN:
        gl_enqueue(d, t, gl_thread_at(d, (uint32_t)o)->element, t->element);
        gl_info_end(d, gl_thread_at(d, (uint32_t)o)); /* should it go on all the same, that is not ordered before the join */
        break;
    case RF_COMMIT:
        gl_commit(d, t, event, true);
        break;
    default:
        break;
    }
}

static inline void gl_commit_end(struct gl *d, struct gl_thread *t, const struct rf_event *event)
{
    if (!d->eager) {
        gl_commit(d, t, event, false);
        return;
    }
    gle_commit(d, t->index, event, false);
    t->xact = false;
}

/* ---- what the driver asks ---- */

static inline const struct rf_locksets *gl_locksets(const struct gl *d)
{
    return d->eager ? NULL : &d->locksets;
}

static inline rf_lockset gl_held(const struct gl_thread *t, bool write)
{
    return write ? t->held.exclusive : t->held.any;
}

static inline bool gl_must_widen(const struct gl *d)
{
    (void)d;
    return false;
}

static inline void gl_statistics(const struct gl *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "checks",
         d->counts.same_thread + d->counts.lock + d->counts.transaction + d->counts.two_threads + d->counts.stored +
             d->counts.full);
    emit(context, "short circuit: same thread", d->counts.same_thread);
    emit(context, "short circuit: lock", d->counts.lock);
    emit(context, "short circuit: transaction", d->counts.transaction);
    emit(context, "short circuit: two threads", d->counts.two_threads);
    emit(context, "lockset already computed", d->counts.stored);
    emit(context, "full traversals", d->counts.full);
    emit(context, "events enqueued", d->counts.enqueued);
    emit(context, "events discarded", d->counts.discarded);
    emit(context, "longest list", d->counts.longest);
    emit(context, "partially eager evaluations", d->counts.partial);
}

#endif
