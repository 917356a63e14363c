/* Goroutines: what hooks are given as their first argument, and the slots by which clocks know them.
 *
 * 1. A goroutine has a slot and, in `now`, its epoch there. A slot changes hands only if the next owner knows all that its last one did
 *    (the goroutine that starts it knows), or if no history names the slot any more (sweep.h found that). So slots are as many as
 *    goroutines live at once, or ended unnoticed since the last sweep: not as many as were ever started.
 * 2. Times never wrap: before they would, a goroutine goes on under a slot that nobody had before.
 * 3. Slots and their owners are under slots_lock. A goroutine's other fields belong to it (views.h, 4); `now` is also read, without a
 *    lock, for the goroutine of finalizers.
 * 4. A goroutine's record is used again for the next one, and its room for frames with it.
 */
#ifndef RF_GO_GOROUTINES_H
#define RF_GO_GOROUTINES_H

#include "go/layout.h"
#include "go/notes.h"
#include "go/views.h"

#ifndef RF_TIME_LIMIT
#define RF_TIME_LIMIT ((1u << GO_TIME_BITS) - 64) /* less for tests. A hook adds a few to it at most */
#endif
#define SLOTS_MOST (UINT32_C(1) << (GO_MASK_SHIFT - GO_TIME_BITS)) /* what a cell has room for */
#define FRAMES_FIRST 64u
#define MAIN_GOROUTINE 1u /* 0 is what runs before it */

struct frame {
    uintptr_t pc;  /* where its caller goes on */
    uint32_t note; /* of the stack up to here; 0: not asked yet */
    uint32_t pad;
};

#define ASKED GO_ASKED_COUNT

/* Where an atomic operation was: the note of that, and by what it is known again. The innermost frame most often has no note yet, as
 * its function was just entered: then it is known by its return address and the note of the frame below. */
struct site {
    uintptr_t caller, call; /* see atomics.h */
    uintptr_t frame;        /* 0: it had a note, which is `below` */
    uint32_t below, note;   /* below: never 0, or it is not known again */
    uint32_t locks;         /* does it take a mutex? */
    uint32_t pad[7];
};

#define SITES GO_SITES_COUNT

/* But for what stands after `code` without being named there: go/layout.h. */
struct goroutine {
    rf_epoch now; /* the same as view.own */
    struct frame *top, *end;
    struct frame *frames;
    struct view view;
    bool used; /* a history may name the present epoch */
    uint32_t number;
    uintptr_t code;           /* code_base; out of reach if another detector is at work, which is to be told all accesses */
    uint32_t ignore;          /* of synchronisation: how often it was begun and not ended */
    rf_epoch changed;         /* the epoch in which it last learned something, or its first one */
    rf_epoch limit;           /* the epoch that it goes on in another slot at */
    struct goroutine *next;   /* of those that are not in use */
    uint32_t learned;         /* all_learned, when it last began an epoch for it */
    uint32_t mutex_kind;      /* go/detectors.h: in which function of package sync its last atomic operation was, */
    uintptr_t mutex_addr;     /* and on what; */
    uint32_t passed;          /* accesses that were not looked at */
    struct note asked[ASKED]; /* the last answers about stacks: all zero, or as they are in the index */
    struct site sites[SITES]; /* of its last atomic operations */
};

_Static_assert(offsetof(struct goroutine, now) == GO_NOW && offsetof(struct goroutine, top) == GO_TOP &&
                   offsetof(struct goroutine, end) == GO_END && offsetof(struct goroutine, frames) == GO_FRAMES &&
                   offsetof(struct goroutine, view.known) == GO_KNOWN &&
                   offsetof(struct goroutine, view.extra) == GO_EXTRA && offsetof(struct goroutine, used) == GO_USED &&
                   offsetof(struct goroutine, code) == GO_CODE && offsetof(struct goroutine, view.own) == GO_OWN &&
                   offsetof(struct goroutine, ignore) == GO_IGNORE && offsetof(struct goroutine, changed) == GO_CHANGED &&
                   offsetof(struct goroutine, limit) == GO_LIMIT && offsetof(struct goroutine, sites) == GO_SITES &&
                   offsetof(struct goroutine, asked) == GO_ASKED && sizeof(struct note) == 16 &&
                   offsetof(struct note, below) == 8 && offsetof(struct note, note) == 12 &&
                   sizeof(struct frame) == GO_FRAME_SIZE && offsetof(struct frame, note) == GO_FRAME_NOTE,
               "go/layout.h");

struct owner {
    uint32_t since; /* its first time in the slot */
    uint32_t goroutine, created;
    bool ended;
};

