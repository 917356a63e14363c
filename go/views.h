/* What a goroutine, or an object that orders goroutines, knows of all others: a vector clock that is shared as long as nobody changes
 * it.
 *
 * 1. A view is an array of times by slot, and two epochs beside it that count if they are later than their entries in the array: `own`,
 *    the last of whoever made it, and `extra`, what it learned last. So to start a goroutine, or to hand a view on, copies no array.
 * 2. An array is changed in place only by a view that is alone in using it (`users` is 1): nobody else can come to use it then.
 *    Otherwise the view takes a copy first. Short arrays are never shared: to copy one costs less than to count its users, which takes
 *    a locked instruction each, and a view keeps its room.
 * 3. A view whose own is not 0 is all that its owner knew at that epoch. As times are handed on only together with views, whoever
 *    knows that epoch knows the whole view, and need not look at it.
 * 4. A view is changed only under the lock of what it belongs to: an object's cell, or by its goroutine, which runs on one kernel
 *    thread at a time (or is blocked, and the one that wakes it acts for it).
 */
#ifndef RF_GO_VIEWS_H
#define RF_GO_VIEWS_H

#include "core/clock.h"
#include "go/layout.h"
#include "go/system.h"

/* Epochs as cells have room for: more slots and fewer times than those of core/clock.h. */
static inline rf_epoch epoch_make(uint32_t slot, uint32_t time)
{
    return (rf_epoch)slot << GO_TIME_BITS | time;
}

static inline uint32_t epoch_slot(rf_epoch epoch)
{
    return (uint32_t)(epoch >> GO_TIME_BITS);
}

static inline uint32_t epoch_time(rf_epoch epoch)
{
    return epoch & ((1u << GO_TIME_BITS) - 1);
}

#define TIMES_FIRST GO_TIMES_FIRST /* with its head a line of memory */

struct times {
    uint32_t users; /* changed atomically */
    uint32_t len, cap, pad;
    uint32_t time[];
};

_Static_assert(offsetof(struct times, len) == GO_TIMES_LEN && offsetof(struct times, time) == GO_TIMES, "go/layout.h");

struct view {
    struct times *known; /* NULL: nothing */
    rf_epoch own, extra;
};

static inline __attribute__((always_inline)) uint32_t times_get(const struct times *times, uint32_t slot)
{
    return times && slot < times->len ? times->time[slot] : 0;
}

/* Of the own slot all that is earlier is known, whoever had it (slots.h). */
static inline __attribute__((always_inline)) uint32_t view_get(const struct view *view, uint32_t slot)
{
    if (slot == epoch_slot(view->own) && view->own)
        return epoch_time(view->own);
    uint32_t time = times_get(view->known, slot);
    if (slot == epoch_slot(view->extra) && epoch_time(view->extra) > time)
        return epoch_time(view->extra);
    return time;
}

static inline __attribute__((always_inline)) bool view_knows(const struct view *view, rf_epoch epoch)
{
    return epoch_time(epoch) <= view_get(view, epoch_slot(epoch));
}

static inline size_t times_size(uint32_t cap)
{
    return sizeof(struct times) + cap * sizeof(uint32_t);
}

static struct times *times_new(uint32_t len)
{
    uint32_t cap = TIMES_FIRST;
    while (cap < len)
        cap = 2 * cap + 4;
    struct times *times = take(times_size(cap));
    times->users = 1;
    times->cap = cap;
    times->len = len;
    return times;
}

static inline struct times *times_share(struct times *times)
{
    if (times)
        __atomic_add_fetch(&times->users, 1, __ATOMIC_RELAXED); /* who shares it has it: it cannot end meanwhile */
    return times;
}

static inline void times_leave(struct times *times)
{
    if (times && __atomic_sub_fetch(&times->users, 1, __ATOMIC_ACQ_REL) == 0)
        give(times, times_size(times->cap));
}

/* An array of at least this length that only this view uses. */
static struct times *view_alone(struct view *view, uint32_t len)
{
    struct times *old = view->known;
    if (old && __atomic_load_n(&old->users, __ATOMIC_ACQUIRE) == 1 && len <= old->cap) {
        if (old->len < len)
            old->len = len; /* what lies between is zero: nobody ever wrote beyond len */
        return old;
    }
    uint32_t old_len = old ? old->len : 0;
    struct times *times = times_new(len > old_len ? len : old_len);
    if (old)
        memcpy(times->time, old->time, old_len * sizeof(uint32_t));
    times_leave(old);
    return view->known = times;
}

#define SHORT_TIMES 28u

static inline bool times_short(const struct times *times)
{
    return times && times->len <= SHORT_TIMES;
}

/* The array of a view := a short one of another. */
static inline void times_copy(struct view *view, const struct times *from)
{
    struct times *into = view->known;
    uint32_t len = from->len;
    if (!into || __atomic_load_n(&into->users, __ATOMIC_ACQUIRE) != 1 || into->cap < len) {
        times_leave(into);
        view->known = into = times_new(len);
    }
    if (__builtin_expect(len <= TIMES_FIRST, 1)) /* what lies beyond its length is zero */
        memcpy(into->time, from->time, TIMES_FIRST * sizeof *into->time);
    else
        memcpy(into->time, from->time, len * sizeof *into->time);
    if (into->len > len)
        memset(into->time + len, 0, (into->len - len) * sizeof *into->time);
    into->len = len;
}

