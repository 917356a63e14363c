/* Dynamic thread-escape analysis (Wood, section 5.4): which heap blocks only one thread can reach.
 *
 * 1. A block of the heap is private to the thread that allocated it until it escapes; then it is escaped until it is freed. All other
 *    memory (globals, mappings, stacks, blocks above 16 MB) is escaped from the start, but for what 4 says of stacks.
 * 2. A private block escapes when a pointer to it or into it is stored in escaped memory, is handed to a new thread, or was found in
 *    a block that escapes: all of this by value, in aligned words, so that a number which looks like an address keeps nothing
 *    private that is not, but may make something escape. And it escapes when another thread accesses it, however that got there.
 * 3. A hook comes before its store, and does not know the value. So the place of a store is kept, and looked at before the thread's next
 *    access is filtered, before its next release, and before it calls into libc: until then nobody who is ordered after the store
 *    can have replaced the value, and the thread has made no access that would count if the value made something escape. Atomic
 *    operations know their value, and are looked at before they happen.
 * 4. A store to the thread's own stack does not publish anything until a pointer to that stack is itself published; then all that the
 *    stack holds escapes, and the stack counts as escaped.
 * 5. The state of 16 bytes is a word of 16 bits in a table: 0 unknown, hence escaped; slot + 1 of the owner; and RF_ESCAPED with it
 *    once it has escaped, so that the history of a word that was never set has a first owner (Wood's indirect initial ownership).
 *    Written by the owner, or under the lock of the analysis; read by all.
 * 6. rf_hot.own says at once what most accesses need to know: the state that makes a block the thread's own, while nothing that it has
 *    stored is still to be looked at; 0 otherwise. The thread writes it, with what it has stored: 0 before there is something, the
 *    state after there is nothing any more, so that a signal handler never finds the state too early.
 * 7. The last large block that a thread allocated is known by its bounds as well, to Caper's hooks, for blocks that are filled when they are
 *    new: rf_fresh_blocks has a cell for each slot. While that has a size, all states of the block are the owner's. rf_hot.fresh leads there
 *    while rf_hot.own is not 0, and to an empty cell otherwise. The owner writes it, while it is busy, and then looks at the state;
 *    whoever changes the state, or frees the block, does so and then empties the cell if it has the block. Between the two steps
 *    each has a fence, so that one of them sees what the other did.
 * 8. A thread's stack is known by its bounds, too, to Caper's hooks and to functions that fill or copy memory: rf_hot.stack_size is 0, or
 *    rf_hot.own is not and the stack is the thread's own (4). The thread alone writes it, with rf_hot.own, and empties it before the stack
 *    escapes: only a thread that runs on a stack can make that escape (publish_locked() in escape.c looks at no other).
 *
 * doc/sync.md says what this misses in C, and tests/programs/escape-*.c show it.
 */
#ifndef RF_GUEST_ESCAPE_H
#define RF_GUEST_ESCAPE_H

#include "guest/access.h"
#include "guest/planes.h"
#include "guest/self.h"

#define RF_ESCAPED 0x8000u
#define RF_ESCAPE_OWN 0x10000u /* in rf_hot.own, so that no state is 0 there */
#define RF_USER_END ((uintptr_t)1 << 47) /* no address of a program is larger */
#define RF_ESCAPE_LEAF 22 /* bits of an address that a leaf of the table covers */

/* By the slot. NULL: it is not Caper that asks. */
extern struct rf_fresh *rf_fresh_blocks RF_OURS;
#define RF_FRESH_LEAST ((size_t)256)

/* The leaves: [masked address >> RF_ESCAPE_LEAF]. NULL until the analysis is switched on. */
extern uint16_t **rf_escape_leaves RF_OURS;

static inline uint16_t *rf_escape_place(uintptr_t masked)
{
    uint16_t *leaf = __atomic_load_n(&rf_escape_leaves[masked >> RF_ESCAPE_LEAF], __ATOMIC_ACQUIRE);
    return leaf ? leaf + masked % (1u << RF_ESCAPE_LEAF) / 16 : NULL;
}

/* Of an address, or of the place of its word less RF_WORDS. The analysis is on. */
static inline uint32_t rf_escape_state(uintptr_t addr)
{
    const uint16_t *place = rf_escape_place(addr & RF_ADDRESS_MASK);
    return place ? __atomic_load_n(place, __ATOMIC_RELAXED) : 0;
}

static inline uint32_t rf_escape_owner(const struct rf_self *self)
{
    return self->thread.slot + 1 < RF_ESCAPED ? self->thread.slot + 1 : RF_ESCAPED; /* RF_ESCAPED alone is nobody's */
}

/* May another thread reach it? Always, while the analysis is off. */
static inline bool rf_is_escaped(uintptr_t addr)
{
    uint32_t state = rf_escape_leaves ? rf_escape_state(addr) : 0;
    return !state || state & RF_ESCAPED;
}

