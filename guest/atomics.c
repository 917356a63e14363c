/* The rules of C11 and C++20 for atomic operations, in terms of clocks (C11 5.1.2.4 and 7.17.3-4; C++20 [intro.races],
 * [atomics.order], [atomics.fences]).
 *
 * 1. An atomic location L has one clock: what an acquire that reads its present value receives. It is the join over the release
 *    sequences that the present value belongs to.
 *      store, release:   L := C                          it heads a sequence, and ends all others
 *      store, relaxed:   L := own part of L              C11: it continues the sequences that its own thread heads, ends the rest
 *      update, release:  L := L ⊔ C                      continues all, and heads one
 *      update, relaxed:  L unchanged                     continues all
 *      read, acquire:    C := C ⊔ L
 *    The "own part" is kept for the thread that stored last (last_store): as long as nobody else has joined, it is all of L;
 *    then it lies in sync.readers, and `extra` is 1. A read-modify-write of a third thread heads a sequence that this thread's own
 *    later relaxed store ends here: C++20 says so, C11 does not, and to tell them apart would need a clock for each thread.
 * 2. Fences. A release fence remembers F := C; a later relaxed write of the thread publishes F as a release would C. A relaxed read
 *    joins L to the thread's pending clock P; a later acquire fence takes it: C := C ⊔ P. Both are the standard's fence-atomic,
 *    atomic-fence and fence-fence synchronisation.
 * 3. seq_cst is acquire and release. The single total order S of seq_cst operations and fences limits which values may be read; it
 *    is not part of happens-before. Two seq_cst fences synchronise only through an atomic object that one writes after it and the
 *    other reads before it, as any release and acquire fence do. Races are defined by happens-before alone, so S counts for nothing
 *    here. consume is acquire.
 * 4. The value and L change together under the object's lock, one object at a time; who sees an object takes its lock for every
 *    operation. Without an object nobody ever published through the location, and operations that do not publish need none:
 *      A publisher makes the object visible first and writes the value later. A reader reads the value first and looks for the
 *      object later (x86 keeps both orders). So if it finds none, the value it has was not published, and L = ⊥ is exact.
 *      A write or update without an object is a compare-and-swap from the value that was read so: if it succeeds, no other write
 *      came in between, except one that published an equal value. Only in that case, which needs the very first publication to
 *      leave the value as it was, could this thread belong after it; then its program could not tell either.
 *    Objects that are locks as well (their kind says so) keep what the lock released: relaxed stores clear nothing there.
 * 5. The operation is an access, too. If it reads a value that was published, then what came before the publication, be it a plain
 *    initialisation of the location itself, happens before the operation: so the check comes after the acquire. If it publishes, its
 *    history must be written before others can receive the clock: so the check comes before. An update that does both is checked
 *    in between, with the object locked, and what it races with is told when that is over. Where races are refused (guest/refusal.h),
 *    it is checked before, and a race that shows up is kept until the acquire has been done (rf_atomic_defer).
 * 6. A compare-and-swap that fails is a read of its failure order, for clocks and for the check.
 */
#include "guest/atomics.h"

#include "guest/annotations.h"
#include "guest/first_atomic.h"
#include "guest/granule.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/online.h"
#include "guest/options.h"
#include "guest/policy.h"
#include "guest/report.h"
#include "guest/seen.h"
#include "guest/sweep.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/verdict.h"
#include "guest/versions.h"

#define OWN_PART_APART 1u /* rf_object.extra of an atomic */
#define DEFERRED 4u

/* What a thread keeps. Only the thread itself touches it. */
struct fences {
    struct rf_clock released; /* F; empty: no release fence yet */
    struct rf_clock pending;  /* P */
    uint64_t key;             /* between the thread and its companions (guest/tap.h) */
    bool deferring, within_races;
    struct rf_found found; /* if within_races: what a check within the operation found */
    unsigned deferred;
    struct {
        struct rf_report_side now, before;
        uint32_t slot, time;
    } races[DEFERRED];
};