enum { SLOT_OWNED, SLOT_IDLE, SLOT_SPENT }; /* idle: between owners. Spent: times are used up, it has no next one */

struct slot {
    struct owner *owners; /* in the order of their times */
    uint32_t count, cap;
    uint32_t last; /* the last time used, once its owner has ended */
    uint32_t state;
    struct goroutine *goroutine; /* OWNED: whose it is */
};

_Static_assert(sizeof(struct site) == 1 << GO_SITE_SHIFT && offsetof(struct site, caller) == GO_SITE_CALLER &&
                   offsetof(struct site, call) == GO_SITE_CALL && offsetof(struct site, frame) == GO_SITE_FRAME &&
                   offsetof(struct site, below) == GO_SITE_BELOW && offsetof(struct site, note) == GO_SITE_NOTE &&
                   offsetof(struct site, locks) == GO_SITE_LOCKS,
               "go/layout.h");

static uint32_t slots_lock;
static struct slot *slots;
static uint32_t slot_count, slot_cap;
static struct slot_list {
    uint32_t *at;
    uint32_t first, count, cap; /* at[first] ... at[count - 1] */
} idle_slots, forgotten_slots;
static uint32_t owner_count; /* of all slots */
static uint32_t goroutines_started, goroutines_live;
static struct goroutine *spare_goroutines; /* under slots_lock */

static inline uint32_t goroutine_slot(const struct goroutine *g)
{
    return epoch_slot(g->view.own);
}

/* ---- slots, under the lock ---- */

static void slot_own(uint32_t slot, struct goroutine *g, uint32_t created)
{
    struct slot *s = &slots[slot];
    s->state = SLOT_OWNED;
    s->goroutine = g;
    s->owners = grown(s->owners, &s->cap, s->count + 1, sizeof *s->owners);
    s->owners[s->count++] = (struct owner){ s->last + 1, g->number, created, false };
    owner_count++;
    g->view.own = epoch_make(slot, s->last + 1);
    g->limit = epoch_make(slot, RF_TIME_LIMIT);
}

static void slot_take_fresh(struct goroutine *g, uint32_t created)
{
    if (slot_count == SLOTS_MOST)
        give_up("more than sixteen million goroutines live at once");
    slots = grown(slots, &slot_cap, slot_count + 1, sizeof *slots);
    slot_own(slot_count++, g, created);
}

static void slot_list_add(struct slot_list *list, uint32_t slot)
{
    if (list->count == list->cap && list->first > list->cap / 2) {
        list->count -= list->first;
        memmove(list->at, list->at + list->first, list->count * sizeof *list->at);
        list->first = 0;
    }
    list->at = grown(list->at, &list->cap, list->count + 1, sizeof *list->at);
    list->at[list->count++] = slot;
}

/* May a child of this goroutine have the slot at this place of the list? Then it is taken from there. */
static bool slot_take_idle(uint32_t place, struct goroutine *g, const struct goroutine *parent, uint32_t created)
{
    struct slot_list *list = &idle_slots;
    uint32_t slot = list->at[place];
    if (view_get(&parent->view, slot) < slots[slot].last)
        return false;
    if (place - list->first < list->count - place)
        list->at[place] = list->at[list->first++];
    else
        list->at[place] = list->at[--list->count];
    if (list->first == list->count)
        list->first = list->count = 0;
    slot_own(slot, g, created);
    return true;
}

/* One that had an owner before, if there is any that this goroutine may have (invariant 1). Whose end the parent has seen is likely to
 * be among those that ended first, or last. */
static bool slot_take_used(struct goroutine *g, const struct goroutine *parent, uint32_t created)
{
    const struct slot_list *list = &idle_slots;
    for (uint32_t i = 0; parent && i < 16 && list->first + i < list->count; i++)
        if (slot_take_idle(list->first + i, g, parent, created) || slot_take_idle(list->count - 1 - i, g, parent, created))
            return true;
    if (!forgotten_slots.count)
        return false;
    slot_own(forgotten_slots.at[--forgotten_slots.count], g, created);
    return true;
}

static void slot_leave(uint32_t slot, uint32_t last)
{
    struct slot *s = &slots[slot];
    s->last = last;
    s->goroutine = NULL;
    s->owners[s->count - 1].ended = true;
    s->state = last >= RF_TIME_LIMIT ? SLOT_SPENT : SLOT_IDLE;
    if (s->state == SLOT_IDLE)
        slot_list_add(&idle_slots, slot);
}