static void view_set(struct view *view, rf_epoch epoch)
{
    uint32_t slot = epoch_slot(epoch);
    if (epoch_time(epoch) > times_get(view->known, slot))
        view_alone(view, slot + 1)->time[slot] = epoch_time(epoch);
}

/* view := view ⊔ { epoch } */
static void view_learn(struct view *view, rf_epoch epoch)
{
    if (!epoch || view_knows(view, epoch))
        return;
    if (view->extra && epoch_slot(view->extra) != epoch_slot(epoch))
        view_set(view, view->extra);
    view->extra = epoch;
}

/* Of how many slots one of two arrays knows a later time than the other. */
struct difference {
    uint32_t first, second;
};

static struct difference times_compare(const struct times *a, const struct times *b)
{
    uint32_t a_len = a ? a->len : 0, b_len = b ? b->len : 0, common = a_len < b_len ? a_len : b_len;
    struct difference more = { 0, 0 };
    for (uint32_t i = 0; i < common; i++) {
        more.first +=
            (int32_t)a->time[i] > (int32_t)b->time[i]; /* no time has the top bit; processors compare these at once */
        more.second += (int32_t)b->time[i] > (int32_t)a->time[i];
    }
    for (uint32_t i = common; i < a_len; i++)
        more.first += a->time[i] != 0;
    for (uint32_t i = common; i < b_len; i++)
        more.second += b->time[i] != 0;
    return more;
}

/* The view knows this slot by its own or extra epoch, though its array does not. */
static uint32_t times_known_beside(const struct times *times, const struct view *view, rf_epoch epoch)
{
    uint32_t slot = epoch_slot(epoch), time = times_get(times, slot);
    return epoch && time > times_get(view->known, slot) && time <= view_get(view, slot);
}

static void times_join(struct view *view, const struct times *from)
{
    struct times *into = view_alone(view, from->len);
    for (uint32_t i = 0; i < from->len; i++)
        into->time[i] = (int32_t)into->time[i] < (int32_t)from->time[i] ? from->time[i] : into->time[i];
}

/* An array that may be shared is not copied, or replaced, for nothing. */
static void times_join_if_new(struct view *view, const struct view *from)
{
    struct difference more = times_compare(from->known, view->known);
    uint32_t beside = times_known_beside(from->known, view, view->own);
    if (epoch_slot(view->extra) != epoch_slot(view->own))
        beside += times_known_beside(from->known, view, view->extra);
    if (more.first <= beside)
        return;
    if (!more.second && !times_short(from->known)) {
        times_leave(view->known);
        view->known = times_share(from->known);
    } else
        times_join(view, from->known);
}

/* view := view ⊔ from, as it was at this epoch of its owner's, which the view does not know (invariant 3); 0: it is nobody's. The view's
 * own entry is its owner's matter. */
static __attribute__((noinline)) void view_join_unknown(struct view *view, const struct view *from, rf_epoch from_own)
{
    if (times_short(from->known) && (!view->known || times_short(view->known)))
        times_join(view, from->known);
    else if (from->known && from->known != view->known)
        times_join_if_new(view, from);
    view_learn(view, from->extra);
    view_learn(view, from_own);
}

/* view := from, as it was at this epoch of its owner's */
static inline void view_copy(struct view *view, const struct view *from, rf_epoch own)
{
    if (times_short(from->known))
        times_copy(view, from->known);
    else if (view->known != from->known) {
        struct times *old = view->known;
        view->known = times_share(from->known);
        times_leave(old);
    }
    view->own = own;
    view->extra = from->extra;
}

static void view_end(struct view *view)
{
    times_leave(view->known);
    *view = (struct view){ 0 };
}

/* The same, but for the room of an array that nobody else uses: what comes next needs one, too. */
static void view_empty(struct view *view)
{
    struct times *known = view->known;
    if (!times_short(known) || __atomic_load_n(&known->users, __ATOMIC_ACQUIRE) != 1) {
        view_end(view);
        return;
    }
    memset(known->time, 0, known->len * sizeof *known->time);
    known->len = 0;
    view->own = view->extra = 0;
}

/* What a goroutine knows when it begins: what its parent knows, which handed it on at this epoch. The view is empty but for its own. */
static void view_begin(struct view *view, const struct view *parent, rf_epoch handed_on)
{
    view_copy(view, parent, view->own);
    view->extra = handed_on;
}

/* view := view ⊔ from, as it was at this epoch of its owner's, for an object: its result is one owner's if that one knows the rest. */
static void view_merge(struct view *view, const struct view *from, rf_epoch from_own)
{
    bool covered = !view->own && !view->known && !view->extra;
    if (covered || (view->own && view_knows(from, view->own))) {
        view_copy(view, from, from_own);
        return;
    }
    if (view->own) {
        rf_epoch own = view->own;
        view->own = 0;
        view_learn(view, own);
    }
    if (!view_knows(view, from_own))
        view_join_unknown(view, from, from_own);
}

#endif
