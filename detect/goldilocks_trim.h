/* Goldilocks' list at its end and at its head: new events, and partially-eager evaluation (section 5.4).
 *
 * The paper looks for the infos that refer to the first cell, computes their locksets up to a later one, and repeats. Here
 * all infos that point into the first tenth of the list are taken at once, and 64 locksets are computed in one pass: one
 * bit of gl_element.bits for each, so that "if from ∈ LS, add to" is one `or`. The invariants are those of
 * detect/goldilocks_list.h.
 */
#ifndef RF_DETECT_GOLDILOCKS_TRIM_H
#define RF_DETECT_GOLDILOCKS_TRIM_H

#include "detect/goldilocks_list.h"

#define GL_AT_ONCE 64u

/* Adds `bits` to the locksets that an element is in; an element that was in none joins d->work. */
static inline uint32_t gl_bits_add(struct gl *d, uint32_t count, uint32_t element, uint64_t bits)
{
    if (!d->elements[element].bits)
        d->work[count++] = element;
    d->elements[element].bits |= bits;
    return count;
}

static inline uint32_t gl_bits_seed(struct gl *d, uint32_t count, const struct gl_info *info, uint64_t bit)
{
    if (!info->count)
        return gl_bits_add(d, count, d->threads[info->owner]->element, bit);
    for (uint32_t i = 0; i < info->count; i++)
        count = gl_bits_add(d, count, info->ls[i], bit);
    return count;
}

/* Applies the events before `to` to at most 64 infos, all of which point before it. */
static inline void gl_evaluate(struct gl *d, uint32_t *infos, uint32_t n, uint64_t to)
{
    for (uint32_t i = 1; i < n; i++) { /* in the order of pos */
        uint32_t index = infos[i], at = i;
        for (; at && d->infos[infos[at - 1]].pos > d->infos[index].pos; at--)
            infos[at] = infos[at - 1];
        infos[at] = index;
    }
    uint32_t count = 0, next = 0;
    for (uint64_t pos = d->infos[infos[0]].pos; pos < to; pos++) {
        for (; next < n && d->infos[infos[next]].pos == pos; next++)
            count = gl_bits_seed(d, count, &d->infos[infos[next]], UINT64_C(1) << next);
        const struct gl_event *event = gl_event_at(d, pos);
        uint64_t bits = d->elements[event->from].bits;
        if (!bits)
            continue;
        if (event->to)
            count = gl_bits_add(d, count, event->to, bits);
        else
            d->elements[event->from].bits = 0;
    }
    uint32_t sizes[GL_AT_ONCE] = { 0 };
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t bits = d->elements[d->work[i]].bits; bits; bits &= bits - 1)
            sizes[__builtin_ctzll(bits)]++;
    for (uint32_t i = 0; i < n; i++) {
        gl_info_set(d, &d->infos[infos[i]], sizes[i] > 1 ? sizes[i] : 0); /* one element: the owner itself */
        d->infos[infos[i]].count = 0;
        d->infos[infos[i]].pos = to;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t element = d->work[i];
        for (uint64_t bits = d->elements[element].bits; bits; bits &= bits - 1) {
            struct gl_info *info = &d->infos[infos[__builtin_ctzll(bits)]];
            if (info->cap)
                info->ls[info->count++] = element;
        }
        d->elements[element].bits = 0;
    }
}

static inline bool gl_equal(struct gl *d, const struct gl_info *a, const struct gl_info *b)
{
    if (a->owner != b->owner || a->xact != b->xact || a->count != b->count)
        return false;
    gl_mark(d, a);
    for (uint32_t i = 0; i < b->count; i++)
        if (d->elements[b->ls[i]].mark != d->stamp)
            return false;
    return true;
}

/* Merges two equal infos that are not linked; returns the one that remains. The higher tree wins, so that no reference is
 * more than a logarithm of steps away from its info. Equal locksets stay equal, so whatever lock proves the order of one of
 * the two proves that of the other. */
static inline uint32_t gl_merge(struct gl *d, uint32_t a, uint32_t b)
{
    uint32_t to = d->infos[a].rank < d->infos[b].rank ? b : a;
    struct gl_info *kept = &d->infos[to], *gone = &d->infos[to == a ? b : a];
    kept->blurred |= gone->blurred || kept->any != gone->any || kept->exclusive != gone->exclusive;
    kept->rank += kept->rank == gone->rank;
    kept->references++;
    gone->forward = to;
    gl_info_set(d, gone, 0);
    return to;
}

/* Unlinks the infos that point before `to` into d->batch; returns their number. */
static inline uint32_t gl_gather(struct gl *d, uint64_t to)
{
    uint32_t n = 0;
    for (uint64_t s = d->head / GL_SEGMENT; s <= (to - 1) / GL_SEGMENT; s++) {
        for (uint32_t index = d->segments[s - d->base].infos, next; index; index = next) {
            next = d->infos[index].next;
            if (d->infos[index].pos >= to)
                continue;
            gl_unlink(d, &d->infos[index]);
            d->batch = rf_grow(d->engine.memory, d->batch, &d->batch_cap, n + 1, sizeof *d->batch);
            d->batch[n++] = index;
        }
    }
    return n;
}

