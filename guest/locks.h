/* Locks of every kind: what they order, who holds which, and misuse. Interceptors of pthreads and C11, and __tsan_mutex_*, call these.
 *
 * 1. A lock operation is told when it is true: `acquired` after the real lock was taken, `released` before the real one is given
 *    back. So the clock of a lock is changed only by who holds it.
 * 2. A thread's set of held locks is an interned number (self->locks); equal sets have equal numbers.
 */
#ifndef RF_GUEST_LOCKS_H
#define RF_GUEST_LOCKS_H

#include "guest/objects.h"

enum {
    RF_L_READ = 1,
    RF_L_TRY = 2,
    RF_L_RECURSIVE = 4,
    RF_L_ROBUST_DEAD = 8, /* its owner has died with it */
    RF_L_STATIC = 16,
    RF_L_SPIN = 32,
    RF_L_RW = 64,
    RF_L_ANY = 128,     /* released: in whatever mode the thread has it */
    RF_L_CHECKED = 256, /* wanted: the real one refuses a second time instead of waiting for ever */
    RF_L_TOLD = 1024,   /* acquired: the program tells of each use, so none can have been missed */
    RF_L_REAL = 2048,   /* acquired: a mutex of libc, which keeps others out (guest/locks.c, the quick way) */
    RF_L_BROKEN = 512   /* in rf_object.flags: it was reported, and is not again */
};

void rf_lock_created(uintptr_t addr, unsigned flags, uintptr_t pc);
void rf_lock_destroyed(uintptr_t addr, uintptr_t pc);                 /* a locked one: a report (report_destroy_locked) */
void rf_lock_wanted(uintptr_t addr, unsigned flags, uintptr_t pc);    /* before a blocking lock: lock-order inversion is seen here */
void rf_lock_acquired(uintptr_t addr, unsigned flags, uintptr_t pc);
void rf_lock_released(uintptr_t addr, unsigned flags, uintptr_t pc);  /* of one that is not held: a report (report_mutex_bugs) */
/* The quick way, for a mutex of libc that this thread had last. false: nothing was done, go the other way. */
bool rf_lock_wanted_quickly(struct rf_self *self, uintptr_t addr);
bool rf_lock_acquired_quickly(struct rf_self *self, uintptr_t addr);
bool rf_lock_released_quickly(struct rf_self *self, uintptr_t addr);
void rf_lock_invalid(uintptr_t addr, uintptr_t pc);                   /* the real one said that it is none: a report */

/* For reports: the locks of a set, with how each is known and where it was created. Returns how many. */
struct rf_held_lock {
    uintptr_t addr;
    uint32_t number; /* M1, M2, ... in reports */
    uint32_t created; /* note, 0: not seen */
    uint32_t taken;   /* note of where it was locked last, 0: not known */
    bool read;
};
unsigned rf_locks_of(uint32_t set, struct rf_held_lock *list, unsigned max);
/* No two threads can hold both sets at once: a lock is in both, and not twice for reading. */
bool rf_locks_exclude(uint32_t a, uint32_t b);
void rf_lock_moved(uint32_t number, uintptr_t from, uintptr_t to);    /* and whatever was at the new place is forgotten */
uintptr_t rf_lock_address(uint32_t number);
void rf_locks_abandon(struct rf_self *self);    /* the thread ends, whatever it holds */
void rf_locks_thread_end(struct rf_self *self); /* its memory; the caller is busy */
void rf_locks_fork_before(void);
void rf_locks_fork_after(bool child);

/* What a thread has locked, the last one last. */
struct rf_held_now {
    uint32_t number;
    uint32_t read;
    uint32_t before; /* the set without this one and those after it */
    uint32_t note;   /* where; 0: not kept */
    uint32_t times;  /* for reading, more than once */
};

/* Lock-order inversion (guest/lock_order.c): `number` is wanted while `held` are. */
void rf_lock_order_wanted(struct rf_self *self, const struct rf_held_now *held, unsigned count, uint32_t number, bool read,
                          uint32_t note);
void rf_lock_order_forget(uint32_t number);
extern uint32_t rf_lock_order_changes; /* moves when something was forgotten: then what was told once must be told again */
void rf_lock_order_fork_before(void);
void rf_lock_order_fork_after(void);

#endif
