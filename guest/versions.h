/* Versions of clocks (PACER, section 3.2): who meets a clock that it knows already need not look at its entries.
 *
 * 1. A version names what a thread's clock was from one change to the next: the thread, and a number that grows. A thread's clock
 *    only grows, too: who knows a version knows all earlier ones of the same thread.
 * 2. A clock that is handed on (of a lock, a barrier, ...) has the version of the thread's clock that it is equal to, or none: 0.
 *    Whoever changes it otherwise makes that 0.
 * 3. A thread whose clock has become equal to one with a version takes that version for its own, until its clock changes: its own time
 *    advances (which nobody tells: the time is kept beside the version), or something is received. So where clocks stand still, as
 *    outside of pacer's periods, all who talk to each other come to have the same version, and to receive and to publish are each one
 *    comparison.
 * 4. A thread remembers the versions that it received last, one for each of RF_VERSIONS groups of threads. One that it has forgotten
 *    is received again, which changes nothing.
 * 5. Only for pacer: with other detectors nearly every release comes with a new time. And only for clocks that do not fit an object: of
 *    others all entries are looked at in a few instructions, and by ways that know no versions (guest/locks.c, guest/atomics.c). A
 *    clock never becomes shorter.
 * 6. Whoever has a number that does not fit has no versions, and looks at entries.
 */
#ifndef RF_GUEST_VERSIONS_H
#define RF_GUEST_VERSIONS_H

#include "guest/objects.h"
#include "guest/pacer.h"

#define RF_VERSIONS 64u

/* C := C ⊔ from. The thread is busy, and its clock has room. */
void rf_version_receive(struct rf_self *self, const struct rf_clock *from, uint64_t version);
/* into := into ⊔ C, into := C. It has room. */
void rf_version_publish(struct rf_self *self, struct rf_clock *into, uint64_t *version);
void rf_version_replace(struct rf_self *self, struct rf_clock *into, uint64_t *version);
void rf_versions_thread_end(struct rf_self *self);

static inline bool rf_has_versions(const struct rf_self *self)
{
    return __builtin_expect(rf_pacer, 0) && self->thread.clock.len > RF_OBJECT_FEW;
}

/* The clock was changed otherwise. */
static inline void rf_version_ends(struct rf_self *self)
{
    self->version = 0;
}

/* So was one that is handed on. Elsewhere it is 0 anyway. */
static inline void rf_version_lost(uint64_t *version)
{
    if (__builtin_expect(rf_pacer, 0))
        *version = 0;
}

static inline void rf_clock_receive(struct rf_self *self, const struct rf_clock *from, uint64_t version)
{
    if (rf_has_versions(self))
        rf_version_receive(self, from, version);
    else
        rf_clock_join(&self->thread.clock, NULL, from);
}

static inline void rf_clock_publish(struct rf_self *self, struct rf_clock *into, uint64_t *version)
{
    if (rf_has_versions(self)) {
        rf_version_publish(self, into, version);
        return;
    }
    rf_clock_join(into, NULL, &self->thread.clock);
    rf_version_lost(version);
}

static inline void rf_clock_replace(struct rf_self *self, struct rf_clock *into, uint64_t *version)
{
    if (rf_has_versions(self)) {
        rf_version_replace(self, into, version);
        return;
    }
    rf_clock_copy(into, NULL, &self->thread.clock);
    rf_version_lost(version);
}

#endif
