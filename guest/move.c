/* What a collector moves: histories of memory, and the synchronisation objects that lie in it.
 *
 * 1. Histories move in one step for every hook (Wood, section 4.3.2): the world is stopped, so nobody is between the look at a word and
 *    its replacement. A hot hook that looks at a word meanwhile only compares it with its own epoch, before the step or after it. But a
 *    thread that is not busy may add bytes to a word of its epoch (repeat_more() of guest/slow_access.c): those that stay must not get lost.
 * 2. Bytes are moved, not granules: the two ranges may begin anywhere, and overlap. A granule of the target is made anew out of what of
 *    it stays and of the one or two granules that its bytes come from, in the direction in which none of those was changed before.
 * 3. What a thread remembers of its epoch by address (guest/seen.h) is void afterwards, in every thread.
 */
#include "guest/intercept.h"
#include "guest/locks.h"
#include "guest/policy.h"
#include "guest/seen.h"
#include "guest/spin.h"
#include "guest/steps.h"
#include "guest/tap.h"
#include "guest/threads.h"

#define PAGE 4096u

/* ---- histories ---- */

static void add(struct rf_slices *slices, const struct rf_slice *slice, unsigned mask)
{
    slices->list[slices->count] = *slice;
    slices->list[slices->count++].mask = (uint8_t)mask;
}

/* The slices of the granule at `from` whose bytes, `shift` further up, are in the mask; what they name is copied. */
static void add_moved(struct rf_slices *slices, uintptr_t from, int shift, unsigned mask, struct rf_step *step)
{
    struct rf_slices source;
    uint64_t word = rf_lanes_settled(rf_word(from));
    rf_policy_settle(word);
    rf_slices_of(word, &source);
    slices->twofold |= source.twofold;
    for (unsigned i = 0; i < source.count; i++) {
        unsigned bytes = source.list[i].mask, moved = (shift >= 0 ? bytes << shift : bytes >> -shift) & mask;
        if (!moved)
            continue;
        add(slices, &source.list[i], moved);
        ftm_copy(step, &slices->list[slices->count - 1].cell, &source.list[i].cell);
    }
}

