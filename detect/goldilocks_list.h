/* What Goldilocks keeps: the synchronisation event list and the infos that point into it (section 5, Figure 8).
 *
 * Every rule of Figure 5 that is not an access has one form: "if from ∈ LS, add to". So an event of the list is a pair of
 * elements, and a lockset is what is reachable from its first element when the events are taken in order.
 *
 *  1. An element is a small number for a thread, a lock, a volatile, a signal or a variable of a transaction. Element 0 is
 *     none; an event with to = 0 takes `from` out of all locksets (FORGET). No other event makes a lockset smaller.
 *  2. A lock is two elements: what writers released, which every acquire receives, and what readers released, which only an
 *     exclusive acquire does. TL is not an element, since nothing leads to it or from it: it is the flag `xact`.
 *  3. info.ls is the lockset after all events before info.pos; no elements at all stand for {owner}. The owner is always in.
 *  4. One info stands for all accesses of a thread between two of its own events that hand something on or change the locks
 *     it holds. Their locksets are equal at all times: nothing leads out of {t} but what t does next, or a join.
 *  5. An info lives as long as a cell, its thread or a merged info refers to it, and is linked into the segment of the list
 *     that its pos lies in. So an empty segment at the head is a prefix whose reference counts (section 5.4) are zero.
 *  6. If element.knower = t, every lockset with that element contains t. Then it tells t nothing, and no event is enqueued.
 *     The same holds for an element into which nothing was ever released.
 *  7. At most `limit` events are in the list. Beyond that the first tenth is applied to all infos that point into it, 64 at
 *     a time, one bit for each in every element. Infos of one owner that have become equal are merged: `forward` says into
 *     which. Locksets of one thread's accesses are ordered by inclusion, so few remain, and memory is bounded.
 *  8. A forgotten element is used again when its FORGET has left the list: no info can contain it then.
 */
#ifndef RF_DETECT_GOLDILOCKS_LIST_H
#define RF_DETECT_GOLDILOCKS_LIST_H

#include "core/detector.h"

#ifndef GL_SEGMENT      /* tests make these three tiny */
#define GL_SEGMENT 512u /* events in a segment */
#define GL_NEAR 16u     /* events of each thread that the last short circuit looks at */
#define GL_WORTH 32u    /* events applied, from which on the result is kept */
#endif
#define GL_LIMIT 1000000u     /* section 5.4 */
#define GL_NO_INFO UINT32_MAX /* of a thread that has not accessed anything since its last event */
#define GL_NOBODY UINT32_MAX

/* What a name stands for. GL_DATA is an aligned granule, GL_BYTE a byte of one, GL_ALL joins all commits (RF_TXN_ALL). */
enum gl_kind { GL_THREAD, GL_LOCK, GL_READERS, GL_VOLATILE, GL_SIGNAL, GL_DATA, GL_BYTE, GL_ALL, GL_TL, GL_KINDS };

#define GL_HAS_BYTES (UINT64_C(1) << 32) /* beside the element of a granule: some of its bytes have elements of their own */

struct gl_element {
    uint64_t bits;   /* scratch of gl_evaluate(): in which of 64 locksets */
    uint32_t mark;   /* == gl.stamp: in the lockset that is being computed */
    uint32_t knower; /* a thread, or GL_NOBODY */
};

struct gl_event {
    uint32_t from, to;
};

struct gl_info {
    uint64_t pos;
    uint32_t owner;
    uint32_t references;
    uint32_t *ls;
    uint32_t count, cap;
    rf_lockset any, exclusive; /* locks held at the accesses: Figure 8's alock, all of them */
    uint32_t next, previous;   /* in the segment; next also links the unused infos */
    uint32_t forward;          /* merged into this one */
    uint8_t rank;              /* how high the tree of infos merged into this one can be */
    bool xact;
    bool blurred; /* any and exclusive are those of one of the merged infos */
};

struct gl_segment {
    struct gl_event *events;
    uint32_t infos;
};

struct gl_thread {
    uint32_t index;
    uint32_t element;
    uint32_t info; /* of an access now; GL_NO_INFO: not made yet */
    bool xact;     /* between the two halves of a commit */
    struct rf_held held;
    uint64_t *own; /* where its events are in the list */
    uint32_t own_first, own_count, own_cap;
};

