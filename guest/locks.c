#include "guest/locks.h"

#include "core/lockset.h"
#include "guest/access.h"
#include "guest/accu.h"
#include "guest/memory.h"
#include "guest/options.h"
#include "guest/refusal.h"
#include "guest/report.h"
#include "guest/spin.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/versions.h"

#define CACHE 64u
#define CACHE_MOST 8192u /* of a thread that goes through many locks, each with others inside */

/* A set and a lock that was taken with it held. */
struct joined {
    uint32_t set, member; /* member 0: none */
    uint32_t result;      /* the set with the member */
    uint32_t told;        /* as_told(): that it was wanted so is known to guest/lock_order.c; 0: it is not */
};

/* What rf_locks_common() and rf_locks_protecting() answered. */
struct common {
    uint32_t a, b, result; /* b 0: none */
};
#define COMMON 1024u

/* What this file keeps of a thread: self->locking. Nobody else looks at it. */
struct locking {
    struct rf_held_now *held;
    uint32_t count, cap;
    struct joined *joined; /* found by what they are */
    uint32_t joined_mask;  /* how many, less one */
    uint32_t missed;       /* how often one was not there, since they became so many */
    struct common *common; /* of a thread that asked */
};

/* A member of a set: a lock's number and its mode. A lock's number belongs to its address: memory that is used again for another
 * lock does not make this table grow. */
static uint32_t sets_lock; /* of all below */
static struct rf_locksets sets;
static struct rf_memory sets_memory;
static uint32_t *creations; /* by a lock's number: the creation of the last one there that was destroyed */
static uint32_t creations_cap;

/* In the child of a fork: locks that other threads of the parent held stay held, by nobody who is there. That is no misuse. */
static bool forked;

static uint32_t member_of(uint32_t number, bool read)
{
    return number * 2 + read;
}

static void sets_enter(void)
{
    rf_spin_lock(&sets_lock);
    if (!sets.memory) {
        rf_memory_begin(&sets_memory);
        rf_locksets_init(&sets, &sets_memory);
    }
}

static __attribute__((noinline)) uint32_t number_of(struct rf_object *object)
{
    sets_enter();
    object->lock_number = rf_lock_number(&sets, object->addr);
    rf_spin_unlock(&sets_lock);
    return object->lock_number;
}

void rf_lock_moved(uint32_t number, uintptr_t from, uintptr_t to)
{
    sets_enter();
    rf_map_remove(&sets.locks, from); /* the next lock there gets a number of its own */
    *rf_map_at(&sets.locks, to) = number;
    sets.keys[number] = to;
    rf_spin_unlock(&sets_lock);
}

uintptr_t rf_lock_address(uint32_t number)
{
    bool mine = rf_busy_enter(rf_hot.self);
    sets_enter();
    uintptr_t addr = number < sets.lock_count ? (uintptr_t)sets.keys[number] : 0;
    rf_spin_unlock(&sets_lock);
    rf_busy_leave(rf_hot.self, mine);
    return addr;
}

/* Where what was told is forgotten from time to time (rf_lock_order_changes). */
static uint32_t as_told(void)
{
    return __atomic_load_n(&rf_lock_order_changes, __ATOMIC_RELAXED) << 1 | 1;
}

static inline struct joined *joined_at(const struct locking *locking, uint32_t set, uint32_t member)
{
    uint64_t mixed = ((uint64_t)set << 32 | member) * UINT64_C(0x9e3779b97f4a7c15);
    return &locking->joined[mixed >> 40 & locking->joined_mask];
}

static inline bool joins(const struct joined *joined, uint32_t set, uint32_t member)
{
    return joined->set == set && joined->member == member;
}

/* Four times as many. */
static void grow_joined(struct locking *locking)
{
    struct joined *old = locking->joined;
    uint32_t count = locking->joined_mask + 1;
    locking->joined = rf_take(4 * count * sizeof *old);
    locking->joined_mask = 4 * count - 1;
    locking->missed = 0;
    for (uint32_t i = 0; i < count; i++)
        if (old[i].member)
            *joined_at(locking, old[i].set, old[i].member) = old[i];
    rf_give(old, count * sizeof *old);
}