static struct fences *fences_of(struct rf_self *self)
{
    if (__builtin_expect(!self->atomics, 0)) {
        bool mine = rf_busy_enter(self);
        self->atomics = rf_take(sizeof(struct fences));
        rf_busy_leave(self, mine);
    }
    return self->atomics;
}

void rf_atomics_thread_end(struct rf_self *self)
{
    struct fences *fences = self->atomics;
    if (!fences)
        return;
    self->atomics = NULL;
    self->fenced = 0;
    rf_tap_forget(fences->key);
    rf_tap_forget(fences->key ? fences->key + 1 : 0);
    rf_clock_give(&fences->released);
    rf_clock_give(&fences->pending);
    rf_give(fences, sizeof *fences);
}

/* Clocks are the guest's, not the thread's (guest/threads.h): room is made first, so the core need not grow them. Busy. */
static void join(struct rf_clock *into, const struct rf_clock *from)
{
    rf_clock_room(into, from->len);
    rf_clock_join(into, NULL, from);
}

static void copy(struct rf_clock *into, const struct rf_clock *from)
{
    rf_clock_room(into, from->len);
    rf_clock_copy(into, NULL, from);
}

struct rf_self *rf_atomic_self(void)
{
    if (__builtin_expect(!rf_started, 0))
        return NULL;
    struct rf_self *self = rf_self();
    return self && !self->inside ? self : NULL;
}

/* Orders carry hints in their upper bits (hardware lock elision, gcc's __sync). */
enum { RELAXED, CONSUME, ACQUIRE, RELEASE, ACQ_REL, ORDER_MASK = 7 };

bool rf_atomic_acquires(int order)
{
    int plain = order & ORDER_MASK;
    return (plain != RELAXED && plain != RELEASE) || rf_options.force_seq_cst_atomics;
}

bool rf_atomic_releases(int order)
{
    return (order & ORDER_MASK) >= RELEASE || rf_options.force_seq_cst_atomics;
}

struct rf_atomic rf_atomic_begin(struct rf_self *self, const volatile void *addr, size_t size, int order, uintptr_t pc)
{
    const struct fences *fences = self->atomics;
    struct rf_atomic op = { .self = self, .addr = (uintptr_t)addr, .size = size, .pc = pc, .silent = self->ignore_sync > 0 };
    op.acquires = rf_atomic_acquires(order);
    op.releases = rf_atomic_releases(order);
    op.publishes = op.releases || (fences && fences->released.len);
    return op;
}

RF_MODE bool rf_atomics_straight;

void rf_atomics_begin(void)
{
    rf_atomics_straight = !(rf_tap || rf_refuses || rf_detour || rf_policy_no_hot || rf_pacer || rf_escape_leaves ||
                            rf_options.force_seq_cst_atomics);
}

bool rf_atomic_open_slowly(struct rf_atomic *op, bool make)
{
    op->object = rf_object_lock(op->self, op->addr, RF_O_ATOMIC, make);
    return op->object != NULL;
}

void rf_atomic_close(struct rf_atomic *op)
{
    rf_object_unlock(op->self, op->object);
    op->object = NULL;
}

/* As rf_sync.last knows the thread. */
static uint32_t knower(const struct rf_atomic *op)
{
    return op->self->thread.index + 1;
}

/* ---- for the tap ---- */

/* Before rf_object_acquire(), which tells the object's own key. */
static void tell_received(struct rf_atomic *op, bool acquires)
{
    struct rf_object *object = op->object;
    enum rf_tap_who who = acquires ? RF_TAP_SELF : RF_TAP_RECEIVER;
    if (!object->sync.released.len || object->sync.last == knower(op))
        return;
    if (!acquires)
        rf_tap_receive(op->self, who, object, rf_tap_key(object));
    if (object->kind == RF_O_ATOMIC && object->extra == OWN_PART_APART)
        rf_tap_receive(op->self, who, object, object->own_key);
}

