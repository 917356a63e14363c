/* What the rest of the guest tells the detector about memory. All of them may be called by any thread at any time; before the guest
 * has started, or from inside the guest (guest/self.h, inside), they do nothing. `pc` is the frame #0 of a report: for an
 * interceptor its own address (guest/intercept.h), for a hook its return address.
 */
#ifndef RF_GUEST_ACCESS_H
#define RF_GUEST_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rf_self;

/* Flags of an access; they are part of its note, so that a report can say them of both sides. */
enum {
    RF_A_WRITE = 1,
    RF_A_ATOMIC = 2,   /* two atomic accesses do not race; an atomic and a plain one do */
    RF_A_VPTR = 4,     /* a vtable pointer: the report's kind is its own */
    RF_A_FREE = 8,     /* a free(), which writes all of the block */
    RF_A_EXTERNAL = 16, /* __tsan_external_*: an object of a library */
    RF_A_VOLATILE = 32,
    RF_A_TXN = 64 /* inside a transaction. A note has no bit for it: there it is VPTR and EXTERNAL, which nothing else is */
};

void rf_access(uintptr_t addr, size_t size, unsigned flags, uintptr_t pc); /* any size, any alignment, may be long */
/* It happens whatever it races with, which is not told. The caller may be busy. */
void rf_access_allowed(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);
/* Bytes of one granule, as an access that was noted earlier and counts as made now. True: it races, with that. Not busy. */
struct rf_found;
bool rf_access_noted(struct rf_self *self, uintptr_t granule, unsigned mask, unsigned flags, uint32_t note, struct rf_found *race);
void rf_slow_access(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags); /* the same for sizes up to 16 */
/* The same where size and flags are constants, 0 or RF_A_WRITE. Hooks only (guest/hooks.S). */
#define RF_SLOW_SIZES(X) X(1) X(2) X(4) X(8)
#define RF_SLOW(size)                                                                                                      \
    void rf_slow_read##size(uintptr_t addr, uintptr_t pc);                                                                 \
    void rf_slow_write##size(uintptr_t addr, uintptr_t pc);
RF_SLOW_SIZES(RF_SLOW)
#undef RF_SLOW
/* A plain access of less than two granules, by the shortest ways of these. false: nothing was done, or a part, which may be made again. */
bool rf_access_quickly(uintptr_t addr, unsigned size, unsigned flags, uintptr_t pc);
/* A range that is accessed in pieces: if all of it together would race and races are refused, that is done now, before the first. */
void rf_range_refuse(uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);
/* The same for a thread that is busy: what it races with is told, and left to the caller. guest/verdict.h */
struct rf_self;
struct rf_found;
bool rf_access_step(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc, struct rf_found *race);
static inline void rf_range_read(const void *addr, size_t size, uintptr_t pc)
{
    rf_access((uintptr_t)addr, size, 0, pc);
}
static inline void rf_range_write(const void *addr, size_t size, uintptr_t pc)
{
    rf_access((uintptr_t)addr, size, RF_A_WRITE, pc);
}

void rf_range_clear(uintptr_t addr, size_t size);              /* new memory: its history is forgotten. Large ranges give pages back */
/* New memory whose first part counts as written here, granule by granule: a block from malloc. Returns the write's note. */
uint32_t rf_range_fresh(uintptr_t addr, size_t size, size_t written, uintptr_t pc);
/* A free: a write to all of it, and so it stays till it is cleared. Returns the write's note. */
uint32_t rf_range_free(uintptr_t addr, size_t size, uintptr_t pc);
bool rf_range_touched(uintptr_t addr, size_t size); /* may any of it have a history? */
void rf_range_return(uintptr_t addr, size_t size);             /* unmapped: history and synchronisation objects are gone, pages given back */

/* The history of a range becomes that of another as well: of all bytes, whatever the two have in common, and in one step for every hook.
 * `move`: what is left of the first range has none any more. guest/move.c */
void rf_range_copy(uintptr_t from, uintptr_t to, size_t size, bool move, uintptr_t pc);

/* The note of the current thread's stack with `pc` on top: 32 bits that name (stack, flags, size, locks held) for ever. */
uint32_t rf_note_here(uintptr_t pc, unsigned flags, size_t size);
/* The return addresses of a note's stack, innermost first (pc - 1 lies in the calling instruction, except [0] when `flags` has
 * the address of an interceptor). Returns how many. Any thread, any time. */
unsigned rf_note_stack(uint32_t note, uintptr_t *pcs, unsigned max);
uint32_t rf_note_of_kind(uint32_t note, bool writes); /* the same, as a write or a read */
unsigned rf_note_flags(uint32_t note);
size_t rf_note_size(uint32_t note);
uint32_t rf_note_locks(uint32_t note); /* the set of locks held (guest/locks.h) */

#endif