static __attribute__((noinline)) struct joined *new_joined(struct locking *locking, uint32_t set, uint32_t member)
{
    if (++locking->missed > 4 * locking->joined_mask && locking->joined_mask + 1 < CACHE_MOST)
        grow_joined(locking);
    sets_enter();
    uint32_t result = rf_lockset_add(&sets, set, member);
    rf_spin_unlock(&sets_lock);
    struct joined *joined = joined_at(locking, set, member);
    *joined = (struct joined){ set, member, result, 0 };
    return joined;
}

static inline struct joined *join(struct locking *locking, uint32_t set, uint32_t member)
{
    struct joined *joined = joined_at(locking, set, member);
    return __builtin_expect(joins(joined, set, member), 1) ? joined : new_joined(locking, set, member);
}

static uint32_t add(struct locking *locking, uint32_t set, uint32_t member)
{
    return join(locking, set, member)->result;
}

static __attribute__((noinline)) void grow(struct rf_self *self)
{
    struct locking *locking = self->locking;
    if (!locking) {
        locking = self->locking = rf_take(sizeof *locking);
        locking->joined = rf_take(CACHE * sizeof *locking->joined);
        locking->joined_mask = CACHE - 1;
    }
    uint32_t cap = locking->cap ? 2 * locking->cap : 8;
    struct rf_held_now *held = rf_take(cap * sizeof *held);
    if (locking->count)
        memcpy(held, locking->held, locking->count * sizeof *held);
    rf_give(locking->held, locking->cap * sizeof *held);
    locking->held = held;
    locking->cap = cap;
}

void rf_locks_thread_end(struct rf_self *self)
{
    struct locking *locking = self->locking;
    if (!locking)
        return;
    rf_give(locking->held, locking->cap * sizeof *locking->held);
    rf_give(locking->joined, (locking->joined_mask + 1) * sizeof *locking->joined);
    rf_give(locking->common, COMMON * sizeof *locking->common);
    rf_give(locking, sizeof *locking);
    self->locking = NULL;
}

/* rf_order_lock() and rf_order_unlock(), with versions where there are any. The clocks have room. A writer knows all that readers handed on:
 * what it hands on has that, and where it has a version it need not be taken away. */
static void receive(struct rf_self *self, struct rf_object *object, bool exclusive)
{
    struct rf_sync *sync = &object->sync;
    uint32_t me = self->thread.index + 1;
    if (!rf_has_versions(self)) {
        rf_order_lock(&self->order, &self->thread, sync, exclusive);
        return;
    }
    if (sync->last != me)
        rf_version_receive(self, &sync->released, object->released_version);
    if (!exclusive)
        return;
    rf_version_receive(self, &sync->readers, object->readers_version);
    sync->last = me;
}

static void hand_on(struct rf_self *self, struct rf_object *object, bool exclusive)
{
    struct rf_sync *sync = &object->sync;
    uint32_t me = self->thread.index + 1;
    if (!rf_has_versions(self)) {
        rf_order_unlock(&self->order, rf_accu_published(self), sync, exclusive);
        rf_version_lost(&object->released_version);
        rf_version_lost(&object->readers_version);
        return;
    }
    if (exclusive)
        rf_version_publish(self, &sync->released, &object->released_version);
    else
        rf_version_publish(self, &sync->readers, &object->readers_version);
    if (sync->last != me)
        sync->last = 0;
    else if (exclusive && !object->readers_version)
        rf_clock_clear(&sync->readers);
}

/* Robust mutexes pass to the next thread when their owner dies: what it did comes before. The others stay locked for ever. */
void rf_locks_abandon(struct rf_self *self)
{
    const struct locking *locking = self->locking;
    for (uint32_t i = 0; locking && i < locking->count; i++) {
        struct rf_object *object = rf_object_lock(self, rf_lock_address(locking->held[i].number), RF_O_MUTEX, false);
        if (!object)
            continue;
        if (object->owner == self->number + 1) {
            rf_tap_lock(self, RF_RELEASE, object, 0);
            struct rf_thread *published = rf_accu_published(self);
            rf_object_room(object, published->clock.len);
            hand_on(self, object, true);
        }
        rf_object_unlock(self, object);
    }
}