struct gl_counts {
    uint64_t same_thread, lock, transaction, two_threads, stored, full;
    uint64_t enqueued, discarded, longest, partial;
};

struct gl_forgotten {
    uint64_t pos;
    uint32_t element;
};

struct gl {
    struct rf_engine engine;
    struct rf_locksets locksets;
    struct gl_thread **threads;
    uint32_t thread_cap;
    struct rf_map kinds[GL_KINDS]; /* key -> element */
    struct gl_element *elements;   /* [0] is not used */
    uint32_t element_count, element_cap;
    uint32_t *unused_elements, unused_count, unused_cap;
    struct gl_forgotten *forgotten; /* in the order of the list */
    uint32_t forgotten_first, forgotten_count, forgotten_cap;
    uint32_t stamp;

    uint64_t head, tail, limit; /* positions of the first event and of the next one */
    struct gl_segment *segments;
    uint32_t segment_count, segment_cap;
    uint64_t base;         /* the number of segments[0] */
    struct gl_info *infos; /* [0] is not used */
    uint32_t info_count, info_cap, unused_infos;
    uint32_t *work, work_cap; /* the elements marked, or the elements with bits */
    uint32_t *batch, batch_cap;

    struct gl_readers *readers; /* detect/goldilocks.h */
    uint32_t readers_count, readers_cap, unused_readers;
    bool eager;
    struct gle_set *sets; /* detect/goldilocks_eager.h */
    uint32_t set_count, set_cap;
    struct gl_counts counts;
};

/* ---- elements ---- */

static inline uint32_t gl_element_new(struct gl *d)
{
    uint32_t e;
    if (d->unused_count) {
        e = d->unused_elements[--d->unused_count];
    } else {
        e = d->element_count++;
        d->elements = rf_grow(d->engine.memory, d->elements, &d->element_cap, d->element_count, sizeof *d->elements);
        d->work = rf_grow(d->engine.memory, d->work, &d->work_cap, d->element_count, sizeof *d->work);
    }
    d->elements[e].knower = GL_NOBODY;
    return e;
}

/* 0: nothing was ever released into it. */
static inline uint32_t gl_element_find(const struct gl *d, enum gl_kind kind, uint64_t key)
{
    const uint64_t *found = rf_map_find(&d->kinds[kind], key);
    return found ? (uint32_t)*found : 0;
}

static inline uint32_t gl_element_at(struct gl *d, enum gl_kind kind, uint64_t key)
{
    uint64_t *place = rf_map_at(&d->kinds[kind], key);
    if (!(uint32_t)*place)
        *place |= gl_element_new(d);
    return (uint32_t)*place;
}

/* ---- the list ---- */

static inline struct gl_segment *gl_segment_of(const struct gl *d, uint64_t pos)
{
    return &d->segments[pos / GL_SEGMENT - d->base];
}

static inline const struct gl_event *gl_event_at(const struct gl *d, uint64_t pos)
{
    return &gl_segment_of(d, pos)->events[pos % GL_SEGMENT];
}

/* The segment that tail lies in always exists. */
static inline void gl_segment_add(struct gl *d)
{
    uint32_t gone = (uint32_t)(d->head / GL_SEGMENT - d->base);
    if (d->segment_count == d->segment_cap && gone > d->segment_count / 2) {
        d->segment_count -= gone;
        memmove(d->segments, d->segments + gone, d->segment_count * sizeof *d->segments);
        d->base += gone;
    }
    d->segments = rf_grow(d->engine.memory, d->segments, &d->segment_cap, d->segment_count + 1, sizeof *d->segments);
    struct gl_event *events = rf_alloc(d->engine.memory, GL_SEGMENT * sizeof *events);
    d->segments[d->segment_count++] = (struct gl_segment){ .events = events };
}

static inline void gl_link(struct gl *d, uint32_t index)
{
    struct gl_info *info = &d->infos[index];
    struct gl_segment *segment = gl_segment_of(d, info->pos);
    info->previous = 0;
    info->next = segment->infos;
    if (info->next)
        d->infos[info->next].previous = index;
    segment->infos = index;
}