/* Invariant 5, for those that both receive and publish. Others are told by rf_access(), and so are all where races are refused. */
static void tell_access(struct rf_atomic *op, bool writes)
{
    if (rf_tap && op->publishes && op->acquires && !rf_refuses)
        rf_tap_access(op->self, op->addr, op->size, RF_A_ATOMIC | (writes ? RF_A_WRITE : 0), op->pc);
}

/* A release fence: the publisher knows what the thread knows. An acquire fence: the thread knows what the receiver does. */
static void tell_fence(struct rf_self *self, enum rf_tap_who who)
{
    struct fences *fences = fences_of(self);
    if (!fences->key) {
        fences->key = rf_tap_new_key();
        rf_tap_new_key(); /* the second one is for the other companion */
    }
    uint64_t key = fences->key + (who == RF_TAP_RECEIVER);
    rf_tap->sync(self, who == RF_TAP_PUBLISHER ? RF_TAP_SELF : RF_TAP_RECEIVER, RF_SIGNAL, key, 0);
    rf_tap->sync(self, who == RF_TAP_PUBLISHER ? RF_TAP_PUBLISHER : RF_TAP_SELF, RF_WAIT, key, 0);
}

static void receive(struct rf_atomic *op, bool acquires)
{
    struct rf_sync *sync = &op->object->sync;
    if (__builtin_expect(rf_tap != NULL, 0))
        tell_received(op, acquires);
    if (acquires)
        rf_object_acquire(op->self, op->object);
    else if (sync->released.len && sync->last != knower(op))
        join(&fences_of(op->self)->pending, &sync->released);
}

/* Invariant 2: what a relaxed write publishes; NULL: nothing. */
static const struct rf_clock *fenced(const struct rf_atomic *op)
{
    const struct fences *fences = op->self->atomics;
    return fences && fences->released.len ? &fences->released : NULL;
}

/* L := L ⊔ F */
static void publish_fenced(struct rf_atomic *op)
{
    struct rf_sync *sync = &op->object->sync;
    const struct rf_clock *clock = fenced(op);
    if (!clock)
        return;
    if (!sync->released.len)
        sync->last = knower(op);
    else if (sync->last != knower(op))
        sync->last = 0;
    if (rf_tap)
        rf_tap_publish(op->self, RF_TAP_PUBLISHER, op->object, rf_tap_key(op->object));
    rf_object_room(op->object, clock->len);
    join(&sync->released, clock);
    rf_version_lost(&op->object->released_version);
}

/* The object is locked, and so the thread busy. */
static void check_within(struct rf_atomic *op, unsigned flags)
{
    struct fences *fences = fences_of(op->self);
    if (__builtin_expect(rf_access_step(op->self, op->addr, op->size, flags, op->pc, &fences->found), 0))
        fences->within_races = true;
    op->within = false;
}

void rf_atomic_read(struct rf_atomic *op, bool acquires)
{
    receive(op, acquires);
    tell_access(op, false);
    if (op->within)
        check_within(op, RF_A_ATOMIC);
    rf_atomic_close(op);
}

void rf_atomic_written(struct rf_atomic *op)
{
    struct rf_object *object = op->object;
    uint32_t me = op->self->number + 1;
    bool is_lock = object->kind != RF_O_ATOMIC;
    if (op->releases && is_lock) {
        rf_object_release(op->self, object);
    } else if (op->releases) {
        rf_object_release_store(op->self, object);
    } else {
        if (!is_lock && object->last_store != me) {
            rf_object_clear(op->self, object);
        } else if (!is_lock && object->extra == OWN_PART_APART) {
            rf_object_room(object, object->sync.readers.len);
            copy(&object->sync.released, &object->sync.readers);
            rf_version_lost(&object->released_version);
            object->sync.last = knower(op);
            rf_tap_forget(object->key);
            object->key = object->own_key;
            object->own_key = 0;
        }
        publish_fenced(op);
    }
    object->last_store = me;
    if (!is_lock && object->extra == OWN_PART_APART) {
        rf_clock_clear(&object->sync.readers);
        object->extra = 0;
        rf_tap_forget(object->own_key);
        object->own_key = 0;
    }
    rf_atomic_close(op);
}