static struct rf_held_now *find_held(const struct rf_self *self, uint32_t number, bool read)
{
    struct locking *locking = self->locking;
    for (uint32_t i = locking ? locking->count : 0; i-- > 0;)
        if (locking->held[i].number == number && locking->held[i].read == read)
            return &locking->held[i];
    return NULL;
}

/* `alone`: the set of this lock and no other, 0 if it is not known. */
static void hold(struct rf_self *self, uint32_t number, bool read, uint32_t note, uint32_t alone)
{
    struct locking *locking = self->locking;
    if (__builtin_expect(!locking || locking->count == locking->cap, 0)) {
        grow(self);
        locking = self->locking;
    }
    /* A second time: for reading, which is allowed; or another thread gave it back behind our back. */
    if (__builtin_expect(locking->count, 0)) {
        struct rf_held_now *again = find_held(self, number, read);
        if (again) {
            again->times += read;
            return;
        }
    }
    if (__builtin_expect(read && !rf_locks_have_modes, 0))
        __atomic_store_n(&rf_locks_have_modes, true, __ATOMIC_RELAXED); /* before an access can have such a lock */
    locking->held[locking->count++] = (struct rf_held_now){ number, read, self->locks, note, 1 };
    self->locks = !self->locks && alone ? alone : add(locking, self->locks, member_of(number, read));
}

/* false: it was not held. */
static bool let_go(struct rf_self *self, uint32_t number, bool read)
{
    struct rf_held_now *held = find_held(self, number, read);
    struct locking *locking = self->locking;
    if (!held)
        return false;
    if (--held->times)
        return true;
    uint32_t at = (uint32_t)(held - locking->held);
    self->locks = held->before;
    locking->count--;
    for (; at < locking->count; at++) { /* not in the order of locking: those above come down */
        locking->held[at] = locking->held[at + 1];
        locking->held[at].before = self->locks;
        self->locks = add(locking, self->locks, member_of(locking->held[at].number, locking->held[at].read));
    }
    return true;
}

/* ThreadSanitizer calls a lock's first use its creation if it saw none, and shows where a lock that is destroyed was taken: so that
 * its words mean what they meant, this costs time at every lock that otherwise is not spent. */
static bool keeps_places(void)
{
    return rf_options.report_style[0] == 't';
}

static enum rf_object_kind kind_of(unsigned flags)
{
    return flags & RF_L_RW ? RF_O_RWLOCK : flags & RF_L_SPIN ? RF_O_SPIN : RF_O_MUTEX;
}

/* Misuse, told when nothing is held. The stack is that of now. */
struct misuse {
    bool found;
    enum rf_mutex_bug bug;
    uint32_t created, taken;
};

static void found(struct misuse *misuse, enum rf_mutex_bug bug, struct rf_object *object)
{
    if (object->flags & RF_L_BROKEN)
        return;
    object->flags |= RF_L_BROKEN;
    *misuse = (struct misuse){ true, bug, object->created, object->owner_note };
}

static __attribute__((noinline)) void tell(struct rf_self *self, const struct misuse *misuse, uintptr_t addr, uintptr_t pc)
{
    bool wanted = misuse->bug == RF_MUTEX_DESTROY_LOCKED ? rf_options.report_destroy_locked : rf_options.report_mutex_bugs;
    if (!wanted || !misuse->found)
        return;
    rf_busy_begin(self);
    uint32_t note = rf_note_here(pc, 0, 0);
    rf_busy_end(self);
    self->inside++;
    rf_report_mutex(misuse->bug, addr, misuse->created, note, misuse->taken);
    self->inside--;
}

void rf_lock_invalid(uintptr_t addr, uintptr_t pc)
{
    struct rf_self *self = rf_self();
    if (self)
        tell(self, &(struct misuse){ true, RF_MUTEX_INVALID, 0, 0 }, addr, pc);
}

/* Initialising, destroying and using a lock are accesses, too: a lock that is used while another thread initialises or destroys it
 * is a race. The first use by each thread in turn is looked at; those that follow add nothing but time. */
