/* Fast Instrumentation Bias (Wood, chapter 5): every word has an owner, who steps on it without synchronisation; others ask it to.
 *
 * There is no store for ownership: the host derives it from the word (the slot of the last access). A host has words of three kinds:
 * nobody's, which the first one takes by compare-and-swap; Exclusive(u), which this file handles; and any others (read-shared ones,
 * records), which it leaves to the host, with acknowledgements to build on. The names in brackets are those of Wood's figures.
 *
 * 1. A word that is Exclusive(u) is changed (a) by u's thread while u is active; or (b) by who holds u's lock while u's thread cannot
 *    be active: since it is that thread itself; or u is not RUNNING; or u is HELD and its `active` was seen to be 0 afterwards.
 * 2. Flags and queue of an owner are written under its lock. Its thread reads the flags without: each time it becomes active, and that
 *    is its yield point (rf_fib_enter). To leave the RUNNING state (to park: before a wait, at the thread's end) all requests are
 *    served; to be RUNNING again the thread takes the lock, at its next yield point. So nothing must be undone after a wait, and a
 *    handler or a callback that accesses memory while its thread waits is no special case.
 * 3. `active` is written by the owner's thread alone. It sets active and then looks at the flags; who takes over sets HELD and then
 *    looks at active. One of the two sees the other, since the one who takes over pays for the fence on both sides (host.fence();
 *    guest/world.c has the same argument), or, where that cannot be had, each pays for its own (host.fences).
 * 4. A look-up of the owner counts only under the owner's lock [request]: there the word is looked at again, and the request is
 *    enqueued, or served, while the word cannot change hands by (b); if it has, or does by (a) before it is served, the answer is to
 *    look again.
 * 5. Requests for one word are stepped on a private copy, in the order in which they came, and published together [yield]; then they
 *    are answered. So the state in between, which belongs to neither, is seen by nobody.
 * 6. An acknowledgement by u says: u's thread was not active at some instant after it was asked for. What u did before is visible
 *    to the asker, and u will see what the asker had written: u counts its yield points by a locked instruction when it was asked.
 *
 * Progress. An active thread waits for nothing but locks of the host which are held for a few instructions by threads that wait for
 * nothing. A thread that waits for an owner's lock or an answer is not active, and serves its own queue meanwhile; it has at most one
 * lock of this file. Who holds an owner's lock waits at most for that owner's thread to end an active stretch. So there is no circle:
 * the holder of a lock gets on, hence every lock becomes free; and a request is answered by the owner at its yield point, by the owner
 * when it parks, or, after a bounded number of turns, by the asker, who takes over. An owner that computes for hours without a hook,
 * was stopped by a debugger outside of an active stretch, or has ended, delays nobody longer than that bound. One asker may starve
 * if the word changes hands each time before it has the lock; then others get on. That is Wood's guarantee (5.3.7).
 */
#ifndef RF_SYNC_FIB_H
#define RF_SYNC_FIB_H

#include <stddef.h>

#include "sync/step.h"

enum { RF_FIB_RUNNING = 1, RF_FIB_ASKED = 2, RF_FIB_HELD = 4 };

enum rf_fib_answer { RF_FIB_NO_ANSWER, RF_FIB_DONE, RF_FIB_AGAIN };

/* One at a time for each thread, on its stack. Linked and read by who holds the owner's lock; `answer` is the last thing written. */
struct rf_fib_request {
    struct rf_fib_request *next;
    uint64_t *place;
    void *access;
    uint32_t answer;
};

/* All zeros: an owner without a thread. Owners are never freed: anybody may hold the name of one that has ended. */
struct rf_fib_owner {
    uint32_t active; /* invariant 3 */
    uint32_t flags;  /* invariant 2 */
    uint32_t lock;
    uint32_t yields; /* those at which it was asked for something */
    struct rf_fib_request *first, *last;
    uint64_t pad[4];
};

#define RF_FIB_ELSEWHERE ((struct rf_fib_owner *)-1) /* of an owner: the host handles such words by itself */