/* Before another thread than the one that stored last joins its clock to L, and after that thread joins it again. */
static void keep_own_part(struct rf_atomic *op, const struct rf_clock *joining)
{
    struct rf_object *object = op->object;
    uint32_t me = op->self->number + 1;
    if (object->kind != RF_O_ATOMIC)
        return;
    if (!object->sync.released.len) {
        object->last_store = me; /* all of L is going to be its own */
    } else if (object->last_store != me && object->extra != OWN_PART_APART) {
        copy(&object->sync.readers, &object->sync.released);
        object->extra = OWN_PART_APART;
        if (rf_tap) {
            object->own_key = rf_tap_key(object);
            object->key = rf_tap_new_key(); /* who receives looks at both */
        }
    } else if (object->last_store == me && object->extra == OWN_PART_APART) {
        join(&object->sync.readers, joining);
        if (rf_tap)
            rf_tap_publish(op->self, op->releases ? RF_TAP_SELF : RF_TAP_PUBLISHER, object, object->own_key);
    }
}

void rf_atomic_updated(struct rf_atomic *op)
{
    receive(op, op->acquires);
    tell_access(op, true);
    if (op->within)
        check_within(op, RF_A_ATOMIC | RF_A_WRITE);
    if (op->releases) {
        keep_own_part(op, &op->self->thread.clock);
        if (op->acquires && op->object->kind == RF_O_ATOMIC)
            op->object->sync.last = knower(op); /* of all that it has received */
        rf_object_release(op->self, op->object);
    } else if (fenced(op)) {
        keep_own_part(op, fenced(op));
        publish_fenced(op);
    }
    rf_atomic_close(op);
}

/* ---- the quick ways ---- */

/* If two threads took turns at a location, each operation would fetch what it touches from the other core: the value, the object, the
 * history. Who waits for several times as long as an operation takes, and does not look meanwhile, lets the other one make a few in a row
 * with what its own cache has; then the other one waits. */
#define A_FEW_OPERATIONS 32 /* pauses, of 40 to 140 cycles each */

__attribute__((noinline)) void rf_atomic_wait(struct rf_object *object)
{
    for (unsigned i = 0; i < A_FEW_OPERATIONS; i++)
        __builtin_ia32_pause();
    rf_spin_wait(&object->lock);
}

void rf_atomic_lone_read(struct rf_self *self, uintptr_t addr, size_t size, uintptr_t pc)
{
    rf_atomic_access(self, addr, size, RF_A_ATOMIC, pc);
}

void rf_atomic_lone_write(struct rf_self *self, uintptr_t addr, size_t size, uintptr_t pc)
{
    rf_atomic_access(self, addr, size, RF_A_ATOMIC | RF_A_WRITE, pc);
}

/* rf_atomic_updated() for what nearly all updates are: the clocks fit the object, and what is the own part of whom does not change. */
static inline bool is_quick(const struct rf_self *self, const struct rf_object *object)
{
    const struct rf_clock *released = &object->sync.released, *clock = &self->thread.clock;
    bool mine = object->last_store == self->number + 1, apart = object->extra == OWN_PART_APART;
    return released->times == object->few && released->len && clock->len <= RF_OBJECT_FEW && clock->cap >= RF_OBJECT_FEW &&
           (apart ? !mine || object->sync.readers.cap >= RF_OBJECT_FEW : mine);
}

/* Clocks of at most RF_OBJECT_FEW entries, with room for so many. */
static inline void join_few(struct rf_clock *into, const struct rf_clock *from)
{
    for (unsigned i = 0; i < from->len; i++)
        into->times[i] = into->times[i] < from->times[i] ? from->times[i] : into->times[i];
    into->len = into->len < from->len ? from->len : into->len;
}