void rf_lock_created(uintptr_t addr, unsigned flags, uintptr_t pc)
{
    struct rf_self *self = rf_self();
    if (!self)
        return;
    rf_late_begin(self); /* libc has done it */
    if (!(flags & RF_L_STATIC)) {
        rf_objects_forget(addr, 1); /* what was there before is another lock */
        rf_access(addr, 1, RF_A_WRITE, pc);
    } /* else it could be used from the start, and may be in use now */
    struct rf_object *object = rf_object_lock(self, addr, kind_of(flags), true);
    object->created = rf_note_here(pc, 0, 0);
    object->flags |= flags & (RF_L_RECURSIVE | RF_L_STATIC);
    rf_object_unlock(self, object);
    rf_late_end(self);
}

/* A race may be found after the lock is gone. */
static void remember_creation(uint32_t number, uint32_t created)
{
    sets_enter();
    creations = rf_grow(&sets_memory, creations, &creations_cap, (size_t)number + 1, sizeof *creations);
    creations[number] = created;
    rf_spin_unlock(&sets_lock);
}

void rf_lock_destroyed(uintptr_t addr, uintptr_t pc)
{
    struct rf_self *self = rf_self();
    struct misuse misuse = { .found = false };
    if (!self)
        return;
    struct rf_object *object = rf_object_lock(self, addr, RF_O_MUTEX, false);
    if (object && object->flags & RF_L_STATIC) { /* it is as good as before: others may use it still */
        rf_object_unlock(self, object);
        return;
    }
    if (object) {
        bool gone = object->flags & RF_L_ROBUST_DEAD || (forked && object->owner != self->number + 1);
        if ((object->owner || object->reading) && !gone) {
            found(&misuse, RF_MUTEX_DESTROY_LOCKED, object);
            if (object->owner == self->number + 1)
                let_go(self, object->lock_number, false);
        }
        if (object->lock_number && object->created)
            remember_creation(object->lock_number, object->created);
        rf_object_unlock(self, object);
    }
    tell(self, &misuse, addr, pc);
    rf_late_begin(self);
    rf_access(addr, 1, RF_A_WRITE, pc);
    rf_objects_forget(addr, 1);
    rf_late_end(self);
}

void rf_lock_wanted(uintptr_t addr, unsigned flags, uintptr_t pc)
{
    struct rf_self *self = rf_self();
    struct locking *locking = self ? self->locking : NULL;
    if (!locking || !locking->count) /* who holds nothing waits for no circle */
        return;
    struct rf_object *object = rf_object_lock(self, addr, kind_of(flags), true);
    struct misuse misuse = { .found = false };
    bool read = flags & RF_L_READ, mine = object->owner == self->number + 1;
    if (mine && !(flags & (RF_L_RECURSIVE | RF_L_CHECKED | RF_L_TRY)) && !(object->flags & RF_L_RECURSIVE))
        found(&misuse, read ? RF_MUTEX_BAD_READ_LOCK : RF_MUTEX_DOUBLE_LOCK, object);
    uint32_t number = object->lock_number ? object->lock_number : number_of(object), member = member_of(number, read);
    uint32_t told = as_told(), note = 0;
    bool tells = !mine && rf_options.detect_deadlocks && !(flags & RF_L_TRY) && !find_held(self, number, true) &&
                 join(locking, self->locks, member)->told != told;
    if (tells) {
        note = rf_note_here(pc, 0, 0);
        join(locking, self->locks, member)->told = told;
    }
    rf_object_unlock(self, object);
    tell(self, &misuse, addr, pc);
    if (tells)
        rf_lock_order_wanted(self, locking->held, locking->count, number, read, note);
}

