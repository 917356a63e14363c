/* What is known of every thread that ever was: a few numbers for reports (guest/threads.h), and whether somebody ought to join it.
 *
 * 1. All of it is under rf_slots_lock, which the caller of the functions here holds. Numbers are given in the order of creation.
 * 2. While the thread lives its record has what is to know; when it ends that is copied.
 */
#ifndef RF_GUEST_FACTS_H
#define RF_GUEST_FACTS_H

#include "guest/self.h"

enum rf_facts_state {
    RF_F_UNBORN, /* the kernel refused it */
    RF_F_LIVE,
    RF_F_LEFT,      /* ended; nobody will join it */
    RF_F_JOINED,
    RF_F_NOT_JOINED /* ended, and somebody ought to join it */
};

uint32_t rf_facts_new(struct rf_self *self); /* its number */
void rf_facts_end(struct rf_self *self, enum rf_facts_state state);
void rf_facts_become(uint32_t number, enum rf_facts_state state); /* of one that has ended */
void rf_facts_left(uint32_t number);                              /* if it is NOT_JOINED: it was detached */
void rf_facts_all_left(void);                                     /* the child of a fork joins nobody */

#endif