struct rf_fib_host {
    /* The owner that the word has; NULL: nobody; or RF_FIB_ELSEWHERE. */
    struct rf_fib_owner *(*owner_of)(const uint64_t *place, uint64_t word);
    /* The word at first->place is the caller's to change (1), and is what owner_of() said: all of the list, one after the other,
     * and the result is stored. */
    void (*group)(struct rf_fib_request *first);
    /* The word is nobody's, or was: the step by compare-and-swap. false: it is somebody's now. */
    bool (*first)(struct rf_fib_request *request);
    void (*fence)(void); /* when it returns, every other running thread has executed a fence */
    void (*yield)(void);
    const bool *fences; /* there is no fence(): owners have their own */
    unsigned patience;  /* turns of waiting for an answer before the asker takes over */
    uint32_t *waiters;  /* how many wait for one now: a flag for yield points that do not know their owner. Atomic */
};

/* What a step turned out to be: Wood's Table 5.1. */
enum rf_fib_kind { RF_FIB_LOCAL, RF_FIB_FIRST, RF_FIB_SERVED, RF_FIB_SELF_SERVED, RF_FIB_TAKEN_OVER, RF_FIB_NOT_HERE };

static inline void rf_fib_turn(const struct rf_fib_host *host, unsigned turn)
{
    if (turn % 16 != 15)
        __builtin_ia32_pause();
    else
        host->yield();
}

static inline void rf_fib_lock(struct rf_fib_owner *owner, const struct rf_fib_host *host)
{
    for (unsigned turns = 0; __atomic_exchange_n(&owner->lock, 1, __ATOMIC_ACQUIRE);)
        while (__atomic_load_n(&owner->lock, __ATOMIC_RELAXED))
            rf_fib_turn(host, turns++);
}

static inline void rf_fib_unlock(struct rf_fib_owner *owner)
{
    __atomic_store_n(&owner->lock, 0, __ATOMIC_RELEASE);
}

static inline void rf_fib_set_flags(struct rf_fib_owner *owner, uint32_t flags)
{
    __atomic_store_n(&owner->flags, flags, __ATOMIC_RELEASE);
}

/* All requests that have the first one's place leave the queue, in their order. */
static inline struct rf_fib_request *rf_fib_take_group(struct rf_fib_request **queue)
{
    struct rf_fib_request *group = *queue, *last = group, **rest = queue;
    *queue = group->next;
    group->next = NULL;
    while (*rest) {
        struct rf_fib_request *request = *rest;
        if (request->place != group->place) {
            rest = &request->next;
            continue;
        }
        *rest = request->next;
        request->next = NULL;
        last = last->next = request;
    }
    return group;
}

/* [yield] The lock is held, and the owner's thread cannot be active. An asker is gone as soon as it has its answer. */
static inline void rf_fib_serve(struct rf_fib_owner *owner, const struct rf_fib_host *host)
{
    struct rf_fib_request *queue = owner->first;
    owner->first = owner->last = NULL;
    rf_fib_set_flags(owner, owner->flags & ~(uint32_t)RF_FIB_ASKED);
    while (queue) {
        struct rf_fib_request *group = rf_fib_take_group(&queue);
        bool ours = host->owner_of(group->place, __atomic_load_n(group->place, __ATOMIC_ACQUIRE)) == owner;
        if (ours)
            host->group(group);
        for (struct rf_fib_request *next; group; group = next) {
            next = group->next;
            __atomic_store_n(&group->answer, ours ? RF_FIB_DONE : RF_FIB_AGAIN, __ATOMIC_RELEASE);
        }
    }
    __atomic_fetch_add(&owner->yields, 1, __ATOMIC_SEQ_CST); /* invariant 6 */
}

