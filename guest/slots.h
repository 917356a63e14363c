/* Slots: what threads are known by in clocks (core/order.h, invariants 2 and 3), for the whole process.
 *
 * 1. All of it is under one lock; the caller is busy.
 * 2. An idle slot has lost its owner. `last` is that owner's last time; the next one goes on after it. It may be given to a child
 *    whose parent's clock has seen `last`; or to anybody once no history names the slot (`forgotten`).
 *    The clock's own entry is the time of the newest moment (guest/moments.h), so it starts as the time before the owner's first.
 * 3. A thread that ends leaves the rest of its block of moments to the slot's next owner: a block belongs to a slot, and its times go
 *    on. A sweep (rf_slots_dead) takes what nobody has claimed.
 * 4. Owners are kept for ever, in the order of their times: 8 bytes for each thread.
 */
#ifndef RF_GUEST_SLOTS_H
#define RF_GUEST_SLOTS_H

#include "guest/self.h"

#ifndef RF_TIME_LIMIT
#define RF_TIME_LIMIT (UINT32_MAX - 3) /* less for tests: -DRF_TIME_LIMIT=62 */
#endif

extern uint32_t rf_slots_lock;

/* Gives a thread its slot, and the entry in its own clock. `parent` NULL: nobody's past is known. */
void rf_slot_take(struct rf_self *self, const struct rf_clock *parent);
void rf_slot_leave(struct rf_self *self, bool joined); /* not joined: `dead`, until it is reclaimed */
void rf_slot_joined(uint32_t slot); /* a dead one's end is known after all */
void rf_slots_past(struct rf_thread *thread); /* it knows all that ended; the world is stopped */
/* After a fork: the clock of the only thread that goes on knows every slot's past, and all others are idle. */
void rf_slots_inherit(struct rf_thread *thread);

#endif