void rf_lock_acquired(uintptr_t addr, unsigned flags, uintptr_t pc)
{
    struct rf_self *self = rf_self();
    if (!self)
        return;
    struct misuse misuse = { .found = false };
    uint32_t me = self->number + 1;
    const struct rf_object *seen = rf_object_find(addr);
    rf_late_begin(self); /* it is locked, and has to be noted as such before the program may know of a race */
    if (!seen || __atomic_load_n(&seen->toucher, __ATOMIC_RELAXED) != me)
        rf_access(addr, 1, RF_A_ATOMIC, pc); /* with what it knew before: that the lock was initialised does not come through it */
    struct rf_object *object = rf_object_lock(self, addr, kind_of(flags), true);
    bool read = flags & RF_L_READ, again = object->owner == me;
    if (__builtin_expect(again, 0)) {
        if (!((flags | object->flags) & RF_L_RECURSIVE))
            found(&misuse, read ? RF_MUTEX_BAD_READ_LOCK : RF_MUTEX_DOUBLE_LOCK, object);
        object->depth++;
    } else if (!read) {
        if (flags & RF_L_TOLD && object->owner)
            found(&misuse, RF_MUTEX_DOUBLE_LOCK, object);
        object->owner = me; /* whoever was noted before gave it back where the guest does not look, or has died */
        object->depth = 1;
        object->flags &= ~(unsigned)RF_L_ROBUST_DEAD;
    } else {
        object->reading++;
    }
    if (__builtin_expect(!again, 1)) {
        if (!self->ignore_sync) {
            struct rf_sync *sync = &object->sync;
            rf_tap_lock(self, read ? RF_READ_ACQUIRE : RF_ACQUIRE, object, pc);
            if (sync->last != me)
                rf_clock_room(&self->thread.clock, sync->released.len);
            if (!read)
                rf_clock_room(&self->thread.clock, sync->readers.len);
            receive(self, object, !read);
        }
        uint32_t note = __builtin_expect(rf_options.second_deadlock_stack || keeps_places(), 0) ? rf_note_here(pc, 0, 0) : 0;
        __atomic_store_n(&object->toucher, me, __ATOMIC_RELAXED);
        object->owner_note = note;
        if (!object->created && keeps_places())
            object->created = note;
        bool quick = object->quick != RF_NEVER_QUICK && (flags & RF_L_REAL);
        object->quick = quick ? 0 : object->quick;
        hold(self, object->lock_number ? object->lock_number : number_of(object), read,
             rf_options.second_deadlock_stack ? note : 0, read ? 0 : object->alone);
        if (quick && !self->ignore_sync && !note) {
            if (!object->alone)
                object->alone = add(self->locking, RF_NO_LOCKS, member_of(object->lock_number, false));
            object->quick = me;
        }
    }
    rf_object_unlock(self, object);
    if (__builtin_expect(misuse.found, 0))
        tell(self, &misuse, addr, pc);
    rf_late_end(self);
}

void rf_lock_released(uintptr_t addr, unsigned flags, uintptr_t pc)
{
    struct rf_self *self = rf_self();
    if (!self)
        return;
    struct misuse misuse = { .found = false };
    struct rf_object *object = rf_object_lock(self, addr, kind_of(flags), true);
    uint32_t me = self->number + 1;
    if (!object->created && keeps_places())
        object->created = rf_note_here(pc, 0, 0);
    bool read = flags & RF_L_READ || (flags & RF_L_ANY && object->owner != me && object->reading);
    if (__builtin_expect(object->owner == me && object->depth > 1, 0)) {
        object->depth--;
        rf_object_unlock(self, object);
        return;
    }
    if (__builtin_expect(read ? !object->reading || object->owner : object->owner != me, 0)) {
        found(&misuse, read && object->owner ? RF_MUTEX_BAD_READ_UNLOCK : RF_MUTEX_BAD_UNLOCK, object);
        if (read && object->owner == me)
            read = false;
    }
    /* Who does not own it may come while its owner hands on without the object's lock (rf_lock_released_quickly), and may be refused (EPERM): so
     * it adds to what readers have handed on, and leaves the rest alone. */
    bool adds = read || object->owner != me;
    if (!self->ignore_sync) {
        rf_tap_lock(self, adds ? RF_READ_RELEASE : RF_RELEASE, object, pc);
        struct rf_thread *published = rf_accu_published(self);
        if (adds)
            rf_clock_room(&object->sync.readers, published->clock.len);
        else
            rf_object_room(object, published->clock.len);
        hand_on(self, object, !adds);
    }
    if (!self->ignore_sync || rf_accu)
        rf_epoch_begin(self);
    if (!read)
        object->owner = object->depth = 0;
    else if (object->reading)
        object->reading--;
    let_go(self, object->lock_number, read);
    rf_object_unlock(self, object);
    if (__builtin_expect(misuse.found, 0))
        tell(self, &misuse, addr, pc);
}

