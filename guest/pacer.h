/* PACER on the words of the built-in detector: within sampling periods it is FastTrack, as ever; outside of them nothing is recorded, and
 * an access is compared with what was, and discards it (detect/pacer.inc, in guest/granule.h).
 *
 * 1. rf_pacer is set before the second thread begins and never changes.
 * 2. rf_gate says whether now is a period. It is written under the lock of guest/pacer.c and read without: who sees it as it was an instant
 *    ago accesses as if it had come then. A step on a word is atomic whoever samples.
 * 3. A line is 64 bytes of memory. Its byte (rf_line) is 0 only if all of its words are, or one of them is just being set: outside of
 *    periods hooks look at the byte, a small part of what the words take, and return. Who sets a word makes the byte RF_LINE_KNOWN
 *    afterwards. Who finds all words 0 makes it RF_LINE_ASKED, which hooks take for known, has a fence, looks at the words once more, and
 *    makes it 0 only if nobody has made it RF_LINE_KNOWN meanwhile. So of the two one sees the other, and the byte of a word that
 *    has been set is never 0, not even for a moment. One thread at a time asks for a line: else it could take another's
 *    question for its own.
 * 4. Outside of periods no moment is made, so no time advances: to publish a clock again tells nobody anything new. The first access of
 *    a thread in a period has a moment, whose time is greater than all that the thread has published (guest/moments.h): the tick
 *    with which PACER begins a period (Table 5) is there by itself.
 * 5. Work is what threads hand on: each epoch that begins counts for two operations, itself and what receives it.
 * 6. What a transaction accesses orders it, in periods and outside. So from the first transaction on hooks find the gate open and take the long
 *    way, which knows whether the access is one of a transaction.
 */
#ifndef RF_GUEST_PACER_H
#define RF_GUEST_PACER_H

#include "guest/planes.h"
#include "guest/self.h"

extern bool rf_pacer RF_OURS;

enum { RF_GATE_KNOWN, RF_GATE_SAMPLING, RF_GATE_OPEN };
enum { RF_LINE_KNOWN = 1, RF_LINE_ASKED };
/* Whether there has been a period, so that something may be known; whether now is one; whether hooks are to look for themselves. */
extern uint8_t rf_gate[3] RF_OURS;

/* The options ask for pacer, and for nothing that it can only do behind the tap: there it counts (--stats), and there it refuses
 * accesses (--on-race). */
bool rf_pacer_begin(void);
/* The program is going to give up system calls: what the first period needs is done before (guest/quiet.h). */
void rf_pacer_confined(struct rf_self *self);
/* A transaction begins: invariant 6. */
void rf_pacer_opens(struct rf_self *self);
static inline void rf_pacer_transaction(struct rf_self *self)
{
    if (__builtin_expect(rf_pacer, 0))
        rf_pacer_opens(self);
}

static inline bool rf_pacer_outside(void)
{
    return rf_pacer && !__atomic_load_n(&rf_gate[RF_GATE_SAMPLING], __ATOMIC_RELAXED);
}

/* An epoch begins, in a thread that is busy: may a period end? */
void rf_pacer_work(struct rf_self *self);
/* A word was set, in a period. */
void rf_pacer_sets(struct rf_self *self, uint64_t *word);

/* Outside of periods. Is nothing known of this memory? */
bool rf_pacer_knows_nothing(uintptr_t addr, size_t size);
/* An access. The thread is busy. True: it races, with that. */
struct rf_found;
bool rf_pacer_step(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc, struct rf_found *race);
/* Its bytes of one granule. The step is one that passes. */
struct rf_step;
bool rf_pacer_granule(uint64_t *place, unsigned mask, struct rf_step *step);
/* The same and all that belongs to it, the thread not busy. */
void rf_pacer_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);

/* Words of new memory are 0 from now on: whole granules. */
void rf_pacer_clear(uint64_t *from, uint64_t *to);

#endif