/* Somebody asked, or the thread was parked: what the owner's thread does at its yield point. It is active when it returns. */
static __attribute__((noinline, unused)) void rf_fib_attend(struct rf_fib_owner *owner, const struct rf_fib_host *host)
{
    do {
        __atomic_store_n(&owner->active, 0, __ATOMIC_RELEASE);
        rf_fib_lock(owner, host);
        rf_fib_serve(owner, host);
        rf_fib_set_flags(owner, RF_FIB_RUNNING);
        rf_fib_unlock(owner);
        __atomic_store_n(&owner->active, 1, __ATOMIC_SEQ_CST);
    } while (__atomic_load_n(&owner->flags, __ATOMIC_SEQ_CST) != RF_FIB_RUNNING);
}

/* By the owner's thread, which becomes active. */
static inline __attribute__((always_inline)) void rf_fib_enter(struct rf_fib_owner *owner, const struct rf_fib_host *host)
{
    __atomic_store_n(&owner->active, 1, __ATOMIC_RELAXED);
    if (__builtin_expect(*host->fences, 0))
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the compiler keeps the order; host.fence() sees to the processor */
    if (__builtin_expect(__atomic_load_n(&owner->flags, __ATOMIC_RELAXED) != RF_FIB_RUNNING, 0))
        rf_fib_attend(owner, host);
}

static inline void rf_fib_leave(struct rf_fib_owner *owner)
{
    __atomic_store_n(&owner->active, 0, __ATOMIC_RELEASE);
}

/* By the owner's thread, or when it has none: it is about to wait, or to end, for as long as it likes. It is not active. */
static inline void rf_fib_park(struct rf_fib_owner *owner, const struct rf_fib_host *host)
{
    rf_fib_lock(owner, host);
    rf_fib_serve(owner, host);
    rf_fib_set_flags(owner, 0);
    rf_fib_unlock(owner);
}

/* The owner's thread is kept from being active; the lock is held. */
static inline void rf_fib_hold(struct rf_fib_owner *owner, const struct rf_fib_host *host)
{
    if (!(owner->flags & RF_FIB_RUNNING))
        return;
    rf_fib_set_flags(owner, owner->flags | RF_FIB_HELD);
    if (!*host->fences)
        host->fence();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned turns = 0; __atomic_load_n(&owner->active, __ATOMIC_ACQUIRE); turns++)
        rf_fib_turn(host, turns);
}

static inline void rf_fib_let_go(struct rf_fib_owner *owner)
{
    rf_fib_set_flags(owner, owner->flags & ~(uint32_t)RF_FIB_HELD);
}

/* While a thread waits it is not active, and answers what it is asked. */
static inline void rf_fib_while_waiting(struct rf_fib_owner *me, const struct rf_fib_host *host, unsigned turn)
{
    if (__atomic_load_n(&me->flags, __ATOMIC_RELAXED) & RF_FIB_ASKED) {
        rf_fib_lock(me, host);
        rf_fib_serve(me, host);
        rf_fib_unlock(me);
    }
    rf_fib_turn(host, turn);
}

/* Until the word is not what it was: true. false: it still is, and patience is at its end. */
static inline bool rf_fib_changes(struct rf_fib_owner *me, const uint32_t *word, uint32_t old, const struct rf_fib_host *host)
{
    bool changed = false;
    __atomic_fetch_add(host->waiters, 1, __ATOMIC_RELAXED);
    for (unsigned turns = 0; turns < host->patience && !changed; turns++) {
        changed = __atomic_load_n(word, __ATOMIC_SEQ_CST) != old;
        if (!changed)
            rf_fib_while_waiting(me, host, turns);
    }
    __atomic_fetch_sub(host->waiters, 1, __ATOMIC_RELAXED);
    return changed;
}

/* [awaitResponse], bounded. */
static inline enum rf_fib_kind rf_fib_await(struct rf_fib_owner *me, struct rf_fib_owner *owner, struct rf_fib_request *request,
                                            const struct rf_fib_host *host)
{
    if (rf_fib_changes(me, &request->answer, RF_FIB_NO_ANSWER, host))
        return RF_FIB_SERVED;
    rf_fib_lock(owner, host);
    bool served = __atomic_load_n(&request->answer, __ATOMIC_ACQUIRE) != RF_FIB_NO_ANSWER;
    if (!served) {
        rf_fib_hold(owner, host);
        rf_fib_serve(owner, host);
        rf_fib_let_go(owner);
    }
    rf_fib_unlock(owner);
    return served ? RF_FIB_SERVED : RF_FIB_TAKEN_OVER;
}