/* After it the list begins at `to`. */
static __attribute__((noinline, unused)) void gl_trim(struct gl *d, uint64_t to)
{
    uint32_t n = gl_gather(d, to);
    d->counts.partial += n;
    for (uint32_t i = 0; i < n; i += GL_AT_ONCE)
        gl_evaluate(d, d->batch + i, n - i < GL_AT_ONCE ? n - i : GL_AT_ONCE, to);
    struct rf_map seen; /* a hash of the lockset -> the info that has it */
    rf_map_init(&seen, d->engine.memory);
    for (uint32_t i = 0; i < n; i++) {
        const struct gl_info *info = &d->infos[d->batch[i]];
        uint64_t hash = (uint64_t)info->owner << 1 | info->xact;
        for (uint32_t j = 0; j < info->count; j++)
            hash += rf_hash(info->ls[j]); /* a sum, since the elements have no order */
        uint64_t *place = rf_map_at(&seen, hash >> 1 ^ (hash & 1));
        uint32_t equal = (uint32_t)*place;
        if (!equal)
            *place = d->batch[i];
        else if (gl_equal(d, &d->infos[equal], info))
            *place = gl_merge(d, equal, d->batch[i]);
    }
    rf_map_end(&seen);
    for (uint32_t i = 0; i < n; i++)
        if (!d->infos[d->batch[i]].forward)
            gl_link(d, d->batch[i]);
    for (uint32_t i = 0; i < d->thread_cap; i++) /* a thread's own info is never a merged one */
        if (d->threads[i] && d->threads[i]->info != GL_NO_INFO && d->infos[d->threads[i]->info].forward)
            gl_info_end(d, d->threads[i]);
    gl_discard_to(d, to);
}

/* The list is too long. */
static __attribute__((noinline, unused)) void gl_shorten(struct gl *d)
{
    gl_discard(d);
    if (d->tail - d->head > d->limit)
        gl_trim(d, d->head + (d->limit < 10 ? 1 : d->limit / 10));
}

/* Enqueue-Synch-Event */
static inline void gl_enqueue(struct gl *d, struct gl_thread *t, uint32_t from, uint32_t to)
{
    gl_segment_of(d, d->tail)->events[d->tail % GL_SEGMENT] = (struct gl_event){ from, to };
    if (t->own_first + t->own_count == t->own_cap) { /* forget those that have left the list */
        uint32_t first = gl_own_from(t, d->head), gone = first - t->own_first;
        t->own_count -= gone;
        if (first > t->own_cap / 2) {
            memmove(t->own, t->own + first, t->own_count * sizeof *t->own);
            first = 0;
        }
        t->own_first = first;
        t->own = rf_grow(d->engine.memory, t->own, &t->own_cap, first + t->own_count + 1, sizeof *t->own);
    }
    t->own[t->own_first + t->own_count++] = d->tail;
    d->counts.enqueued++;
    if (++d->tail % GL_SEGMENT == 0) {
        gl_segment_add(d);
        gl_discard(d);
    }
    if (d->tail - d->head > d->limit)
        gl_shorten(d);
    if (d->tail - d->head > d->counts.longest)
        d->counts.longest = d->tail - d->head;
}

/* "if e ∈ LS, add t" (rules 2, 4, 7 and the first of 9), unless that changes no lockset (invariant 6). */
static inline void gl_receive(struct gl *d, struct gl_thread *t, uint32_t element)
{
    if (!element || d->elements[element].knower == t->index)
        return;
    d->elements[element].knower = t->index;
    gl_enqueue(d, t, element, t->element);
}

/* "if t ∈ LS, add e" (rules 3, 5, 6 and the last of 9). */
static inline void gl_publish(struct gl *d, struct gl_thread *t, enum gl_kind kind, uint64_t key)
{
    bool fresh = !gl_element_find(d, kind, key);
    uint32_t element = gl_element_at(d, kind, key);
    if (fresh || d->elements[element].knower == t->index)
        d->elements[element].knower = t->index;
    else
        d->elements[element].knower = GL_NOBODY;
    gl_enqueue(d, t, t->element, element);
    gl_info_end(d, t);
}

/* Takes a signal out of all locksets; its name means a new one from now on. */
static inline void gl_forget(struct gl *d, struct gl_thread *t, uint64_t key)
{
    uint32_t element = gl_element_find(d, GL_SIGNAL, key);
    if (!element)
        return;
    rf_map_remove(&d->kinds[GL_SIGNAL], key);
    uint32_t end = d->forgotten_first + d->forgotten_count;
    if (end == d->forgotten_cap && d->forgotten_first > d->forgotten_cap / 2) {
        memmove(d->forgotten, d->forgotten + d->forgotten_first, d->forgotten_count * sizeof *d->forgotten);
        d->forgotten_first = 0;
        end = d->forgotten_count;
    }
    d->forgotten = rf_grow(d->engine.memory, d->forgotten, &d->forgotten_cap, end + 1, sizeof *d->forgotten);
    d->forgotten[end] = (struct gl_forgotten){ d->tail, element };
    d->forgotten_count++;
    gl_enqueue(d, t, element, 0);
}

#endif