/* The bytes in the mask of the granule at `to` get the history of those that lie as far from `from` as they from `to`. */
static void copy_granule(uintptr_t to, uintptr_t from, unsigned mask)
{
    uint64_t *place = rf_word(to), word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    uintptr_t first = from & ~(uintptr_t)(RF_GRANULE - 1);
    int offset = (int)(from - first);
    uint64_t source = __atomic_load_n(rf_word(first), __ATOMIC_ACQUIRE);
    if (!offset && mask == 0xff && !rf_word_has_units(source) && !rf_word_has_units(word)) {
        if (word == source)
            return;
        __atomic_store_n(place, source, __ATOMIC_RELEASE);
        rf_touch(place);
        return;
    }
    if (__builtin_expect(rf_multi, 0)) {
        rf_multi_copy(place, first, (unsigned)offset, mask);
        return;
    }
    struct rf_slices old, slices = { .count = 0 };
    struct rf_stripe *stripe = rf_stripe_of(place);
    struct rf_step step = { .stripe = stripe, .self = rf_hot.self };
    rf_spin_lock(&stripe->lock);
    word = rf_lanes_settled(place);
    rf_policy_settle(word);
    rf_slices_of(word, &old);
    slices.twofold = old.twofold;
    for (unsigned i = 0; i < old.count; i++)
        if (old.list[i].mask & ~mask & 0xff)
            add(&slices, &old.list[i], old.list[i].mask & ~mask);
    add_moved(&slices, first, -offset, mask, &step);
    if (offset)
        add_moved(&slices, first + RF_GRANULE, (int)RF_GRANULE - offset, mask, &step);
    for (unsigned i = 0; rf_word_has_units(word) && i < old.count; i++) /* not before: where the ranges overlap, this granule is a source, too */
        if (!(old.list[i].mask & ~mask & 0xff))
            ftm_clear(&step, &old.list[i].cell);
    rf_slices_gather(&slices, &step);
    rf_slices_join(&slices);
    uint64_t next = rf_slices_word(&slices, &step, 0), expected = word;
    bool done = __atomic_compare_exchange_n(place, &expected, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (done) {
        rf_word_end_record(stripe, word);
    } else { /* it had no units, so none were given back: what was made of it is not needed */
        rf_slices_of(next, &slices);
        rf_slices_end(&slices, &step);
        rf_word_end_record(stripe, next);
    }
    rf_spin_unlock(&stripe->lock);
    if (done)
        rf_touch(place);
    else
        copy_granule(to, from, mask);
}

/* The world is stopped. */
static void copy_histories(uintptr_t from, uintptr_t to, size_t size)
{
    uintptr_t low = to & ~(uintptr_t)(RF_GRANULE - 1), high = (to + size + RF_GRANULE - 1) & ~(uintptr_t)(RF_GRANULE - 1);
    for (uintptr_t done = 0; done < high - low; done += RF_GRANULE) {
        uintptr_t at = to > from ? high - RF_GRANULE - done : low + done;
        unsigned mask = 0xff;
        if (at < to)
            mask &= 0xffu << (to - at);
        if (at + RF_GRANULE > to + size)
            mask &= (1u << (to + size - at)) - 1;
        copy_granule(at, from - to + at, mask & 0xff);
    }
}

void rf_range_copy(uintptr_t from, uintptr_t to, size_t size, bool move, uintptr_t pc)
{
    struct rf_self *self = rf_hot.self;
    if (!self || !size || self->busy || from == to)
        return;
    uintptr_t rest = from, rest_end = from + size; /* of the source, what the target does not overlap */
    if (to > from && to < rest_end)
        rest_end = to;
    else if (to < from && to + size > from)
        rest = to + size;
    if (!(rf_tap && rf_tap_copy(self, from, to, size, pc))) {
        self->inside++; /* a signal handler must not wait for the world that its thread has stopped */
        rf_world_stop(self);
        copy_histories(from, to, size);
        rf_seen_stop();
        rf_world_go(self);
        self->inside--;
    }
    if (move)
        rf_range_clear(rest, rest_end - rest);
}

/* ---- synchronisation objects ---- */

/* Its clocks and what else is known of it. A lock keeps its number, by which its holder knows it, and histories what protected them. */
static void move_object(struct rf_self *self, uintptr_t from, uintptr_t to)
{
    struct rf_object *object = rf_object_lock(self, from, RF_O_NONE, false);
    if (!object)
        return;
    struct rf_object saved = *object;
    if (saved.sync.released.times == object->few) { /* it stays where it is: the clock goes without its array */
        saved.sync.released = (struct rf_clock){ 0 };
        rf_clock_room(&saved.sync.released, object->sync.released.len);
        rf_clock_join(&saved.sync.released, NULL, &object->sync.released);
        memset(object->few, 0, sizeof object->few);
    }
    object->sync = (struct rf_sync){ 0 };
    object->detail = NULL;
    object->lock_number = 0;
    rf_object_unlock(self, object);
    rf_objects_forget(from, 1);
    object = rf_object_lock(self, to, (enum rf_object_kind)saved.kind, true);
    object->sync = saved.sync; /* its versions are 0 */
    object->detail = saved.detail;
    object->created = saved.created;
    object->owner = saved.owner;
    object->depth = saved.depth;
    object->reading = saved.reading;
    object->flags = saved.flags;
    object->extra = saved.extra;
    object->last_store = saved.last_store;
    object->owner_note = saved.owner_note;
    object->key = saved.key; /* guest/tap.h: what waits under it is still to be received */
    object->own_key = saved.own_key;
    if ((object->lock_number = saved.lock_number))
        rf_lock_moved(saved.lock_number, from, to);
    rf_object_unlock(self, object);
}

void rf_objects_move(uintptr_t from, uintptr_t to, size_t size)
{
    struct rf_self *self = rf_hot.self;
    if (!self || from == to || !size)
        return;
    /* What was at the new place, where it is not the old one, too. */
    if (to > from) {
        uintptr_t fresh = to > from + size ? to : from + size;
        rf_objects_forget(fresh, to + size - fresh);
    } else {
        rf_objects_forget(to, (to + size < from ? to + size : from) - to);
    }
    for (size_t i = 0; i < size; i++) {
        size_t at = to > from ? size - 1 - i : i; /* from the side that leaves what is still to be moved alone */
        if (__atomic_load_n(rf_object_page(from + at), __ATOMIC_RELAXED))
            move_object(self, from + at, to + at);
        else /* none in all of this page: on to the next */
            i += to > from ? (from + at) % PAGE : PAGE - 1 - (from + at) % PAGE;
    }
}
