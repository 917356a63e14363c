/* The tap: one place at which everything that a run does can be heard, in terms of core/event.h. The recorder (guest/record.c) listens
 * there, and any detector that is to run online besides the built-in one can.
 *
 * 1. rf_tap is NULL, and then nothing is told, or set before the second thread begins and never NULL again.
 * 2. While somebody listens, rf_hot.span stays 0 if the listener is alone (the built-in detector is off): every access comes the long
 *    way and is told.
 * 3. The thread is busy (guest/self.h) while it tells: no signal handler of the program comes in between. sync() is called while the
 *    object is locked, or under a lock that orders it otherwise, so that calls come in the order in which clocks are joined. memory()
 *    is called before a block can be handed to another thread, and after it was taken from there.
 * 4. An object has a key. Its rules are those of `sig` and `wait` (doc/semantics.md): a release adds to what the key holds, an acquire
 *    receives all of it. An operation that makes an object forget gives it a new key, which nobody used before. So the listener
 *    needs no rules of its own for atomic stores, barriers, semaphores, or memory that is used again for another object.
 * 5. Fences publish, or receive, what a thread knew at another time. For these the thread has two companions that are threads of
 *    their own for happens-before, with no accesses: `publisher` knows what the last release fence published; `receiver` knows
 *    what relaxed reads brought, until an acquire fence.
 * 6. What a thread does while self->system is not 0 is the runtime system's. It is told only to a listener that hears_system, which is
 *    then alone; for all others the thread ignores, as annotations make it. Such a listener asks self->system.
 * 7. A kernel thread goes on as another thread (guest/threads.c, rf_thread_switch): told by sync() as IDENTITY, to who hears the system, first of the one that
 *    it was, with its own number, then of the one that it is, with the number of the kernel thread's own. For happens-before it
 *    means nothing: every event is told of the thread that performs it.
 */
#ifndef RF_GUEST_TAP_H
#define RF_GUEST_TAP_H

#include "core/event.h"
#include "guest/objects.h"

struct rf_commit_part;

enum rf_tap_who { RF_TAP_SELF, RF_TAP_PUBLISHER, RF_TAP_RECEIVER };

struct rf_tap {
    bool alone; /* the built-in detector is off */
    bool hears_system;
    /* Flags as in guest/access.h. */
    void (*access)(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);
    /* Any operation of the kind SYNC; the key of FORK and JOIN is the number of the other thread. pc 0: not known. */
    void (*sync)(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc);
    /* ALLOC: new memory. FREE: given back, which writes all of it. */
    void (*memory)(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc);
    /* The history of one range is that of another as well. NULL: not heard. */
    void (*copy)(struct rf_self *self, uintptr_t from, uintptr_t to, size_t size, uintptr_t pc);
    /* A commit with the accesses of its transaction; commits come in their order. NULL: nobody asks. */
    void (*commit)(struct rf_self *self, const struct rf_commit_part *parts, uint32_t count);
    /* Memory was made new by a runtime system whose synchronisation nobody need have seen. NULL: not heard. */
    void (*unseen)(void);
    /* A thread begins, after its FORK, with the first that is told of it. It does nothing any more; perhaps told by another. */
    void (*end)(struct rf_self *self);
    void (*modules)(void);    /* code was loaded */
    void (*named)(uintptr_t pc, const char *function, const char *file, unsigned line); /* a place in no module. NULL: not heard */
    void (*fork_child)(void); /* in the child of a fork() */
    /* Where the hot hooks go straight, if the listener is alone; the thread is not known to be there, nor busy. `what` is
     * size << 56 | (op + 1) << 48. NULL: they go the long way. */
    void (*hook)(uintptr_t addr, uintptr_t pc, uint64_t what);
    void (*forget)(uint64_t key); /* nobody is going to use it again; NULL: the listener does not want to know */
    enum { RF_HOOKS_GO, RF_HOOKS_RETURN } hooks; /* GO: to `hook`. RETURN: at once */
    bool own_returns; /* of GO: at once, if the memory is the thread's own (guest/escape.h, 6) */
    bool conditions; /* it takes no order from locks, and wants it from condition variables: from each signal to each wait after it */
};

extern const struct rf_tap *rf_tap RF_OURS;

/* For a listener that does not care. */
void rf_tap_no_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);
void rf_tap_no_sync(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc);
void rf_tap_no_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc);
void rf_tap_no_end(struct rf_self *self);
void rf_tap_nothing(void);

/* Invariant 6. */
static inline bool rf_system_is_ignored(const struct rf_self *self)
{
    return self->system && !(rf_tap && rf_tap->hears_system);
}

static inline void rf_tap_sync(struct rf_self *self, enum rf_op op, uint64_t key, uintptr_t pc)
{
    if (__builtin_expect(rf_tap != NULL, 0))
        rf_tap->sync(self, RF_TAP_SELF, op, key, pc);
}

/* The templates of guest/hooks.S were copied here (guest/near.c): those of accesses jump to the listener's hook instead. */
void rf_tap_hooks(uint8_t *block);

/* True: nobody else looks at the access. */
bool rf_tap_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);
bool rf_tap_copy(struct rf_self *self, uintptr_t from, uintptr_t to, size_t size, uintptr_t pc);
bool rf_tap_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc);

/* Both listen from now on: guest/tap_both.c. */
void rf_tap_both(const struct rf_tap *recorder, const struct rf_tap *detector);

/* The place in the program: an interceptor's own address says less than that of its caller. */
uintptr_t rf_tap_site(const struct rf_self *self, uintptr_t pc);

/* A key that nobody has. */
uint64_t rf_tap_new_key(void);
uint64_t rf_tap_key(struct rf_object *object); /* the object's */
void rf_tap_renew(struct rf_object *object);   /* what it held is forgotten */
void rf_tap_forgotten(const struct rf_object *object);
static inline void rf_tap_forget(uint64_t key)
{
    if (__builtin_expect(rf_tap != NULL, 0) && key && rf_tap->forget)
        rf_tap->forget(key);
}
/* A condition variable was signalled, or waited for. */
void rf_tap_signalled(const void *condition);
void rf_tap_waited(const void *condition);
/* The object is locked. */
static inline void rf_tap_lock(struct rf_self *self, enum rf_op op, struct rf_object *object, uintptr_t pc)
{
    if (__builtin_expect(rf_tap != NULL, 0))
        rf_tap->sync(self, RF_TAP_SELF, op, rf_tap_key(object), pc);
}
void rf_tap_receive(struct rf_self *self, enum rf_tap_who who, struct rf_object *object, uint64_t key);
void rf_tap_publish(struct rf_self *self, enum rf_tap_who who, struct rf_object *object, uint64_t key);

/* A thread that nobody created has the past of all others (guest/threads.c, join_past): of each that lives, with the world stopped;
 * then it is there itself. */
void rf_tap_past(struct rf_self *other);
void rf_tap_attached(struct rf_self *self);
void rf_tap_switch(struct rf_self *from, struct rf_self *to, uint32_t kernel); /* invariant 7 */
void rf_tap_ends(struct rf_self *self); /* the caller is busy */

#endif