/* Whose epoch it is. What a history names is still known (sweep.h); of one that was overwritten just now it may be the next owner. */
static struct owner owner_of(rf_epoch epoch)
{
    spin_lock(&slots_lock);
    const struct slot *s = &slots[epoch_slot(epoch)];
    uint32_t low = 0, high = s->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (s->owners[middle].since > epoch_time(epoch))
            high = middle;
        else
            low = middle;
    }
    struct owner owner = s->owners[low];
    spin_unlock(&slots_lock);
    return owner;
}

/* ---- epochs ---- */

static __attribute__((noinline)) void epoch_in_fresh_slot(struct goroutine *g)
{
    g->used = false;
    rf_epoch old = g->view.own;
    spin_lock(&slots_lock);
    struct slot *s = &slots[epoch_slot(old)];
    uint32_t created = s->owners[s->count - 1].created;
    s->last = epoch_time(old);
    s->state = SLOT_SPENT;
    s->goroutine = NULL;
    slot_take_fresh(g, created);
    spin_unlock(&slots_lock);
    view_set(&g->view, old); /* all that was done under the old one is past */
    g->changed = g->view.own;
    __atomic_store_n(&g->now, g->view.own, __ATOMIC_RELAXED);
}

/* Before anything is locked: slots_lock comes first, as sweeps take cells' locks under it. */
static inline void epoch_room(struct goroutine *g)
{
    if (__builtin_expect(g->view.own >= g->limit, 0))
        epoch_in_fresh_slot(g);
}

/* What the goroutine does from now on is later. The caller has made room. */
static inline void epoch_next(struct goroutine *g)
{
    g->view.own++;
    __atomic_store_n(&g->used, false,
                     __ATOMIC_RELEASE); /* after it: goroutine_learn_all() reads the two the other way round */
    __atomic_store_n(&g->now, g->view.own, __ATOMIC_RELAXED);
}

/* What the goroutine knows is handed on, as it is at this epoch. Another one begins; if the present one names nothing, as nothing was
 * done or learned since the last was handed on, that one will do. */
static inline rf_epoch epoch_handed_on(struct goroutine *g)
{
    rf_epoch own = g->view.own;
    if (!g->used && g->changed != own)
        return own - 1;
    epoch_next(g);
    return own;
}

/* ---- stacks ---- */

static __attribute__((noinline)) void frames_grow(struct goroutine *g)
{
    size_t count = (size_t)(g->end - g->frames), room = 2 * count;
    struct frame *larger = take(room * sizeof *larger);
    memcpy(larger, g->frames, count * sizeof *larger);
    give(g->frames, count * sizeof *larger);
    g->frames = larger;
    g->top = larger + count;
    g->end = larger + room;
}

static inline void frame_push(struct goroutine *g, uintptr_t pc)
{
    if (__builtin_expect(g->top == g->end, 0))
        frames_grow(g);
    g->top->pc = pc;
    g->top->note = 0;
    g->top++;
}

static inline void frame_pop(struct goroutine *g)
{
    if (g->top > g->frames)
        g->top--;
}

/* The note of `pc` on the stack `below`: most often one of those that were asked last. */
static inline uint32_t note_again(struct goroutine *g, uintptr_t pc, uint32_t below)
{
    struct note *asked = &g->asked[(pc ^ pc >> 4 ^ below) % ASKED];
    if (__builtin_expect(asked->pc != pc || asked->below != below, 0))
        *asked = (struct note){ pc, below, note_put(pc, below) };
    return asked->note;
}

/* Frames from the innermost known one upwards get their notes. */
static __attribute__((noinline)) uint32_t note_of_frames(struct goroutine *g)
{
    struct frame *frame = g->top;
    while (frame > g->frames && !frame[-1].note)
        frame--;
    uint32_t note = frame > g->frames ? frame[-1].note : 0;
    for (; frame < g->top; frame++)
        frame->note = note = note_again(g, frame->pc, note);
    return note;
}

/* The note of the goroutine's stack. */
static inline uint32_t note_of_stack(struct goroutine *g)
{
    const struct frame *top = g->top;
    return __builtin_expect(top > g->frames && top[-1].note, 1) ? top[-1].note : note_of_frames(g);
}

/* The same with a call on top of it, which is not entered. */
static inline uint32_t note_of_call(struct goroutine *g, uintptr_t call)
{
    return note_again(g, call, note_of_stack(g));
}

/* The note of a place under the goroutine's own stack. */
static inline uint32_t note_of_place(struct goroutine *g, go_place place)
{
    return place >> 32 ? note_again(g, steady.code_base + (uintptr_t)(place >> 32), (uint32_t)place) : (uint32_t)place;
}

