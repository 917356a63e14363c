/* Detectors inside the running program: the headers of detect/ behind the tap (guest/tap.h), in place of the built-in one.
 *
 * guest/online.c listens, guest/online.inc puts a detector together with its cells, guest/detectors/NAME.c is one line for each.
 *
 * 1. The policy is one spin lock: an engine, its cells, its clocks and its memory are touched only under it, by busy threads
 *    (guest/self.h). So steps are atomic, the order in which they are made is one in which the program could have run, and neither a
 *    signal handler nor fork() ever finds the lock taken by its own thread.
 * 2. What an object hands on is told while the object is locked, what an access does before it happens: so of two conflicting accesses
 *    the engine sees the first one first, and between two that the program orders it sees what orders them.
 * 3. A thread has one index for ever (guest/threads.h, number); its two companions (guest/tap.h, 5) get theirs with their first event.
 * 4. Notes are those of guest/depot.h: both stacks of a race, and the locks that both sides held, are in them.
 */
#ifndef RF_GUEST_ONLINE_H
#define RF_GUEST_ONLINE_H

#include "core/detector.h"
#include "guest/self.h"
#include "guest/tap.h"

/* A race, as it was found under the lock. It is told when nothing is held. */
struct rf_online_race {
    uintptr_t addr; /* what both accessed */
    uint32_t size, note;
    unsigned flags;
    struct rf_side first;
    uintptr_t second_addr; /* what the second one accessed: all of it that lies in the granule */
    uint32_t second_size;
};

#define RF_PENDING 4u /* races of one operation; of more the first ones are told */

/* One access as the engine sees it: inside one granule. */
struct rf_online_access {
    uint32_t thread; /* its index */
    uint32_t site;   /* its role in the pair (guest/pair.h), or its number (guest/online_pairs.h); 0 if the detector does not ask */
    uint32_t note;
    unsigned flags; /* guest/access.h */
};

/* What guest/online.inc makes of a detector. All but `begin` are called under the lock. */
struct rf_online {
    const char *name;
    bool repeats;    /* an access that its thread repeats may be left out: guest/online_filter.h */
    bool conditions; /* guest/tap.h */
    bool wants_site; /* it looks at one pair of sites: guest/pair.h */
    bool pairs;      /* it finds pairs of sites, perhaps several with one access: guest/online_pairs.h */
    void (*begin)(const struct rf_options *options);
    /* true: it would race; nothing changes. */
    bool (*races)(const struct rf_online_access *access, uintptr_t addr, unsigned size, struct rf_online_race *race);
    /* true: it races, and `race` says where and with what. */
    bool (*access)(const struct rf_online_access *access, uintptr_t addr, unsigned size, struct rf_online_race *race);
    void (*sync)(uint32_t thread, enum rf_op op, uint64_t key);
    void (*turn)(uint32_t thread, enum rf_op op,
                 uint32_t work); /* before an operation: may a sampling period begin or end? */
    bool has_periods;
    void (*commit)(const struct rf_event *event,
                   bool begin); /* a COMMIT with its parts behind it; the accesses come in between */
    /* ALLOC or FREE of a piece of memory that lies inside one page of the shadow. */
    bool (*memory)(const struct rf_online_access *access, enum rf_op op, uintptr_t addr, unsigned size,
                   struct rf_online_race *race);
    /* What is known of one range is known of another as well. */
    void (*copy)(uintptr_t from, uintptr_t to, size_t size);
    void (*statistics)(rf_statistic_fn *emit, void *context);
    size_t (*bytes)(void); /* of its memory */
};

/* Sets the tap, if the options ask for a detector that is not the built-in one. */
void rf_online_begin(char **environment);
/* What was found while something was held is told now. */
void rf_online_tell(struct rf_self *self);
/* At the end of the run: pairs of sites are told; statistics, for --stats. */
void rf_online_finish(struct rf_self *self);
void rf_online_statistics(void);

static inline void rf_online_flush(struct rf_self *self)
{
    if (__builtin_expect(self->races != 0, 0) && !self->busy)
        rf_online_tell(self);
}

#endif
