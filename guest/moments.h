/* Moments: what a history remembers of an access, in 27 bits: who (a slot), when (a time), where (a note) and with which locks.
 *
 * 1. Moments come in blocks of RF_MOMENT_BLOCK. A block belongs to one slot. In a linear one times rise with the moments; for the
 *    others, where sweeps gather what is left of sparse blocks, RF_TIMES has them.
 * 2. A thread uses one moment for all accesses of an epoch that have one note and the same locks. Inside an epoch it does not matter
 *    which of its moments came first, so an earlier one is used again when its note comes again. The locks are the moment's, not
 *    the note's: a program has so many places, but places times locks are without number.
 * 3. The clock's own entry is the time of the thread's newest moment. Publishing a clock therefore needs no tick: the next moment
 *    has a greater time than all that was published (rf_epoch_begin).
 * 4. Times never wrap: before they would, the thread goes on under a fresh slot (core/order.h, 3). Moments are used again after a
 *    sweep has found that no history names them (guest/sweep.c).
 */
#ifndef RF_GUEST_MOMENTS_H
#define RF_GUEST_MOMENTS_H

#include "guest/planes.h"
#include "guest/self.h"

#ifndef RF_MOMENT_BLOCK_BITS
#define RF_MOMENT_BLOCK_BITS 12
#endif
#define RF_MOMENT_BLOCK (1u << RF_MOMENT_BLOCK_BITS)
#define RF_MOMENT_BLOCKS (1u << (RF_MOMENT_BITS - RF_MOMENT_BLOCK_BITS))

struct rf_moment_block {
    uint32_t slot;
    uint32_t first; /* the time of its moment 0, less than 2^32 past any; RF_NOT_LINEAR: see RF_TIMES; RF_PAIRS: guest/cells.h, from RF_PAIRS_FIRST on */
};

#define RF_NOT_LINEAR UINT32_MAX
#define RF_PAIRS (UINT32_MAX - 1) /* the slot, too: nobody has it */

/* Written by the thread that takes the block, before a moment of it is in any history; read by all. */
extern struct rf_moment_block rf_moment_blocks[RF_MOMENT_BLOCKS] RF_OURS;

static inline __attribute__((always_inline)) uint32_t rf_moment_slot(uint32_t moment)
{
    return rf_moment_blocks[moment >> RF_MOMENT_BLOCK_BITS].slot;
}

static inline __attribute__((always_inline)) uint32_t rf_moment_time(uint32_t moment)
{
    uint32_t first = rf_moment_blocks[moment >> RF_MOMENT_BLOCK_BITS].first;
    return first == RF_NOT_LINEAR ? ((const uint32_t *)RF_TIMES)[moment] : first + moment % RF_MOMENT_BLOCK;
}

struct rf_noted {
    uint32_t note;
    uint32_t locks; /* guest/locks.h; with AL_SEVERAL see guest/accu.h, 3 */
};

static inline uint32_t rf_moment_note(uint32_t moment)
{
    return ((const struct rf_noted *)RF_NOTES)[moment].note;
}

static inline uint32_t rf_moment_locks(uint32_t moment)
{
    return ((const struct rf_noted *)RF_NOTES)[moment].locks;
}

/* Accesses that went unrecorded since all moments were in use: a number for the end of the run. */
extern uint64_t rf_moments_lost;

/* The moment of an access here and now; 0: there is none left. */
uint32_t rf_moment_now(struct rf_self *self, uintptr_t pc, unsigned flags, size_t size);

/* Places of one function lie side by side, as they are come to one after the other: most of what it costs to find one is its line of the
 * cache. */
static inline struct rf_cached_moment *rf_moment_cached(struct rf_self *self, uint64_t what, uint64_t below)
{
    uint64_t mixed = below * UINT64_C(0x9e3779b97f4a7c15);
    return &self->moments[((mixed >> 32) + (what >> 3)) & self->moments_mask];
}

/* Is the moment one of the thread's present epoch? */
static inline bool rf_moment_is_now(const struct rf_self *self, uint32_t moment)
{
    return moment && rf_moment_slot(moment) == self->thread.slot && rf_moment_time(moment) >= self->epoch_time;
}

