/* FIB (sync/fib.h) for the words of granules.
 *
 * The owner of a word without units is the slot of its last access, Y (X where there is none). The owners of slots lie in one array, and
 * a slot without a thread is a parked owner: so words of threads that have ended need no care, nor does a slot's next thread.
 *
 * 1. Shared(S) is a word that names a read map; S is the slots of its moments. A thread of S that reads the same bytes replaces its own
 *    moment while it is active, without synchronisation, if it is one of the map's first four: those never move while the word is
 *    Shared. A map with more has their newest state in `few`, and older ones in the long list (rf_readers_settle; rf_slices_word() undoes that). The others'
 *    moments are replaced, and new ones added (Wood's fence transition), under the stripe's lock, which is the fence.
 * 2. Whoever wants anything else of a Shared word (a write; a read of other bytes, which divides the map) first replaces the word under
 *    the stripe's lock, so that nobody can be added any more, and then has the acknowledgement of all of S: from then on nobody
 *    of S writes to the map, and the map is what they left. A write of all bytes puts itself there, as tentative owner, with a
 *    moment that nobody is ordered after: who comes meanwhile races with it, and finds that. Others close the word (RF_CLOSED).
 *    If the access races and is refused (guest/refusal.h), the word is Shared(S) again; if it happens all the same, it is recorded
 *    like any other.
 * 3. A granule in slices (a record) has no owner: it is changed under the stripe's lock, as under the other policies. It comes from, and
 *    goes to, an Exclusive word by its owner's step.
 * 4. A moment is taken before the step: it may give the thread another slot, whose owner is then another.
 * 5. Whoever waits here is busy (guest/self.h). The one who stops the world waits for it, and it for nobody who might be waiting for
 *    the world: such a thread is not active, and is held by whoever is tired of waiting for it (sync/fib.h, Progress).
 */
#include <sys/syscall.h>

#include "guest/escape.h"
#include "guest/memory.h"
#include "guest/nearby.h"
#include "guest/policy.h"
#include "guest/spin.h"
#include "guest/system.h"
#include "sync/fib.h"

#define OWNERS (1u << 22) /* only what is touched is there */
#define ASKED_AT_ONCE 64u
#define RUN_AT_ONCE 512u /* words that are changed in one active stretch, or under one lock */

static struct rf_fib_owner *owners;

/* How often what is rare was done; atomic additions. */
static struct {
    uint64_t served, self_served, taken_over, tries, acks, acks_taken_over, rolled_back;
} done;

