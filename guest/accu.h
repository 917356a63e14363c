/* AccuLock on the words of the built-in detector: its rules (detect/acculock.inc) for moments, as FastTrack has them, in guest/granule.h.
 *
 * 1. rf_accu is set before the second thread begins and never changes.
 * 2. Slots are even then. clock[slot] is what accu-hb knows of a thread, clock[slot + 1] what happens-before does, locks included, as far
 *    as that is more: only reports ask for it. Whatever joins or copies clocks carries both. What a lock hands on
 *    (rf_accu_published) is the second, and nothing at the even places: so an acquire joins clocks as ever, and orders no accesses.
 * 3. A moment has its locks (guest/moments.h). W may have fewer, what several writes had in common (Algorithm 11): then it has a moment
 *    of its own with AL_SEVERAL and that set, whose note has the locks of the access itself. An acquire does not begin an epoch: the
 *    thread's accesses after it have other moments, but one that repeats an access from before it is left out (4.).
 * 4. Every release begins an epoch, so an access that repeats one of its epoch holds the locks that that one held, perhaps more: the hooks
 *    leave it out as they do for FastTrack (AccuLock, Corollaries 1 and 2).
 * 5. R's entries are replaced by their own thread only, and those of atomic accesses, too (detect/acculock.h, 3). So that a variable which
 *    is read by threads without number needs memory for some, those that happen before a read go when there are RF_ACCU_MANY.
 *    A slot that the thread had before its times were used up counts as another thread's.
 */
#ifndef RF_GUEST_ACCU_H
#define RF_GUEST_ACCU_H

#include "core/lockset.h"
#include "guest/annotations.h"
#include "guest/options.h"
#include "guest/self.h"

#ifndef AL_SEVERAL
#define AL_SEVERAL (1u << 31) /* detect/acculock.h has it, too */
#endif

#define RF_ACCU_MANY 64u

#define RF_ACCU_TOLD_BITS 11 /* self->told */
#define RF_ACCU_TOLD (1u << RF_ACCU_TOLD_BITS)

extern bool rf_accu RF_OURS;
extern bool rf_multi RF_OURS; /* guest/multi.h: another detector on the same clocks and locks */

/* The options ask for acculock, or for multilock, and for nothing that it can only do behind the tap: there it counts (--stats), and there it refuses
 * accesses (--on-race). */
bool rf_accu_begin(void);

/* What a release of a lock hands on: the thread itself, or (2.) its clock without the even places. Valid until the next call. */
struct rf_thread *rf_accu_published(struct rf_self *self);
void rf_accu_publish(struct rf_clock *to, const struct rf_clock *clock); /* `to` has room, and nothing that would be lost */
void rf_accu_thread_end(struct rf_self *self);

/* What protects the access of a moment. */
rf_lockset rf_accu_locks(struct rf_self *self, uint32_t moment, bool writes);
/* guest/locks.c: intersection, and what a set of guest/locks.h protects: for writing, locks that are held for reading do not count. The
 * results have no modes. */
rf_lockset rf_locks_common(struct rf_self *self, rf_lockset a, rf_lockset b);
rf_lockset rf_locks_protecting(struct rf_self *self, uint32_t set, bool writes, bool transaction);
uint32_t rf_locks_most(void); /* in the largest set so far */
extern bool rf_locks_have_modes RF_OURS; /* some lock was held for reading: before that, every set is what it protects */

/* A race that was told is not told again at other addresses, if both of its places are the same. */
static inline bool rf_accu_tells_once(void)
{
    return !rf_benign_any && rf_options.suppress_equal_stacks;
}

/* The moment of a write whose W is to have that lockset. */
uint32_t rf_accu_several(struct rf_self *self, uint32_t moment, rf_lockset locks);
/* The locks to show. */
uint32_t rf_accu_shown(uint32_t moment);

#endif
