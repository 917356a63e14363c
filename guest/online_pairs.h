/* For a detector whose findings are pairs of sites (alias): sites have numbers, pairs are kept and told at the end of the run, and what
 * a thread repeats at a site is left out.
 *
 * 1. A site is a place in the program's code: the return address of a call of a hook, or of a function of libc that accesses memory for
 *    it. It gets its number, from 1 on, when it is first met. Numbers and pairs are under the lock of guest/online.c.
 * 2. A pair is told as a prediction, with the two accesses that showed it first; of what the memory was then, nothing is said at the end.
 * 3. A thread that accesses the same bytes at the same site in the same way again has nothing to tell that is new: its entry is in the
 *    cell (detect/alias.h, 3), unless the memory was made new since. So rf_repeats is the thread's own, nobody else touches it, and
 *    all of it is forgotten whenever any memory was made new (`changes` of guest/online.c): the counter moves before the thread that
 *    made it new can have told another one of it.
 */
#ifndef RF_GUEST_ONLINE_PAIRS_H
#define RF_GUEST_ONLINE_PAIRS_H

#include "guest/online.h"

#define RF_REPEATS 4096u
#define RF_REPEATS_STAMPS 4096u /* 12 bits above an address, a size and a kind */

struct rf_repeats {
    uint64_t changes; /* as many as it has heard of */
    uint64_t stamp;   /* below RF_REPEATS_STAMPS, never 0 */
    struct {
        uint64_t what, pc;
    } places[RF_REPEATS];
};

/* size: 1 to 8 bytes. */
static inline uint64_t rf_repeats_what(const struct rf_repeats *repeats, uintptr_t addr, size_t size, bool write)
{
    return repeats->stamp << 52 | (uint64_t)write << 51 | (uint64_t)(size - 1) << 48 | (addr & ((UINT64_C(1) << 48) - 1));
}

static inline unsigned rf_repeats_place(uintptr_t addr, uintptr_t pc)
{
    return (unsigned)(((addr >> 2) ^ pc * 0x9e3779b1u) % RF_REPEATS);
}

static inline bool rf_repeats_has(const struct rf_repeats *repeats, uintptr_t addr, size_t size, bool write, uintptr_t pc,
                                  uint64_t changes)
{
    unsigned at = rf_repeats_place(addr, pc);
    return repeats->changes == changes && repeats->places[at].pc == pc &&
           repeats->places[at].what == rf_repeats_what(repeats, addr, size, write);
}

/* Has it been there? From now on it has. */
static inline bool rf_repeats_known(struct rf_repeats *repeats, uintptr_t addr, size_t size, bool write, uintptr_t pc,
                                    uint64_t changes)
{
    if (__builtin_expect(repeats->changes != changes || !repeats->stamp, 0)) {
        repeats->changes = changes;
        if (++repeats->stamp == RF_REPEATS_STAMPS) {
            __builtin_memset(repeats->places, 0, sizeof repeats->places);
            repeats->stamp = 1;
        }
    }
    unsigned at = rf_repeats_place(addr, pc);
    uint64_t what = rf_repeats_what(repeats, addr, size, write);
    if (repeats->places[at].what == what && repeats->places[at].pc == pc)
        return true;
    repeats->places[at].what = what;
    repeats->places[at].pc = pc;
    return false;
}

/* All under the lock. */
uint32_t rf_pairs_site(uintptr_t pc);
void rf_pairs_keep(const struct rf_online_race *race, uint32_t thread);
void rf_pairs_drop(void); /* in the child of fork(): they are the parent's to tell */

/* All of them as lines "SITE SITE", each site as `redflag sites` names it, at the end of the file. False: they could not be written. Not
 * under the lock, which nobody needs any more. */
bool rf_pairs_write(const char *path);

/* One pair after another, in the order in which they were found; false: no more. `thread` made the second access. */
bool rf_pairs_next(uint32_t *at, struct rf_online_race *race, uint32_t *thread);

#endif