static void tell(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static struct rf_fib_owner *owner_at(uint32_t slot)
{
    if (__builtin_expect(slot >= OWNERS, 0))
        rf_die("--sync=fib: more than %u threads", OWNERS);
    return &owners[slot];
}

struct fib_access {
    struct rf_step *step;
    unsigned mask;
    bool shared; /* the word became Shared */
};

static inline bool is_shared(uint64_t word)
{
    return (word & (RF_ODD_BIT | RF_WRITES_BIT)) == RF_ODD_BIT;
}

static inline struct rf_fib_owner *owner_of(const uint64_t *place, uint64_t word)
{
    if (!word) { /* the first owner of escaped memory is who let it escape, if that is known */
        uint32_t first = rf_escape_leaves ? rf_escape_state((uintptr_t)place - RF_WORDS) : 0;
        return first > RF_ESCAPED ? owner_at(first - RF_ESCAPED - 1) : NULL;
    }
    if (rf_word_has_units(word))
        return RF_FIB_ELSEWHERE;
    return owner_at(rf_moment_slot(RF_WORD_Y(word) ? RF_WORD_Y(word) : RF_WORD_X(word)));
}

/* Steps that need no units. */
static inline bool quickly(const struct fib_access *access, uint64_t *place, uint64_t word, uint64_t *next)
{
    struct rf_step *step = access->step;
    if (step->flags & RF_A_ATOMIC)
        return false;
    if (rf_moment_is_now(step->self, RF_WORD_Y(word)) && rf_word_join(step, word, access->mask, next)) {
        if (*next != word)
            rf_nearby_put(step->self, place, access->mask, RF_WORD_Y(word),
                          rf_moment_note_beside(step->now, RF_WORD_Y(word)));
        return true;
    }
    return rf_word_quick(step, word, access->mask, next);
}

static __attribute__((noinline)) void group_slowly(struct rf_fib_request *first)
{
    uint64_t *place = first->place, old = __atomic_load_n(place, __ATOMIC_RELAXED), next = old;
    struct rf_slices slices;
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    rf_slices_of(old, &slices);
    for (struct rf_fib_request *request = first; request; request = request->next) {
        struct fib_access *access = request->access;
        access->step->race = 0;
        access->step->stripe = stripe;
        if (!rf_step_refuses(access->step) || !rf_slices_race(&slices, access->mask, access->step))
            rf_slices_step(&slices, access->mask, access->step);
        if (!request->next)
            next = rf_slices_word(&slices, access->step, old);
        access->step->stripe = NULL;
    }
    __atomic_store_n(place, next, __ATOMIC_RELEASE);
    rf_spin_unlock(&stripe->lock);
    for (struct rf_fib_request *request = first; request; request = request->next)
        ((struct fib_access *)request->access)->shared = is_shared(next);
}

static inline void group(struct rf_fib_request *first)
{
    uint64_t *place = first->place, word = __atomic_load_n(place, __ATOMIC_RELAXED), next = word;
    for (struct rf_fib_request *request = first; request; request = request->next, word = next) {
        struct fib_access *access = request->access;
        access->step->race = 0;
        access->shared = false;
        if (!quickly(access, place, word, &next)) {
            group_slowly(first);
            return;
        }
    }
    __atomic_store_n(place, next, __ATOMIC_RELEASE);
}

static bool first(struct rf_fib_request *request)
{
    struct fib_access *access = request->access;
    uint64_t old = 0, next;
    access->step->race = 0;
    access->shared = false;
    if (!quickly(access, request->place, 0, &next))
        next = rf_policy_next(request->place, 0, access->mask, access->step);
    if (__atomic_compare_exchange_n(request->place, &old, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return true;
    if (rf_word_is_record(next)) { /* of an atomic access, with one moment */
        struct rf_stripe *stripe = rf_stripe_of(request->place);
        rf_spin_lock(&stripe->lock);
        rf_record_end(stripe, RF_WORD_X(next), RF_WORD_M(next));
        rf_spin_unlock(&stripe->lock);
    }
    return false;
}

uint32_t rf_fib_waiters;
static struct rf_fib_host host = { owner_of, group, first, rf_world_fence, rf_yield, &rf_world_fences, 0, &rf_fib_waiters };

void rf_fib_begin(void)
{
    owners = rf_reserve(OWNERS * sizeof *owners);
    if (!owners)
        rf_die("--sync=fib: the kernel refuses %zu bytes of addresses", OWNERS * sizeof *owners);
    host.patience = rf_options.fib_patience > 0 ? (unsigned)rf_options.fib_patience : 0;
}

/* A yield point that does not step. */
static void answer_if_asked(struct rf_fib_owner *me)
{
    if (__builtin_expect(__atomic_load_n(&me->flags, __ATOMIC_RELAXED) & RF_FIB_ASKED, 0)) {
        rf_fib_enter(me, &host);
        rf_fib_leave(me);
    }
}

/* The count of waiters is 0 after a fork: who waits is busy, and a fork waits for those. */
void rf_fib_yields(void)
{
    struct rf_self *self = rf_hot.self;
    if (!self || self->busy || self->inside)
        return;
    rf_busy_begin(self);
    answer_if_asked(owner_at(self->thread.slot));
    rf_busy_end(self);
}

void rf_fib_slot_parks(uint32_t slot)
{
    struct rf_fib_owner *owner = owner_at(slot);
    if (__atomic_load_n(&owner->flags, __ATOMIC_ACQUIRE)) /* it is not parked yet */
        rf_fib_park(owner, &host);
}

/* ---- Shared words ---- */

/* Whoever is in the map has been heard of: nobody of S writes to it any more. */
static void ask_all(struct rf_fib_owner *me, uint32_t set)
{
    const struct rf_readers *readers = rf_readers_at(set);
    const uint32_t *list = rf_readers_list((struct rf_readers *)readers);
    for (uint32_t at = 0; at < readers->count; at += ASKED_AT_ONCE) {
        struct {
            struct rf_fib_owner *owner;
            uint32_t yields;
        } asked[ASKED_AT_ONCE];
        unsigned waiting = 0;
        for (uint32_t i = at; i < readers->count && i < at + ASKED_AT_ONCE; i++) {
            struct rf_fib_owner *owner = owner_at(rf_moment_slot(__atomic_load_n(&list[i], __ATOMIC_RELAXED)));
            if (owner == me || !rf_fib_ack_ask(owner, &host, &asked[waiting].yields))
                continue;
            asked[waiting++].owner = owner;
        }
        for (unsigned i = 0; i < waiting; i++) {
            tell(&done.acks);
            if (rf_fib_ack_await(me, asked[i].owner, asked[i].yields, &host))
                tell(&done.acks_taken_over);
        }
    }
}

/* The word is replaced by `meanwhile`, all of S has acknowledged, and the stripe's lock is held. false: it had changed already. */
static bool close_shared(struct rf_fib_owner *me, uint64_t *place, uint64_t word, uint64_t meanwhile)
{
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    if (__atomic_load_n(place, __ATOMIC_ACQUIRE) != word) {
        rf_spin_unlock(&stripe->lock);
        return false;
    }
    __atomic_store_n(place, meanwhile, __ATOMIC_SEQ_CST);
    rf_spin_unlock(&stripe->lock);
    ask_all(me, RF_WORD_Y(word));
    rf_spin_lock(&stripe->lock);
    rf_readers_settle(RF_WORD_Y(word));
    return true;
}

/* [writeShared], and any other use of a Shared word that changes it. false: it had changed already. */
static __attribute__((noinline)) bool multiple(struct rf_fib_owner *me, uint64_t *place, uint64_t word, unsigned mask,
                                               struct rf_step *step)
{
    bool write = step->flags & RF_A_WRITE && mask == 0xff && !(step->flags & RF_A_ATOMIC);
    uint64_t tentative = write ? RF_WORD(0xff, step->now, 0) | RF_WRITES_BIT : RF_CLOSED;
    if (!close_shared(me, place, word, tentative))
        return false;
    struct rf_slices slices;
    struct rf_stripe *stripe = step->stripe = rf_stripe_of(place);
    step->race = 0;
    /* Somebody came after the tentative write, which races with it (invariant 2), and went on from there. */
    bool overtaken = __atomic_load_n(place, __ATOMIC_ACQUIRE) != tentative;
    rf_slices_of(word, &slices);
    if (!overtaken && rf_step_refuses(step) && rf_slices_race(&slices, mask, step)) {
        __atomic_store_n(place, word, __ATOMIC_RELEASE); /* rolled back to Shared(S) */
        rf_spin_unlock(&stripe->lock);
        tell(&done.rolled_back);
        step->stripe = NULL;
        return true;
    }
    rf_slices_step(&slices, mask, step);
    if (overtaken) { /* the verdict remains; the map goes */
        for (unsigned i = 0; i < slices.count; i++)
            ftm_clear(step, &slices.list[i].cell);
    } else {
        __atomic_store_n(place, rf_slices_word(&slices, step, word), __ATOMIC_RELEASE);
    }
    rf_spin_unlock(&stripe->lock);
    step->stripe = NULL;
    return true;
}

/* A thread of S replaces its moment: [read], (B) and (C). false: it is not one of the first four, or the word has changed. */
static bool read_again(struct rf_fib_owner *me, uint64_t *place, uint64_t word, const struct rf_step *step)
{
    struct rf_readers *readers = rf_readers_at(RF_WORD_Y(word));
    uint32_t slot = step->self->thread.slot;
    bool found = false;
    rf_fib_enter(me, &host);
    if (__atomic_load_n(place, __ATOMIC_ACQUIRE) == word) {
        uint32_t count = __atomic_load_n(&readers->is_many, __ATOMIC_ACQUIRE) ? RF_FEW : __atomic_load_n(&readers->count, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; i < RF_FEW && i < count && !found; i++) {
            uint32_t moment = __atomic_load_n(&readers->few[i], __ATOMIC_RELAXED);
            found = moment && rf_moment_slot(moment) == slot;
            if (found)
                __atomic_store_n(&readers->few[i], step->now, __ATOMIC_RELEASE);
        }
    }
    rf_fib_leave(me);
    return found;
}

/* [readSharedFirst], under the stripe's lock. Also the later reads of those that came fifth or after. false: the word has changed. */
static bool read_first(uint64_t *place, uint64_t word, struct rf_step *step, enum rf_transition *kind)
{
    struct rf_stripe *stripe = rf_stripe_of(place);
    uint32_t set = RF_WORD_Y(word), slot = step->self->thread.slot;
    rf_spin_lock(&stripe->lock);
    bool same = __atomic_load_n(place, __ATOMIC_ACQUIRE) == word, found = false;
    if (same) {
        uint32_t *list = rf_readers_list(rf_readers_at(set)), count = rf_readers_at(set)->count;
        for (uint32_t i = 0; i < count && !found; i++) {
            found = rf_moment_slot(list[i]) == slot;
            if (found)
                __atomic_store_n(&list[i], step->now, __ATOMIC_RELEASE);
        }
        if (!found) {
            rf_readers_add(set, step->now);
            if (!rf_step_ordered(step, RF_WORD_X(word))) {
                rf_step_race(step, RF_WORD_X(word), true);
                step->race_mask = 0xff;
                if (rf_step_refuses(step)) { /* tentative, and taken back */
                    rf_readers_remove(set, count);
                    tell(&done.rolled_back);
                }
            }
        }
        *kind = found ? RF_T_LOCAL : RF_T_FENCE;
    }
    rf_spin_unlock(&stripe->lock);
    return same;
}

/* A granule in slices: invariant 3. false: it is no longer. */
static bool in_record(uint64_t *place, unsigned mask, struct rf_step *step)
{
    struct rf_stripe *stripe = step->stripe = rf_stripe_of(place);
    struct rf_slices slices;
    rf_spin_lock(&stripe->lock);
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    bool record = rf_word_is_record(word) && word != RF_CLOSED;
    if (record) {
        step->race = 0;
        if (!rf_locked_quick(place, step, word, mask, &next)) {
            rf_slices_of(word, &slices);
            if (rf_step_refuses(step) && rf_slices_race(&slices, mask, step)) {
                next = word;
            } else {
                rf_slices_step(&slices, mask, step);
                next = rf_slices_word(&slices, step, word);
            }
        }
        rf_record_end_unless(stripe, word, next);
        __atomic_store_n(place, next, __ATOMIC_RELEASE);
    }
    rf_spin_unlock(&stripe->lock);
    step->stripe = NULL;
    return record;
}

/* The kind of word that sync/fib.h leaves to us. false: it is another one by now. */
static __attribute__((noinline)) bool elsewhere(struct rf_fib_owner *me, uint64_t *place, unsigned mask, struct rf_step *step,
                                                enum rf_transition *kind)
{
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    step->race = 0;
    if (word == RF_CLOSED) {
        rf_fib_while_waiting(me, &host, 15);
        return false;
    }
    if (rf_word_is_record(word)) {
        *kind = RF_T_RECORD;
        return in_record(place, mask, step);
    }
    if (!is_shared(word))
        return false;
    if (!(step->flags & (RF_A_WRITE | RF_A_ATOMIC)) && mask == RF_WORD_M(word)) {
        *kind = RF_T_LOCAL;
        return read_again(me, place, word, step) || read_first(place, word, step, kind);
    }
    *kind = RF_T_MULTIPLE;
    return multiple(me, place, word, mask, step);
}

void rf_fib_granule(uint64_t *place, unsigned mask, struct rf_step *step)
{
    struct rf_self *self = step->self;
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE), tries = 0;
    struct rf_fib_owner *me = owner_at(self->thread.slot);
    if (rf_policy_repeats(self, place, word, mask, step->flags)) {
        self->transitions[RF_T_PURE]++;
        answer_if_asked(me);
        return;
    }
    struct fib_access access = { step, mask, false };
    struct rf_fib_request request = { NULL, place, &access, 0 };
    enum rf_transition kind = RF_T_LOCAL;
    enum rf_fib_kind how;
    while ((how = rf_fib_step(me, &request, &host, &tries)) == RF_FIB_NOT_HERE)
        if (elsewhere(me, place, mask, step, &kind))
            break;
    if (how != RF_FIB_LOCAL && how != RF_FIB_NOT_HERE) {
        kind = how == RF_FIB_FIRST ? RF_T_FIRST : access.shared ? RF_T_SINGLE_SHARED : RF_T_SINGLE;
        if (how != RF_FIB_FIRST)
            tell(how == RF_FIB_SERVED ? &done.served : how == RF_FIB_SELF_SERVED ? &done.self_served : &done.taken_over);
    }
    if (__builtin_expect(tries != 0, 0))
        __atomic_fetch_add(&done.tries, tries, __ATOMIC_RELAXED);
    self->transitions[kind]++;
}

static size_t replace_run(uint64_t *place, size_t count, uint64_t old, uint64_t next)
{
    size_t i = 0;
    for (; i < count && __atomic_load_n(&place[i], __ATOMIC_RELAXED) == old; i++)
        __atomic_store_n(&place[i], next, __ATOMIC_RELEASE);
    return i;
}

size_t rf_fib_equal(struct rf_self *self, uint64_t *place, size_t count, uint64_t old, uint64_t next)
{
    struct rf_fib_owner *me = owner_at(self->thread.slot), *owner = old ? owner_of(place, old) : NULL;
    size_t done_now = 0, all = 0;
    if (!owner || owner == RF_FIB_ELSEWHERE)
        return 0;
    do {
        size_t some = count - all < RUN_AT_ONCE ? count - all : RUN_AT_ONCE;
        done_now = 0;
        if (owner == me) {
            rf_fib_enter(me, &host);
            done_now = replace_run(place + all, some, old, next);
            rf_fib_leave(me);
        } else {
            rf_fib_lock(owner, &host);
            if (!(owner->flags & RF_FIB_RUNNING))
                done_now = replace_run(place + all, some, old, next);
            rf_fib_unlock(owner);
        }
        all += done_now;
    } while (done_now == RUN_AT_ONCE && all < count);
    self->transitions[owner == me ? RF_T_LOCAL : RF_T_SINGLE] += all;
    if (owner != me)
        __atomic_fetch_add(&done.self_served, all, __ATOMIC_RELAXED);
    return all;
}

/* The memory is new: nobody of S may still be writing to a map that is given back. */
void rf_fib_clear(uint64_t *place, unsigned mask)
{
    struct rf_self *self = rf_hot.self;
    if (!self)
        return;
    for (uint64_t word; is_shared(word = __atomic_load_n(place, __ATOMIC_ACQUIRE));) {
        if (!close_shared(owner_at(self->thread.slot), place, word, RF_CLOSED))
            continue;
        struct rf_step step = { .self = self, .stripe = rf_stripe_of(place) };
        __atomic_store_n(place, rf_word_without(&step, word, mask), __ATOMIC_RELEASE);
        rf_spin_unlock(&step.stripe->lock);
        return;
    }
}

void rf_fib_print(void)
{
    rf_say("statistics: conflicts: %zu answered by the owner, %zu by the asker while the owner was parked, %zu taken over; %zu look-ups again",
           (size_t)done.served, (size_t)done.self_served, (size_t)done.taken_over, (size_t)done.tries);
    rf_say("statistics: %zu acknowledgements, %zu of them taken over; %zu updates rolled back", (size_t)done.acks,
           (size_t)done.acks_taken_over, (size_t)done.rolled_back);
}