static inline void gl_unlink(struct gl *d, const struct gl_info *info)
{
    if (info->next)
        d->infos[info->next].previous = info->previous;
    if (info->previous)
        d->infos[info->previous].next = info->next;
    else
        gl_segment_of(d, info->pos)->infos = info->next;
}

/* All infos point to `to` or beyond: everything before it goes. */
static inline void gl_discard_to(struct gl *d, uint64_t to)
{
    for (uint64_t s = d->head / GL_SEGMENT; s < to / GL_SEGMENT; s++) {
        struct gl_segment *segment = &d->segments[s - d->base];
        rf_free(d->engine.memory, segment->events, GL_SEGMENT * sizeof *segment->events);
        segment->events = NULL;
    }
    d->counts.discarded += to - d->head;
    d->head = to;
    while (d->forgotten_count && d->forgotten[d->forgotten_first].pos < to) {
        d->unused_elements =
            rf_grow(d->engine.memory, d->unused_elements, &d->unused_cap, d->unused_count + 1, sizeof *d->unused_elements);
        d->unused_elements[d->unused_count++] = d->forgotten[d->forgotten_first++].element;
        d->forgotten_count--;
    }
    if (!d->forgotten_count)
        d->forgotten_first = 0;
}

/* "We periodically discard prefix of the list up to the first cell with non-zero reference count." */
static inline void gl_discard(struct gl *d)
{
    uint64_t s = d->head / GL_SEGMENT;
    while (s < d->tail / GL_SEGMENT && !d->segments[s - d->base].infos)
        s++;
    if (s * GL_SEGMENT > d->head)
        gl_discard_to(d, s * GL_SEGMENT);
}

/* ---- infos ---- */

static __attribute__((noinline, unused)) uint32_t gl_info_new(struct gl *d, struct gl_thread *t)
{
    uint32_t index = d->unused_infos;
    if (index) {
        d->unused_infos = d->infos[index].next;
    } else {
        index = d->info_count++;
        d->infos = rf_grow(d->engine.memory, d->infos, &d->info_cap, d->info_count, sizeof *d->infos);
    }
    d->infos[index] = (struct gl_info){ .pos = d->tail,
                                        .owner = t->index,
                                        .references = 1,
                                        .xact = t->xact,
                                        .any = t->held.any,
                                        .exclusive = t->held.exclusive };
    gl_link(d, index);
    return t->info = index;
}

static inline void gl_info_set(struct gl *d, struct gl_info *info, uint32_t count)
{
    rf_free(d->engine.memory, info->ls, info->cap * sizeof *info->ls);
    info->cap = info->count = count;
    info->ls = count ? rf_alloc(d->engine.memory, count * sizeof *info->ls) : NULL;
}

/* One reference less. */
static inline void gl_drop(struct gl *d, uint32_t index)
{
    while (index && !--d->infos[index].references) {
        struct gl_info *info = &d->infos[index];
        uint32_t target = info->forward;
        if (!target)
            gl_unlink(d, info);
        gl_info_set(d, info, 0);
        info->next = d->unused_infos;
        d->unused_infos = index;
        index = target;
    }
}

/* The info that a reference means now; the reference is brought up to date. */
static inline uint32_t gl_resolve(struct gl *d, uint32_t *reference)
{
    uint32_t root = *reference;
    if (__builtin_expect(!d->infos[root].forward, 1))
        return root;
    while (d->infos[root].forward)
        root = d->infos[root].forward;
    d->infos[root].references++;
    gl_drop(d, *reference);
    return *reference = root;
}

/* The next access of this thread is the first of a new info (invariant 4). */
static inline void gl_info_end(struct gl *d, struct gl_thread *t)
{
    if (t->info == GL_NO_INFO)
        return;
    gl_drop(d, t->info);
    t->info = GL_NO_INFO;
}

/* ---- Apply-Lockset-Rules ---- */