/* ---- the quick way ----
 *
 * A mutex that one thread takes again and again: it has nothing to receive (sync.last) and was seen with it (quick). All that is left is
 * to say who holds it, and to publish the clock, which contains all that was published before: a copy will do. The mutex itself keeps
 * others from the object (guest/objects.h, 2). A program that gives the memory of a mutex away while it is in use is beyond that: but
 * then, too, all that is written here lies in the object, whose memory stays an object's.
 */
static inline __attribute__((always_inline)) struct rf_object *quick_object(struct rf_self *self, uintptr_t addr)
{
    struct rf_object *object = rf_object_find(addr);
    uint32_t me = self->number + 1;
    return __builtin_expect(
               object && object->quick == me && object->sync.last == me && object->sync.released.times == object->few, 1)
               ? object
               : NULL;
}

/* Nothing new is to be said of it (guest/lock_order.c), and it is not held already. The object is only looked at: what it is for this
 * thread only this thread changes. */
bool rf_lock_wanted_quickly(struct rf_self *self, uintptr_t addr)
{
    const struct locking *locking = self->locking;
    const struct rf_object *object = rf_object_find(addr);
    if (!object || !object->lock_number || object->quick != self->number + 1 || object->owner == self->number + 1)
        return false;
    uint32_t member = member_of(object->lock_number, false);
    const struct joined *joined = joined_at(locking, self->locks, member);
    return !rf_options.detect_deadlocks || (joins(joined, self->locks, member) && joined->told == as_told());
}

/* The set with the lock, if it is at hand; RF_NO_LOCKS: it is not. */
static inline uint32_t quick_set(const struct rf_self *self, const struct rf_object *object)
{
    const struct locking *locking = self->locking;
    if (!self->locks)
        return object->alone;
    uint32_t member = member_of(object->lock_number, false);
    const struct joined *joined = joined_at(locking, self->locks, member);
    bool known = joins(joined, self->locks, member) && locking->count < locking->cap;
    return known && !find_held(self, object->lock_number, false) ? joined->result : RF_NO_LOCKS;
}

bool rf_lock_acquired_quickly(struct rf_self *self, uintptr_t addr)
{
    rf_busy_begin(self);
    struct rf_object *object = quick_object(self, addr);
    uint32_t set = object && !object->owner ? quick_set(self, object) : RF_NO_LOCKS;
    if (__builtin_expect(set != RF_NO_LOCKS, 1)) {
        struct locking *locking = self->locking;
        rf_tap_lock(self, RF_ACQUIRE, object, 0);
        object->owner = self->number + 1;
        object->depth = 1;
        locking->held[locking->count++] =
            (struct rf_held_now){ .number = object->lock_number, .before = self->locks, .times = 1 };
        self->locks = set;
    }
    rf_busy_end(self);
    return set != RF_NO_LOCKS;
}

bool rf_lock_released_quickly(struct rf_self *self, uintptr_t addr)
{
    typedef uint32_t four __attribute__((vector_size(16), aligned(4)));
    rf_busy_begin(self);
    struct rf_object *object = quick_object(self, addr);
    const struct rf_clock *clock = &self->thread.clock;
    struct locking *locking = self->locking;
    const struct rf_held_now *last = object && locking->count ? &locking->held[locking->count - 1] : NULL;
    bool quickly = last && last->number == object->lock_number && !last->read && object->owner == self->number + 1 &&
                   object->depth == 1 && !self->ignore_sync && clock->len <= RF_OBJECT_FEW;
    if (__builtin_expect(quickly, 1)) {
        rf_tap_lock(self, RF_RELEASE, object, 0);
        if (__builtin_expect(rf_accu, 0)) {
            rf_accu_publish(&object->sync.released, clock);
        } else {
            for (uint32_t i = 0; i < clock->len; i += 4) /* capacities are powers of two, from 8 on; beyond the length all are 0 */
                *(four *)(object->few + i) = *(const four *)(clock->times + i);
            object->sync.released.len = clock->len;
        }
        object->owner = 0;
        self->locks = last->before;
        locking->count--;
        rf_epoch_begin(self);
    }
    rf_busy_end(self);
    return quickly;
}