static inline uint32_t note_here(struct goroutine *g, uintptr_t pc)
{
    return note_put(pc, note_of_stack(g));
}

static inline go_place place_here(struct goroutine *g, uintptr_t pc)
{
    return place_make(pc, note_of_stack(g));
}

/* ---- begin and end ---- */

static uint32_t slots_limit = 256, owners_limit = 1u << 20; /* above them a sweep is due */
static void sweep_locked(void);
static void others_started(const struct goroutine *parent, const struct goroutine *child, uint32_t created);
static void others_ended(const struct goroutine *g);
static bool others_listen(void);

/* parent NULL: Go's runtime itself. */
static struct goroutine *goroutine_begin(struct goroutine *parent, uintptr_t pc)
{
    uint32_t created = !parent ? note_put(pc, 0) : pc ? note_here(parent, pc) : 0;
    if (parent)
        epoch_room(parent);
    spin_lock(&slots_lock);
    if (owner_count > owners_limit)
        sweep_locked();
    struct goroutine *g = spare_goroutines;
    if (g)
        spare_goroutines = g->next;
    else {
        g = take(sizeof *g);
        g->frames = take(FRAMES_FIRST * sizeof *g->frames);
        g->end = g->frames + FRAMES_FIRST;
        g->code = others_listen() ? UINTPTR_MAX / 2 : steady.code_base;
    }
    g->number = goroutines_started++;
    goroutines_live++;
    g->ignore = g->mutex_kind = 0;
    g->used = false;
    if (!slot_take_used(g, parent, created)) {
        if (slot_count >= slots_limit)
            sweep_locked();
        if (!slot_take_used(g, parent, created))
            slot_take_fresh(g, created);
    }
    spin_unlock(&slots_lock);
    g->top = g->frames;
    g->now = g->view.own;
    if (parent) {
        if (parent->view.extra)
            view_set(&parent->view, parent->view.extra);
        parent->view.extra = 0;
        view_begin(&g->view, &parent->view, epoch_handed_on(parent));
    }
    g->changed = g->view.own;
    if (others_listen())
        others_started(parent, g, created);
    return g;
}

static void goroutine_end(struct goroutine *g)
{
    if (others_listen())
        others_ended(g);
    rf_epoch last = g->view.own;
    view_empty(&g->view);
    spin_lock(&slots_lock);
    /* Most end with handing something on: who received it knows all that the slot was used for. */
    slot_leave(epoch_slot(last), epoch_time(last) - !g->used);
    goroutines_live--;
    g->next = spare_goroutines;
    spare_goroutines = g;
    spin_unlock(&slots_lock);
}

/* steady.all_learned: how often a goroutine learned what all others had done. Theirs are then epochs that somebody knows who was handed no
 * view: before one of them learns more it begins another, so that what views.h says in 3 stays true of the old one. */
static inline void epoch_before_learning(struct goroutine *g)
{
    uint32_t learned = __atomic_load_n(&steady.all_learned, __ATOMIC_RELAXED);
    if (__builtin_expect(g->learned != learned, 0)) {
        g->learned = learned;
        epoch_next(g);
    }
}

/* g.view := g.view ⊔ from */
static inline void goroutine_learn(struct goroutine *g, const struct view *from)
{
    epoch_before_learning(g);
    if (from->own && view_knows(&g->view, from->own))
        return;
    view_join_unknown(&g->view, from, from->own);
    g->changed = g->view.own;
}

/* All that has happened comes before what this goroutine does from now on. Others run on meanwhile; what they do until they next hand
 * something on counts as known, too. */
static void goroutine_learn_all(struct goroutine *g)
{
    spin_lock(&slots_lock);
    __atomic_add_fetch(&steady.all_learned, 1, __ATOMIC_SEQ_CST);
    struct times *times = view_alone(&g->view, slot_count);
    for (uint32_t i = 0; i < slot_count; i++) {
        const struct goroutine *owner = slots[i].goroutine;
        uint32_t time = slots[i].last;
        if (slots[i].state == SLOT_OWNED &&
            owner) { /* first whether it is used: if not, the epoch before that of then is known */
            bool used = __atomic_load_n(&owner->used, __ATOMIC_ACQUIRE);
            time = epoch_time(__atomic_load_n(&owner->view.own, __ATOMIC_RELAXED)) - !used;
        }
        if (owner != g && time > times->time[i])
            times->time[i] = time;
    }
    g->changed = g->view.own;
    spin_unlock(&slots_lock);
}

#endif