/* A new stamp makes all marks old. */
static inline void gl_mark_begin(struct gl *d)
{
    if (++d->stamp)
        return;
    for (uint32_t e = 0; e < d->element_count; e++)
        d->elements[e].mark = 0;
    d->stamp = 1;
}

/* Starts a lockset with what is known of an info's; returns how many elements that are, in d->work. */
static inline uint32_t gl_mark(struct gl *d, const struct gl_info *info)
{
    gl_mark_begin(d);
    if (!info->count) {
        uint32_t owner = d->threads[info->owner]->element;
        d->elements[owner].mark = d->stamp;
        d->work[0] = owner;
        return 1;
    }
    for (uint32_t i = 0; i < info->count; i++) {
        d->elements[info->ls[i]].mark = d->stamp;
        d->work[i] = info->ls[i];
    }
    return info->count;
}

/* The index of a thread's first event at pos or later. */
static inline uint32_t gl_own_from(const struct gl_thread *t, uint64_t pos)
{
    uint32_t low = t->own_first, high = t->own_first + t->own_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->own[middle] < pos)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The third short circuit: only events of the two threads, which find a direct transfer: the first ones of the owner after
 * the access, and the last ones of the other thread. Fewer events make a lockset smaller, so a thread that is found is in
 * it. */
static inline bool gl_two_threads(struct gl *d, const struct gl_info *info, const struct gl_thread *t)
{
    const struct gl_thread *owner = d->threads[info->owner];
    uint32_t a = gl_own_from(owner, info->pos), a_end = owner->own_first + owner->own_count;
    uint32_t b = gl_own_from(t, info->pos), b_end = t->own_first + t->own_count;
    a_end = a_end - a > GL_NEAR ? a + GL_NEAR : a_end;
    b = b_end - b > GL_NEAR ? b_end - GL_NEAR : b;
    if (a == a_end && b == b_end)
        return false;
    gl_mark(d, info);
    while (a < a_end || b < b_end) {
        bool first = b == b_end || (a < a_end && owner->own[a] < t->own[b]);
        const struct gl_event *event = gl_event_at(d, first ? owner->own[a++] : t->own[b++]);
        if (d->elements[event->from].mark != d->stamp)
            continue;
        if (event->to == t->element)
            return true;
        d->elements[event->to].mark = d->stamp; /* element 0, too: nothing leads out of it, nor out of what is forgotten */
    }
    return false;
}

/* Does t become an owner? All events from info.pos on, until it does. What was found is kept if that took long: then no
 * event is applied twice to one info, however many variables it stands for. */
static inline bool gl_traverse(struct gl *d, uint32_t index, const struct gl_thread *t)
{
    struct gl_info *info = &d->infos[index];
    uint32_t count = gl_mark(d, info), kept = 0;
    bool found = false;
    uint64_t pos = info->pos;
    struct gl_element *elements = d->elements;
    while (pos < d->tail && !found) {
        const struct gl_event *event = gl_event_at(d, pos++);
        if (elements[event->from].mark != d->stamp)
            continue;
        if (!event->to) {
            elements[event->from].mark = 0;
        } else if (elements[event->to].mark != d->stamp) {
            elements[event->to].mark = d->stamp;
            d->work[count++] = event->to;
            found = event->to == t->element;
        }
    }
    if (pos - info->pos < GL_WORTH)
        return found;
    for (uint32_t i = 0; i < count; i++)
        if (elements[d->work[i]].mark == d->stamp)
            d->work[kept++] = d->work[i];
    gl_info_set(d, info, kept);
    memcpy(info->ls, d->work, kept * sizeof *info->ls);
    gl_unlink(d, info);
    info->pos = pos;
    gl_link(d, index);
    return found;
}

static __attribute__((noinline, unused)) bool gl_apply_lockset_rules(struct gl *d, uint32_t index, const struct gl_thread *t)
{
    const struct gl_info *info = &d->infos[index];
    for (uint32_t i = 0; i < info->count; i++) {
        if (info->ls[i] == t->element) {
            d->counts.stored++;
            return true;
        }
    }
    if (gl_two_threads(d, info, t)) {
        d->counts.two_threads++;
        return true;
    }
    d->counts.full++;
    return gl_traverse(d, index, t);
}

#endif
