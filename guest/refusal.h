/* Races that do not happen: under --on-race=exception, signal or abort an access that would race is refused before it executes.
 *
 * 1. rf_refuses is false, and then a race is reported and the access goes on; or it was set before the second thread, for good.
 * 2. An access that is refused leaves no trace in any history: to the detector it did not happen. So whatever is raised later races
 *    with something that did. What lies in several granules is looked at as a whole first. Only if a race comes up between that look
 *    and the access does the part before the racing granule stay: then both threads were at it, and each may be refused.
 * 3. Nothing of the guest is held, and the thread is not busy, when an access is refused: it may never come back.
 * 4. What has happened when it becomes known (what a system call has written, a lock that was taken) is recorded all the same; the
 *    race is kept, and raised when the function of libc is done: between rf_late_begin() and rf_late_end().
 * 5. rf_refused() is the one door: every detector that runs online and is precise ends there.
 */
#ifndef RF_GUEST_REFUSAL_H
#define RF_GUEST_REFUSAL_H

#include "guest/report.h"
#include "guest/self.h"
#include "guest/verdict.h"

extern bool rf_refuses RF_OURS;

void rf_refusal_begin(void); /* the options are known */

/* Nothing is changed. True: the access would race, with that. The thread is not busy. */
bool rf_would_race(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc, struct rf_found *race);

/* The access `now` races with `before`, which happened. Comes back only if `now` is to happen after all. */
void rf_refused(struct rf_self *self, const struct rf_report_side *now, const struct rf_report_side *before);

void rf_raise_late(struct rf_self *self);

static inline void rf_late_begin(struct rf_self *self)
{
    self->late++;
}

static inline void rf_late_end(struct rf_self *self)
{
    if (self->late && --self->late == 0 && __builtin_expect(self->has_late, 0))
        rf_raise_late(self);
}

/* guest/jumps.c: what lies below is left; signal handlers that the jump leaves have ended. */
void rf_tries_left(struct rf_self *self, uintptr_t sp);
void rf_question_left(struct rf_self *self, uintptr_t sp);
/* guest/threads.c: the record ends. The caller is busy. */
void rf_refusal_thread_end(struct rf_self *self);

/* guest/pthread_create.c: where a thread goes on that ends by a race which nobody caught. */
struct __jmp_buf_tag;
void rf_refusal_last(struct rf_self *self, struct __jmp_buf_tag *place);

#endif
