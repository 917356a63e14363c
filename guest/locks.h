/* Locks of every kind: what they order, who holds which, and misuse. Interceptors of pthreads and C11, and __tsan_mutex_*, call these.
 *
 * 1. A lock operation is told when it is true: `acquired` after the real lock was taken, `released` before the real one is given
 *    back. So the clock of a lock is changed only by who holds it.
 * 2. A thread's set of held locks is an interned number (self->locks); equal sets have equal numbers.
 */
#ifndef RF_GUEST_LOCKS_H
#define RF_GUEST_LOCKS_H

#include "guest/objects.h"

enum { RF_L_READ = 1, RF_L_TRY = 2, RF_L_RECURSIVE = 4, RF_L_ROBUST_DEAD = 8, RF_L_STATIC = 16, RF_L_SPIN = 32, RF_L_RW = 64 };

void rf_lock_created(uintptr_t addr, unsigned flags, uintptr_t pc);
void rf_lock_destroyed(uintptr_t addr, uintptr_t pc);                 /* a locked one: a report (report_destroy_locked) */
void rf_lock_wanted(uintptr_t addr, unsigned flags, uintptr_t pc);    /* before a blocking lock: lock-order inversion is seen here */
void rf_lock_acquired(uintptr_t addr, unsigned flags, uintptr_t pc);
void rf_lock_released(uintptr_t addr, unsigned flags, uintptr_t pc);  /* of one that is not held: a report (report_mutex_bugs) */

/* For reports: the locks of a set, with how each is known and where it was created. Returns how many. */
struct rf_held_lock {
    uintptr_t addr;
    uint32_t number; /* M1, M2, ... in reports */
    uint32_t created; /* note, 0: not seen */
    uint32_t taken;   /* note of where it was locked last, 0: not known */
    bool read;
};
unsigned rf_locks_of(uint32_t set, struct rf_held_lock *list, unsigned max);

#endif