/* The thread knows all of L when it publishes, so L := C; beyond its length a clock is 0. */
static inline void publish_few(struct rf_self *self, struct rf_object *object)
{
    const struct rf_clock *clock = &self->thread.clock;
    __builtin_memcpy(object->few, clock->times, sizeof object->few);
    object->sync.released.len = clock->len;
    if (object->extra == OWN_PART_APART && object->last_store == self->number + 1)
        join_few(&object->sync.readers, clock);
    rf_epoch_begin(self);
}

/* What is not quick; `received`: only the check is not. */
static __attribute__((noinline)) void updated_slowly(struct rf_self *self, struct rf_object *object, uintptr_t addr, size_t size,
                                                     uintptr_t pc, bool received)
{
    struct rf_atomic op = { .self = self, .object = object, .addr = addr, .pc = pc, .size = size, .acquires = true,
                            .releases = true, .publishes = true, .within = true };
    if (received)
        check_within(&op, RF_A_ATOMIC | RF_A_WRITE);
    if (received && self->thread.clock.len <= RF_OBJECT_FEW) { /* the thread has not got another slot just now */
        publish_few(self, object);
        rf_atomic_close(&op);
    } else {
        rf_atomic_updated(&op);
    }
    rf_atomic_settle(&op);
}

void rf_atomic_quick_updated(struct rf_self *self, struct rf_object *object, uintptr_t addr, size_t size, uintptr_t pc)
{
    uint32_t me = self->thread.index + 1;
    if (__builtin_expect(!is_quick(self, object), 0)) {
        updated_slowly(self, object, addr, size, pc, false);
        return;
    }
    if (object->sync.last != me) {
        join_few(&self->thread.clock, &object->sync.released);
        object->sync.last = me;
        rf_seen_forget();
    }
    if (__builtin_expect(!rf_atomic_step(self, addr, size, RF_A_ATOMIC | RF_A_WRITE, pc), 0)) {
        updated_slowly(self, object, addr, size, pc, true);
        return;
    }
    publish_few(self, object);
    rf_object_unlock(self, object);
}

static bool is_ignored(const struct rf_self *self, bool writes)
{
    return writes ? self->ignore_writes : self->ignore_reads;
}

void rf_atomic_check(struct rf_atomic *op, bool writes)
{
    unsigned flags = RF_A_ATOMIC | (writes ? RF_A_WRITE : 0);
    bool may_defer = (op->publishes || (rf_refuses && writes)) && op->acquires && !op->silent;
    struct fences *fences = may_defer ? fences_of(op->self) : NULL;
    op->within = may_defer && !rf_tap && !rf_refuses && rf_policy == RF_POLICY_CAS && !is_ignored(op->self, writes);
    if (op->within)
        return;
    if (rf_tap && may_defer) /* told between what it receives and what it publishes: tell_access(), refuse_told() */
        return;
    if (may_defer)
        fences->deferring = true;
    rf_access(op->addr, op->size, flags, op->pc);
    if (may_defer)
        fences->deferring = false;
}

bool rf_atomic_defer(struct rf_self *self, const struct rf_report_side *now, const struct rf_report_side *before,
                     uint32_t slot, uint32_t time)
{
    struct fences *fences = self->atomics;
    if (!fences || !fences->deferring || fences->deferred == DEFERRED)
        return false;
    unsigned i = fences->deferred++;
    fences->races[i].now = *now;
    fences->races[i].before = *before;
    fences->races[i].slot = slot;
    fences->races[i].time = time;
    return true;
}

/* What the operation is about to receive orders it after (slot, time). */
static bool will_know(const struct rf_atomic *op, uint32_t slot, uint32_t time)
{
    const struct rf_object *object = op->object;
    if (time <= rf_clock_get(&op->self->thread.clock, slot))
        return true;
    return op->acquires && object &&
           (time <= rf_clock_get(&object->sync.released, slot) ||
            (object->kind != RF_O_ATOMIC && time <= rf_clock_get(&object->sync.readers, slot)));
}