/* Invariants 6 to 8: from now on nothing is known at once. */
static inline void rf_escape_look_closer(void)
{
    rf_hot.own = 0;
    rf_hot.fresh = &rf_fresh_nothing;
    rf_hot.stack_size = 0;
}

/* Invariant 8: its bounds are those that are known, if rf_hot.own is. A signal handler may make the stack escape at any time: if so before
 * the last look here, that sees it; if so after it, the handler leaves what it should. */
static inline void rf_escape_know_stack(const struct rf_self *self)
{
    rf_hot.stack = self->own_stack;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    rf_hot.stack_size = rf_hot.own ? self->own_size : 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (self->stack_escaped)
        rf_hot.stack_size = 0;
}

/* Is all of it known at once to be the thread's own, its stack or one private block? Then an access tells nothing, and a store publishes
 * nothing. A range that begins and ends in private blocks does so in one: between two there is room. */
static inline bool rf_escape_is_own(uintptr_t addr, size_t size)
{
    uint32_t own = rf_hot.own;
    if (addr - rf_hot.stack < rf_hot.stack_size && size <= rf_hot.stack_size - (addr - rf_hot.stack))
        return true;
    return own && (rf_escape_state(addr) | RF_ESCAPE_OWN) == own &&
           (addr % 16 + size <= 16 || (rf_escape_state(addr + size - 1) | RF_ESCAPE_OWN) == own);
}

/* A block is about to be freed, for Caper: is it known at once to be private to the calling thread? Then that is all there is to know, and it
 * is not the last large one any more (invariant 7: only the owner fills the cell, and that is who calls, so there is no need of a fence). */
static inline bool rf_escape_frees_own(uintptr_t block)
{
    uint32_t own = rf_hot.own;
    if (!own || (rf_escape_state(block) | RF_ESCAPE_OWN) != own)
        return false;
    struct rf_fresh *cell = &rf_fresh_blocks[(own & ~RF_ESCAPE_OWN) - 1];
    if (__atomic_load_n(&cell->at, __ATOMIC_RELAXED) == block)
        __atomic_store_n(&cell->size, 0, __ATOMIC_RELAXED);
    return true;
}

/* The thread, which calls this, has stored something there that is to be looked at; size 0: nothing. Invariant 6. */
static inline void rf_escape_keep(struct rf_self *self, uintptr_t addr, size_t size)
{
    uint32_t owner = rf_escape_owner(self);
    rf_escape_look_closer();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->stored_at = addr;
    self->stored_size = size;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!size && rf_escape_leaves && owner != RF_ESCAPED && self == rf_hot.self) {
        rf_hot.own = owner | RF_ESCAPE_OWN;
        if (rf_fresh_blocks)
            rf_hot.fresh = &rf_fresh_blocks[owner - 1];
        rf_escape_know_stack(self);
    }
}

void rf_escape_begin(void); /* the options are read */

/* An access of a busy thread. True: it is to private memory of its own, and nobody needs to look at it. */
bool rf_escape_filters(struct rf_self *self, uintptr_t addr, size_t size);

/* Is what the thread stored last no address, whatever else it is? Then there is nothing to look at any more. */
static inline bool rf_escape_stored_number(struct rf_self *self)
{
    if (!self->stored_size)
        return true;
    if (self->stored_size != sizeof(uintptr_t) || self->stored_at % sizeof(uintptr_t))
        return false;
    uintptr_t value = __atomic_load_n((const uintptr_t *)self->stored_at, __ATOMIC_RELAXED);
    return value < 4096 || value >= RF_USER_END;
}

/* Is it the thread's own stack, of which nobody else knows an address? */
bool rf_escape_own_stack(struct rf_self *self, uintptr_t addr);

/* The store hook, after the access was looked at: the program, or libc for it, is about to store there, or just has. */
static inline void rf_escape_stores(uintptr_t addr, size_t size, unsigned flags)
{
    struct rf_self *self = rf_hot.self;
    if (__builtin_expect(rf_escape_leaves != NULL, 0) && flags & RF_A_WRITE && size >= sizeof(uintptr_t) && self && !self->inside)
        rf_escape_keep(self, addr, size);
}

/* A value is about to be stored there at once. The thread is not busy. */
void rf_escape_given(struct rf_self *self, uintptr_t addr, uintptr_t value);
void rf_escape_value(struct rf_self *self, uintptr_t value); /* it is about to be known to others. The thread is not busy */
void rf_escape_flush(struct rf_self *self);                  /* invariant 3; busy or not */

/* It goes on as another thread, which may know addresses of its stack: that counts as escaped. It still runs there, and is not busy. */
void rf_escape_switched(struct rf_self *self);

/* A block of the heap is new, and its history cleared; or is about to be free. False: it is not, was not private to the thread. */
bool rf_escape_fresh(struct rf_self *self, uintptr_t addr, size_t size);
bool rf_escape_gone(struct rf_self *self, uintptr_t addr, size_t size);

/* A block is freed, or becomes another: invariant 7. */
void rf_escape_not_fresh(uintptr_t block);

#endif