/* It is of the block that the thread takes its moments from: its own, of whatever epoch. */
static inline __attribute__((always_inline)) bool rf_moment_is_own(const struct rf_self *self, uint32_t moment)
{
    return !((moment ^ (self->block_end - 1)) >> RF_MOMENT_BLOCK_BITS);
}

/* Is it one of the calling thread's present epoch, in a few instructions. Those that lie in another block than its newest are taken for old,
 * which costs a step and is never wrong. */
static inline bool rf_moment_is_hot(uint32_t moment)
{
    return moment - rf_hot.first < rf_hot.span;
}

/* Whether the next one needs another block, or another slot: the slot may have been changed by someone else (a time that ran out at a
 * release). */
static inline bool rf_moment_is_last(const struct rf_self *self)
{
    return self->next_moment == self->block_end || self->block_slot != self->thread.slot ||
           self->thread.clock.times[self->thread.slot] >= self->order.time_limit;
}

static inline void rf_last_steps_end(struct rf_self *self)
{
    for (unsigned i = 0; i < RF_LAST_STEPS; i++)
        self->last_steps[i].pc = 0;
    self->ordered_cell = 0;
}

/* There is one left, and hooks look at it: not rf_policy_no_hot (guest/policy.h). */
static inline __attribute__((always_inline)) uint32_t rf_moment_take_hot(struct rf_self *self, uint32_t note, uint32_t locks)
{
    uint32_t moment = self->next_moment;
    self->next_moment = moment + 1;
    self->thread.clock.times[self->thread.slot]++;
    ((struct rf_noted *)RF_NOTES)[moment] = (struct rf_noted){ note, locks };
    rf_hot.span = moment + 1 - (uint32_t)rf_hot.first;
    return moment;
}

static inline uint32_t rf_moment_take(struct rf_self *self, uint32_t note, uint32_t locks)
{
    extern bool rf_policy_no_hot RF_OURS;
    uint32_t moment = rf_moment_take_hot(self, note, locks);
    if (__builtin_expect(rf_policy_no_hot, 0))
        rf_hot.span = 0;
    return moment;
}

/* The moment of an access if it is at hand: the place is known. 0: ask rf_moment_now(). */
static inline uint32_t rf_moment_at_hand(struct rf_self *self, uint64_t key)
{
    uint32_t node = rf_hot.top > self->frames ? rf_hot.top[-1].node : 0;
    struct rf_cached_moment *cached = rf_moment_cached(self, key, node);
    if (__builtin_expect(!node || cached->what != key || cached->below != node, 0))
        return 0;
    if (cached->moment - rf_hot.first < rf_hot.span && rf_moment_locks(cached->moment) == self->locks)
        return cached->moment;
    if (__builtin_expect(rf_moment_is_last(self), 0))
        return 0;
    return cached->moment = rf_moment_take(self, cached->note, self->locks);
}

/* A moment of the present epoch for a note that was made earlier, and these locks. */
uint32_t rf_moment_for(struct rf_self *self, uint32_t note, uint32_t locks);

/* The note that it would have; and one that has the locks, too, for those who keep no moment. */
uint32_t rf_moment_place(struct rf_self *self, uintptr_t pc, unsigned flags, size_t size);
uint32_t rf_moment_note_here(struct rf_self *self, uintptr_t pc, unsigned flags, size_t size);

/* What to keep of an access whose moment is `moment` where a word has `kept`: the locks, too, if they are not the same. */
uint32_t rf_moment_note_beside(uint32_t moment, uint32_t kept);

void rf_moments_thread_end(struct rf_self *self); /* its memory; the caller is busy */

/* For sweeps, the world stopped. */
void rf_moments_free(uint32_t block);
bool rf_moments_in_use(uint32_t block);
uint32_t rf_moments_take(bool pairs);    /* a block; 0 if there is none */
void rf_moments_limit(uint32_t kept);    /* so many are in use after a sweep: when the next one is due, and what memory it takes */

#endif
