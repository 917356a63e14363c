/* How a step on a granule is made atomic, by the policies of sync/.
 *
 * 1. The policy is chosen before the second thread begins and never changes. RF_POLICY_CAS, the default, is not here: guest/access.c
 *    has it woven into its short ways. All others, and cas when its steps are to be counted, come here after the look whether an
 *    access repeats one of its epoch.
 * 2. `none` loses steps on words; units (guest/units.h) are under their stripe's lock all the same, so that what is lost is never more
 *    than a part of a history.
 * 3. A word that is being changed may be RF_CLOSED: it names a record without slices, which no history does. Nobody but the thread
 *    that closed it changes it; others wait. Who has closed one is busy, so nobody sees it when the world is stopped.
 * 4. New memory (rf_range_fresh, rf_range_clear) is the caller's alone, and so are its words: they are stored without a policy, after
 *    whoever has closed one has opened it. A thread that still accesses memory which was given back races with that.
 */
#ifndef RF_GUEST_POLICY_H
#define RF_GUEST_POLICY_H

#include "guest/granule.h"
#include "guest/refusal.h"

enum rf_policy { RF_POLICY_CAS, RF_POLICY_CAS_COUNTED, RF_POLICY_NONE, RF_POLICY_SPIN, RF_POLICY_FIB };

extern uint32_t rf_policy RF_OURS;
extern bool rf_detour RF_OURS; /* another policy than RF_POLICY_CAS, or guest/escape.h, or outside of guest/pacer.h's
                               * periods: what nearly all accesses do is not enough */

/* Every access goes the long way: for `spin`, which locks for each, and for counting. */
extern bool rf_policy_no_hot RF_OURS;

#define RF_CLOSED (RF_ODD_BIT | RF_WRITES_BIT)

/* Wood's Table 5.2, and what it does not have: words in slices, which are under a lock under every policy. */
enum rf_transition {
    RF_T_NOT_ESCAPED,
    RF_T_PURE,
    RF_T_LOCAL,
    RF_T_FENCE,
    RF_T_FIRST,
    RF_T_SINGLE,
    RF_T_SINGLE_SHARED,
    RF_T_MULTIPLE,
    RF_T_RECORD,
    RF_TRANSITIONS
};
_Static_assert(RF_TRANSITIONS == RF_TRANSITION_KINDS, "guest/self.h");

void rf_policy_begin(void); /* the options are read */

/* The access will not happen if it races: then nothing of it is recorded (guest/refusal.h). */
static inline bool rf_step_refuses(const struct rf_step *step)
{
    return __builtin_expect(rf_refuses, 0) && !step->allowed && !step->self->late;
}

/* One granule; the thread is busy and step->now is known. step->race tells. */
void rf_policy_step(uint64_t *place, unsigned mask, struct rf_step *step);

/* Whether the access repeats one of its epoch, also where hooks do not see that (rf_policy_no_hot). */
bool rf_policy_repeats(struct rf_self *self, const uint64_t *place, uint64_t word, unsigned mask, unsigned flags);

/* The word a step makes of `old`, for a caller who alone may change it: records of `old` that are not needed any more are given back. */
uint64_t rf_policy_next(uint64_t *place, uint64_t old, unsigned mask, struct rf_step *step);

/* The bytes of the mask are new, and somebody may still be changing the word or its map: invariant 4. When it returns they are not,
 * and a Shared word of fib has lost them. */
void rf_policy_clear(uint64_t *place, unsigned mask);

/* The thread is about to wait for something outside of the guest; it is not busy. */
void rf_policy_parks(struct rf_self *self);
static inline void rf_park_here(struct rf_self *self)
{
    if (__builtin_expect(rf_policy == RF_POLICY_FIB, 0) && self)
        rf_policy_parks(self);
}

/* For who looks at a word while the world is stopped: its map is what its threads left (guest/fib.c, 1). */
static inline void rf_policy_settle(uint64_t word)
{
    if (__builtin_expect(rf_policy == RF_POLICY_FIB, 0) && (word & (RF_ODD_BIT | RF_WRITES_BIT)) == RF_ODD_BIT)
        rf_readers_settle(RF_WORD_Y(word));
}

void rf_policy_slot_left(uint32_t slot);          /* it has no thread any more; the caller is busy */
void rf_policy_thread_ends(struct rf_self *self); /* its counts go to the total; the caller is busy */
void rf_policy_fork_child(void);
void rf_policy_print(void); /* --stats */

/* guest/fib.c */
void rf_fib_begin(void);
/* How many wait for an owner; and what a hook does that finds some (guest/near.c): the calling thread answers if it is asked. */
extern uint32_t rf_fib_waiters RF_OURS;
void rf_fib_yields(void);
void rf_fib_granule(uint64_t *place, unsigned mask, struct rf_step *step);
void rf_fib_clear(uint64_t *place, unsigned mask);
/* Words from here on that are equal to `old`, which has no units, get `next`, as one step of the thread on each would make them. Returns
 * how many; perhaps not all of them. */
size_t rf_fib_equal(struct rf_self *self, uint64_t *place, size_t count, uint64_t old, uint64_t next);
void rf_fib_slot_parks(uint32_t slot);
void rf_fib_print(void);

#endif
