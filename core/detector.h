/* What a detector is made of, what it is told, and what it answers.
 *
 * A detector is one header in detect/ with a prefix of its own, here X. It defines, all static inline:
 *
 *   struct X;                      the engine's state; its first member is `struct rf_engine engine`
 *   struct X_thread;               what it knows of one thread; its first member is the thread's index, `uint32_t index`
 *   struct X_cell;                 what it knows of one variable; all zero means "never accessed"
 *   void X_init(struct X *)        engine.memory and engine.options are set, everything else is zero
 *   struct X_thread *X_thread_at(struct X *, uint32_t thread)       made on first use; the pointer stays valid
 *   bool X_read(struct X *, struct X_thread *, struct X_cell *, uint32_t site, uint32_t note)
 *   bool X_write(...)              the same; true: this access races, and engine.first says with what
 *   void X_sync(struct X *, struct X_thread *, const struct rf_event *)
 *                                  every event of kind SYNC (core/ops.def). COMMIT comes before the accesses of its
 *                                  transaction, which follow it in memory (event[1] ... event[event->size])
 *   void X_commit_end(struct X *, struct X_thread *, const struct rf_event *)   after them, with the same event
 *   void X_copy(struct X *, struct X_cell *to, const struct X_cell *from)   `to` is cleared; records must not be shared
 *   void X_clear(struct X *, struct X_cell *)                       back to "never accessed", records given back
 *   void X_statistics(const struct X *, rf_statistic_fn *, void *)
 *   const struct rf_locksets *X_locksets(const struct X *)          NULL if it keeps no locks
 *   rf_lockset X_held(const struct X_thread *, bool write)          what protects an access now; RF_ALL_LOCKS: not kept
 *   bool X_must_widen(const struct X *)                             false, unless it has narrow and wide cells:
 *
 * such a detector has its cell functions twice, with prefix X for narrow cells and a second one, W, for wide ones, and
 *   void X_widen(struct W_cell *, const struct X_cell *)            the wide form of a narrow cell
 *   void X_widened(struct X *)                                      all cells have it now
 *   bool W_must_widen(const struct X *)                             false
 *
 * It has one line in detect/list.def and an instance in replay/detectors/. The rules:
 * 1. It only decides: it never locks, prints, calls libc's malloc, or asks whether it runs online or offline.
 * 2. A race does not end it: after reporting, it goes on as if the access had been allowed.
 * 3. A note is 32 bits by which the driver finds the access again; a detector keeps notes beside epochs and hands them back.
 */
#ifndef RF_CORE_DETECTOR_H
#define RF_CORE_DETECTOR_H

#include "core/event.h"
#include "core/lockset.h"
#include "core/memory.h"
#include "core/race.h"

enum rf_transactions {
    RF_TXN_SHARED, /* commits that share a variable are ordered (the default; Goldilocks, section 3) */
    RF_TXN_ALL,    /* all commits are ordered: every edge of the atomic order */
    RF_TXN_WRITES  /* commit(R, W) is ordered before commit(R', W') if W and R' share a variable */
};

struct rf_options {
    bool volatile_as_lock; /* AccuLock, section 3.1: volatile accesses do not order */
    enum rf_transactions transactions;
    uint32_t slot_limit, time_limit; /* of narrow epochs; 0: as many as fit. Tests make them tiny */
    double rate;                     /* pacer: -1 takes the periods from the trace */
    uint64_t seed;                   /* of every random choice */
    uint32_t period;                 /* pacer: events a sampling decision lasts */
    uint32_t burst;                  /* literace: accesses a burst lasts */
    uint32_t event_list;             /* goldilocks: the event list is trimmed above this length; 0: the default */
    bool eager;                      /* goldilocks: Figure 5 as it stands, for tests */
    bool full;                       /* litehb: FullHB, which always tracks */
    bool certainty;                  /* detect/certainty.h: say of a race whether it is one of this execution */
    uint32_t (*site_class)(void *, uint32_t site);  /* litehb: bit 0: the first of the pair, bit 1: the second */
    uint32_t (*function_of)(void *, uint32_t site); /* literace: the function that a site belongs to */
    void *names;                                    /* what the two are called with */
};

/* The address of a SAMPLE_BEGIN or SAMPLE_END that the sampler made; those of a trace have 0. */
#define RF_FROM_SAMPLER UINT64_MAX

/* The earlier access of a race, as far as the detector knows it. */
struct rf_side {
    uint32_t thread; /* an index; RF_UNKNOWN if the detector does not keep it */
    uint32_t note;
    uint8_t note_bits; /* how many of its lower bits are kept; 0: all 32 */
    bool known;        /* the note is meaningful */
    bool writes;
    bool predictive;  /* the two did not race in this execution as far as happens-before says; they may in another */
    rf_lockset locks; /* held at that access; RF_ALL_LOCKS if not kept */
};

struct rf_engine {
    struct rf_memory *memory;
    const struct rf_options *options;
    struct rf_side first;
    uint64_t reads, writes; /* steps so far, one a cell, counted by the driver */
    bool start_over;        /* set by X_sync: the races so far do not count (the driver drops them, and clears this) */
};

typedef void rf_statistic_fn(void *context, const char *name, uint64_t value);

#endif
