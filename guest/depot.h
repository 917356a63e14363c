/* Notes: 32 bits for a stack, and for an access on top of it.
 *
 * 1. An entry never changes and is never taken away, so a note can be read at any time without a lock.
 * 2. Equal things have equal notes.
 * 3. An entry is two words. A node of a stack: (return address, node below, a hash of both). An access: (pc, flags, size, node of the
 *    stack, locks). The size, which no node has, tells them apart. Locks are there only where no moment tells them (guest/moments.h, 2).
 * 4. Stacks are deep, and an entry is found by chance in memory: so a stack is cut into runs of RF_RUN frames from its bottom up, and a
 *    node may stand for a run, or for the beginning of one at the stack's top. It has the number of frames in the place of the
 *    return address, which is never that small, and is followed by theirs, two in an entry.
 */
#ifndef RF_GUEST_DEPOT_H
#define RF_GUEST_DEPOT_H

#include "guest/access.h"
#include "guest/planes.h"
#include "guest/self.h"

#define RF_PC_BITS 47
#define RF_FLAG_BITS 6
#define RF_LARGEST_SIZE 2047u
#define RF_RUN 8u

uint32_t rf_depot_put(uint64_t what, uint64_t below);

/* A note like this one that has these locks. */
uint32_t rf_note_with_locks(uint32_t note, uint32_t locks);

/* What a note stands for. That of note 0 is nothing. */
static inline bool rf_note_is(uint32_t note, uint64_t key, uint64_t below)
{
    const uint64_t *entry = (const uint64_t *)RF_DEPOT + 2 * (uint64_t)note;
    return entry[0] == key && entry[1] == below;
}

/* The node of the thread's stack as it is now. */
uint32_t rf_depot_node(struct rf_self *self);

void rf_depot_thread_end(struct rf_self *self); /* its memory; the caller is busy */

#define RF_NOTED_TXN (RF_A_VPTR | RF_A_EXTERNAL)

static inline uint64_t rf_access_key(uintptr_t pc, unsigned flags, size_t size)
{
    if (flags & RF_A_TXN)
        flags = (flags & ~(unsigned)(RF_A_TXN | RF_NOTED_TXN)) | RF_NOTED_TXN;
    uint64_t length = size < RF_LARGEST_SIZE ? size : RF_LARGEST_SIZE;
    return (pc & ((UINT64_C(1) << RF_PC_BITS) - 1)) | (uint64_t)flags << RF_PC_BITS | length << (RF_PC_BITS + RF_FLAG_BITS);
}

#endif