/* [request] `me` is not active. request->answer says whether it was done or is to be tried again. */
static inline enum rf_fib_kind rf_fib_ask(struct rf_fib_owner *me, struct rf_fib_owner *owner, struct rf_fib_request *request,
                                          const struct rf_fib_host *host)
{
    request->next = NULL;
    request->answer = RF_FIB_NO_ANSWER;
    rf_fib_lock(owner, host);
    bool ours = host->owner_of(request->place, __atomic_load_n(request->place, __ATOMIC_ACQUIRE)) == owner;
    if (!ours || !(owner->flags & RF_FIB_RUNNING)) {
        if (ours)
            host->group(request);
        request->answer = ours ? RF_FIB_DONE : RF_FIB_AGAIN;
        rf_fib_unlock(owner);
        return RF_FIB_SELF_SERVED;
    }
    if (owner->last)
        owner->last->next = request;
    else
        owner->first = request;
    owner->last = request;
    rf_fib_set_flags(owner, owner->flags | RF_FIB_ASKED);
    rf_fib_unlock(owner);
    return rf_fib_await(me, owner, request, host);
}

/* [ack] in two parts, so that one may ask many before it waits for the first. false: it need not be waited for. */
static inline bool rf_fib_ack_ask(struct rf_fib_owner *owner, const struct rf_fib_host *host, uint32_t *yields)
{
    rf_fib_lock(owner, host);
    bool running = owner->flags & RF_FIB_RUNNING;
    *yields = __atomic_load_n(&owner->yields, __ATOMIC_SEQ_CST);
    if (running)
        rf_fib_set_flags(owner, owner->flags | RF_FIB_ASKED);
    rf_fib_unlock(owner);
    return running;
}

/* true: the asker had to take over. */
static inline bool rf_fib_ack_await(struct rf_fib_owner *me, struct rf_fib_owner *owner, uint32_t yields,
                                    const struct rf_fib_host *host)
{
    if (rf_fib_changes(me, &owner->yields, yields, host))
        return false;
    rf_fib_lock(owner, host);
    bool late = __atomic_load_n(&owner->yields, __ATOMIC_SEQ_CST) == yields;
    if (late) {
        rf_fib_hold(owner, host);
        rf_fib_serve(owner, host);
        rf_fib_let_go(owner);
    }
    rf_fib_unlock(owner);
    return late;
}

/* A step by the thread of `me`, on a word that is nobody's or has an owner. RF_FIB_NOT_HERE: it is of another kind, and nothing was
 * done. *tries counts look-ups that came too late. */
static inline __attribute__((always_inline)) enum rf_fib_kind rf_fib_step(struct rf_fib_owner *me, struct rf_fib_request *request,
                                                                          const struct rf_fib_host *host, uint64_t *tries)
{
    for (;;) {
        request->next = NULL;
        rf_fib_enter(me, host);
        uint64_t word = __atomic_load_n(request->place, __ATOMIC_ACQUIRE);
        struct rf_fib_owner *owner = host->owner_of(request->place, word);
        if (__builtin_expect(owner == me, 1)) {
            host->group(request);
            rf_fib_leave(me);
            return RF_FIB_LOCAL;
        }
        rf_fib_leave(me);
        if (owner == RF_FIB_ELSEWHERE)
            return RF_FIB_NOT_HERE;
        if (!owner) {
            if (host->first(request))
                return RF_FIB_FIRST;
        } else {
            enum rf_fib_kind kind = rf_fib_ask(me, owner, request, host);
            if (request->answer == RF_FIB_DONE)
                return kind;
        }
        ++*tries;
    }
}

#endif
