/* What a thread has accessed in its present epoch, of granules whose words do not tell it at a glance.
 *
 * 1. What the thread has accessed in its epoch it may access again, whatever the history says by now: whoever came in between found the
 *    first access there, and decided then.
 * 2. The history can have forgotten that access in the same epoch only if the thread itself cleared or freed the memory, which gives
 *    another stamp; a free by someone else comes in a later epoch, or is a race by itself. What the thread acquires may tell it that
 *    memory is new: that gives another stamp, too.
 * 3. Stamps have 12 bits. When they have all been used the table is emptied, so an entry with the present stamp is of the present
 *    epoch.
 * 4. Where histories are cleared or moved without synchronisation that is seen (guest/embed.h), nothing is kept from the first time on.
 * 5. Only the thread and its signal handlers touch the table, but for 4; an entry is one word.
 */
#ifndef RF_GUEST_SEEN_H
#define RF_GUEST_SEEN_H

#include "core/event.h"
#include "guest/access.h"
#include "guest/hot.h"

#define RF_STAMP_ONE 0x100u
#define RF_STAMPS 0xfff00u

void rf_seen_empty(void); /* guest/slow_access.c */

extern bool rf_seen_off RF_OURS; /* written with the world stopped, read by busy threads */
void rf_seen_stop(void);         /* invariant 4. The world is stopped */

/* Nothing of what was seen counts any longer, for the calling thread. */
static inline void rf_seen_forget(void)
{
    rf_hot.stamp = (rf_hot.stamp + RF_STAMP_ONE) & RF_STAMPS;
    if (__builtin_expect(!rf_hot.stamp, 0))
        rf_seen_empty();
}

static inline void rf_seen_put(uintptr_t addr, unsigned mask, unsigned flags)
{
    if (__builtin_expect(rf_seen_off, 0))
        return;
    uint64_t key = addr / RF_GRANULE << 20 | rf_hot.stamp;
    uint64_t *entry = &rf_hot.seen[addr / RF_GRANULE % RF_SEEN * 2];
    *entry = (*entry & ~UINT64_C(0xff)) == key ? *entry | mask : key | mask;
    if (flags & RF_A_WRITE) {
        entry++;
        *entry = (*entry & ~UINT64_C(0xff)) == key ? *entry | mask : key | mask;
    }
}

#endif
