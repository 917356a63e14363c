/* What does not fit into a word: sets of moments (read maps), records of the slices of a granule, and lanes (guest/lanes.h).
 *
 * 1. Units are numbered; a word names one in 27 bits. They are taken, changed and given back under the lock of the granule's stripe,
 *    and each stripe has its own free ones: nobody else ever touches them.
 * 2. Without the lock a thread may look whether a unit holds a moment of its own present epoch. Units stay mapped and keep their kind,
 *    so it reads no foreign memory; and it believes what it saw only if the word still names the unit afterwards. Nobody but the
 *    thread itself makes its moments appear for a granule where they did not hold, so what it then saw was true, byte for byte, at
 *    some time during the look, even if the record was written anew meanwhile. What remains: between the two looks at the word the
 *    unit went to another granule of the stripe, which the thread has accessed in the same epoch and in the same bytes, and came
 *    back to the first. That takes two threads a dozen instructions each, while this one does not run for that long in the midst
 *    of its own; then one access is not recorded.
 * 3. Hooks look at all of `few`, whatever the count is. What lies there is 0, a moment of the set, or one that was in it since the last
 *    sweep: of a thread that looks for its own, of its present epoch, the second or nothing. A sweep, after which moments' names mean
 *    something else, puts the present ones there (rf_readers_unsettle).
 * 4. A read map that a word names has a lock of its own, for AccuLock, whose threads each replace their entry again and again: who has that
 *    lock and then finds that the word still names the map may replace or add an entry where there is room, and do no more. Whoever
 *    has the stripe's lock takes the map's, too, before he looks at the map of a word or puts another word there
 *    (rf_word_hold). The lock stays what it is while the unit is free, or goes to another granule: who took it too late gives it back.
 */
#ifndef RF_GUEST_UNITS_H
#define RF_GUEST_UNITS_H

#include "guest/moments.h"
#include "guest/spin.h"

#define RF_FEW 4u
#define RF_MANY_LIMIT 15000u /* so many of a set's moments are looked at without the lock, and no more */

struct rf_readers {
    uint32_t count;
    uint8_t is_many;
    uint8_t lock;    /* invariant 4 */
    uint16_t passes; /* AccuLock: reads with this set of locks have one in common with the write before; 0: not known. Under a lock of 4 */
    uint32_t few[RF_FEW];
    uint32_t *many; /* [0]: how many there is room for; the moments follow */
};

_Static_assert(sizeof(struct rf_readers) == 32 && offsetof(struct rf_readers, few) == RF_READERS_FEW && RF_FEW == 4, "hooks.S");

#define RF_RECORD_FEW 4u
#define RF_RECORD_MOST 16u /* eight bytes, a plain and an atomic history each */

struct rf_stripe {
    uint32_t lock;
    uint32_t free_readers, next_readers, end_readers;
    uint32_t free_few, next_few, end_few;
    uint32_t free_most, next_most, end_most;
    uint32_t free_lanes, next_lanes, end_lanes;
    uint32_t pad[3];
};

#define RF_STRIPES 256u
extern struct rf_stripe rf_stripes[RF_STRIPES] RF_OURS;

/* Neighbours have one stripe, so that their units come to lie side by side, as they do themselves. */
static inline struct rf_stripe *rf_stripe_of(const uint64_t *word)
{
    uintptr_t at = (uintptr_t)word;
    return &rf_stripes[(at >> 9 ^ at >> 17 ^ at >> 25) % RF_STRIPES];
}

static inline struct rf_readers *rf_readers_at(uint32_t number)
{
    return (struct rf_readers *)RF_READERS + number;
}

static inline uint64_t *rf_record_at(uint32_t number, unsigned count)
{
    return count > RF_RECORD_FEW ? (uint64_t *)RF_LRECORDS + (uint64_t)number * RF_RECORD_MOST
                                 : (uint64_t *)RF_RECORDS + (uint64_t)number * RF_RECORD_FEW;
}

/* By its name: RF_LANES_FIRST and its number. */
static inline uint64_t *rf_lane_at(uint32_t name)
{
    return (uint64_t *)(RF_LANES - ((uint64_t)RF_LANES_FIRST << RF_LANES_BITS) + ((uint64_t)name << RF_LANES_BITS));
}

static inline bool rf_readers_try_lock(struct rf_readers *readers)
{
    return !__atomic_exchange_n(&readers->lock, 1, __ATOMIC_ACQUIRE);
}

static inline void rf_readers_unlock(struct rf_readers *readers)
{
    __atomic_store_n(&readers->lock, 0, __ATOMIC_RELEASE);
}

void rf_readers_lock(struct rf_readers *readers);
uint32_t rf_readers_new(struct rf_stripe *stripe);
void rf_readers_end(struct rf_stripe *stripe, uint32_t number);
void rf_readers_add(uint32_t number, uint32_t moment);
void rf_readers_remove(uint32_t number, uint32_t index);
uint32_t rf_record_new(struct rf_stripe *stripe, unsigned count);
void rf_record_end(struct rf_stripe *stripe, uint32_t number, unsigned count);
uint32_t rf_lane_new(struct rf_stripe *stripe); /* its name; 0: there are none left */
void rf_lane_end(struct rf_stripe *stripe, uint32_t name);

static inline uint32_t *rf_readers_list(struct rf_readers *readers)
{
    return readers->is_many ? readers->many + 1 : readers->few;
}

/* For guest/fib.c: the first moments of a long list, where their threads replace them (0: none), and back. */
static inline void rf_readers_unsettle(uint32_t number)
{
    struct rf_readers *readers = rf_readers_at(number);
    for (uint32_t i = 0; readers->is_many && i < RF_FEW; i++)
        readers->few[i] = i < readers->count ? readers->many[1 + i] : 0;
}

static inline void rf_readers_settle(uint32_t number)
{
    struct rf_readers *readers = rf_readers_at(number);
    for (uint32_t i = 0; readers->is_many && i < RF_FEW; i++)
        if (readers->few[i])
            readers->many[1 + i] = readers->few[i];
}

#endif