unsigned rf_locks_of(uint32_t set, struct rf_held_lock *list, unsigned max)
{
    bool mine = rf_busy_enter(rf_hot.self);
    unsigned count = 0;
    sets_enter();
    if (set < sets.count)
        for (; count < sets.sets[set].count && count < max; count++) {
            uint32_t member = sets.sets[set].locks[count];
            list[count] = (struct rf_held_lock){ .addr = (uintptr_t)sets.keys[member / 2], .number = member / 2, .read = member & 1 };
            if (member / 2 < creations_cap)
                list[count].created = creations[member / 2];
        }
    rf_spin_unlock(&sets_lock);
    rf_busy_leave(rf_hot.self, mine);
    for (unsigned i = 0; i < count; i++) {
        const struct rf_object *object = rf_object_look(list[i].addr);
        if (object) { /* not locked: what it says may be a moment old */
            list[i].created = object->created ? object->created : list[i].created;
            list[i].taken = object->owner_note;
        }
    }
    return count;
}

bool rf_locks_exclude(uint32_t a, uint32_t b)
{
    bool excludes = false;
    sets_enter();
    const struct rf_lockset_entry *x = &sets.sets[a], *y = &sets.sets[b];
    for (uint32_t i = 0, j = 0; i < x->count && j < y->count && !excludes;) {
        if (x->locks[i] / 2 == y->locks[j] / 2)
            excludes = !(x->locks[i] & 1) || !(y->locks[j] & 1);
        if (x->locks[i] < y->locks[j])
            i++;
        else
            j++;
    }
    rf_spin_unlock(&sets_lock);
    return excludes;
}

/* ---- what protects (guest/accu.h) ---- */

bool rf_locks_have_modes;

/* What the thread asked lately; it may have no place to remember. */
static bool recalled(const struct locking *locking, uint32_t a, uint32_t b, rf_lockset *result)
{
    const struct common *common = locking && locking->common ? &locking->common[(a * 31 + b) % COMMON] : NULL;
    if (!common || common->a != a || common->b != b)
        return false;
    *result = common->result;
    return true;
}

static void remember(struct locking *locking, uint32_t a, uint32_t b, rf_lockset result)
{
    if (!locking)
        return;
    if (!locking->common)
        locking->common = rf_take(COMMON * sizeof *locking->common);
    locking->common[(a * 31 + b) % COMMON] = (struct common){ a, b, result };
}

rf_lockset rf_locks_common(struct rf_self *self, rf_lockset a, rf_lockset b)
{
    struct locking *locking = self->locking;
    if (a == b || !a || !b)
        return a == b ? a : RF_NO_LOCKS;
    rf_lockset result;
    if (recalled(locking, a, b, &result))
        return result;
    sets_enter();
    result = rf_lockset_intersect(&sets, a, b);
    rf_spin_unlock(&sets_lock);
    remember(locking, a, b, result);
    return result;
}

rf_lockset rf_locks_protecting(struct rf_self *self, uint32_t set, bool writes, bool transaction)
{
    struct locking *locking = self->locking;
    uint32_t how = UINT32_MAX - writes - 2 * transaction; /* no set is as large */
    rf_lockset result;
    if (recalled(locking, set, how, &result))
        return result;
    sets_enter();
    result = transaction ? rf_lockset_add(&sets, RF_NO_LOCKS, member_of(RF_TRANSACTION_LOCK, false)) : RF_NO_LOCKS;
    for (uint32_t i = 0; i < sets.sets[set].count; i++) {
        uint32_t member = sets.sets[set].locks[i];
        if (!(member & 1) || !writes)
            result = rf_lockset_add(&sets, result, member & ~1u);
    }
    rf_spin_unlock(&sets_lock);
    remember(locking, set, how, result);
    return result;
}

/* Without the lock: it only grows, and who adds a lock to its own set has seen that done. */
uint32_t rf_locks_most(void)
{
    return __atomic_load_n(&sets.most, __ATOMIC_RELAXED);
}

void rf_locks_fork_before(void)
{
    rf_spin_lock(&sets_lock);
}

void rf_locks_fork_after(bool child)
{
    forked |= child;
    rf_spin_unlock(&sets_lock);
}