/* A listener cannot be asked what it would say after the acquire: so it is told of that first, and then of the access, which it refuses
 * or takes for done. Nothing may be locked meanwhile. Who changes the location plainly in this instant races with the operation. */
static void refuse_told(struct rf_atomic *op)
{
    bool opened = op->object != NULL;
    if (opened) {
        receive(op, true);
        rf_atomic_close(op);
    }
    rf_access(op->addr, op->size, RF_A_ATOMIC | RF_A_WRITE, op->pc);
    if (opened)
        op->object = rf_object_lock(op->self, op->addr, RF_O_ATOMIC, true);
}

void rf_atomic_refuse_slowly(struct rf_atomic *op)
{
    struct fences *fences = op->self->atomics;
    if (rf_tap && op->acquires && !op->silent) {
        refuse_told(op);
        return;
    }
    if (!fences || !fences->deferred)
        return;
    bool opened = op->object != NULL, records = false;
    unsigned count = fences->deferred;
    fences->deferred = 0;
    for (unsigned i = 0; i < count; i++) {
        records = true;
        if (will_know(op, fences->races[i].slot, fences->races[i].time))
            continue;
        struct rf_report_side now = fences->races[i].now, before = fences->races[i].before;
        if (opened)
            rf_atomic_close(op);
        rf_refused(op->self, &now, &before);
        if (opened)
            op->object = rf_object_lock(op->self, op->addr, RF_O_ATOMIC, true);
    }
    if (records) /* it was not, when it seemed to race */
        rf_access_allowed(op->self, op->addr, op->size, RF_A_ATOMIC | RF_A_WRITE, op->pc);
}

void rf_atomic_settle(struct rf_atomic *op)
{
    struct fences *fences = op->self->atomics;
    rf_online_flush(op->self);
    if (__builtin_expect(op->self->wants_sweep, 0))
        rf_sweep(op->self);
    if (__builtin_expect(!fences, 0))
        return;
    if (__builtin_expect(fences->within_races, 0)) {
        struct rf_found found = fences->found; /* a report may call the user, who may come here */
        fences->within_races = false;
        rf_race_found(op->self, &found);
    }
    if (__builtin_expect(!fences->deferred, 1))
        return;
    unsigned count = fences->deferred;
    fences->deferred = 0; /* a report may call the user, who may come here */
    for (unsigned i = 0; i < count; i++)
        if (fences->races[i].time > rf_clock_get(&op->self->thread.clock, fences->races[i].slot) &&
            !rf_benign(fences->races[i].now.addr, fences->races[i].now.size)) {
            op->self->inside++;
            rf_report_race(&fences->races[i].now, &fences->races[i].before);
            op->self->inside--;
        }
}

RF_EXPORT void __tsan_atomic_thread_fence(int order);
RF_EXPORT void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    struct rf_self *self = rf_atomic_self();
    if (!self || self->ignore_sync)
        return;
    bool acquires = rf_atomic_acquires(order), releases = rf_atomic_releases(order);
    struct fences *fences = self->atomics;
    acquires = acquires && fences && fences->pending.len;
    if (!acquires && !releases)
        return;
    rf_busy_begin(self);
    if (acquires) {
        if (rf_tap)
            tell_fence(self, RF_TAP_RECEIVER);
        rf_clock_room(&self->thread.clock, fences->pending.len);
        rf_clock_receive(self, &fences->pending, 0);
        rf_clock_clear(&fences->pending);
    }
    if (releases) {
        copy(&fences_of(self)->released, &self->thread.clock);
        self->fenced = true;
        if (rf_tap)
            tell_fence(self, RF_TAP_PUBLISHER);
        rf_epoch_begin(self); /* what comes after the fence is not released by it */
    }
    rf_busy_end(self);
}

/* Orders a thread and a signal handler on the same thread: they have one clock. */
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
