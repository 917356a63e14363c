/* A thread as the guest knows it. */
#ifndef RF_GUEST_SELF_H
#define RF_GUEST_SELF_H

#include <stdbool.h>

#include "core/order.h"
#include "guest/hot.h"

/* What was last noted for a place in the program (guest/depot.h, 3), and the moment that it last had: of the present epoch, or not. */
struct rf_cached_moment {
    uint64_t what, below;
    uint32_t note, moment;
};
#define RF_MOMENT_CACHE 128u       /* of a thread that begins, */
#define RF_MOMENT_CACHE_MOST 4096u /* and of one that is in many places */

/* The node of a stack, found by that of the stack below its last frames (guest/depot.c). */
struct rf_known_node {
    uint64_t pcs; /* of those frames; 0: none */
    uint32_t below, node;
};
#define RF_KNOWN_NODES 256u       /* of a thread that has asked so often, */
#define RF_KNOWN_NODES_MOST 4096u /* and of one that has many stacks */

/* A step that made one word of another, for an access of the present epoch from this place with these locks: it makes the same of every
 * equal word, and a loop over memory meets many. And if the word that it made is met again with other bytes in M, this access adds its own:
 * it has the same moment, and what the other bytes had before is ordered (rf_word_join). What the thread learns meanwhile changes
 * nothing: all was ordered already, or, for AccuLock, had locks in common; if it is a race that AccuLock has told, it is one until the
 * thread learns that the two are ordered. Only the thread looks at it, while it is busy; sweeps, which rename moments, and each new epoch
 * end it. */
struct rf_last_step {
    uint64_t old, next;
    uintptr_t pc; /* 0: none */
    const struct rf_frame *top;
    uint32_t node, locks;
    uint32_t how;   /* size, flags and offset in the granule */
    uint32_t first; /* rf_hot.first of its epoch */
    uint32_t race;  /* AccuLock: the moment that it races with, which was told; 0: none */
    uint32_t pad[3]; /* found by a shift */
};
#define RF_LAST_STEPS_BITS 5
#define RF_LAST_STEPS (1u << RF_LAST_STEPS_BITS) /* found by the place */

#define RF_TRANSITION_KINDS 9

/* A race that was told, by its notes, and the bytes and kind of the earlier access. */
struct rf_told {
    uint64_t notes;
    uint32_t how;
};
#define RF_TOLD 64u

struct rf_self {
    /* Happens-before: clock, slot, time. Written by the thread; by its creator before it runs, by its joiner after it has ended.
     * The clock's own entry is the time of the newest moment. */
    _Alignas(64) struct rf_thread thread;
    struct rf_cached_moment *moments; /* guest/moments.c: found by what they are; NULL until it has frames */
    struct rf_frame *frames;          /* the stack of frames, frames_end - frames of them */

    /* From the beginning up to the steps: what an access asks for that does not repeat another, in two lines of the cache. */

    /* 1: the thread changes histories or clocks now, so nobody may stop the world. Written by the thread, read by stoppers. */
    uint32_t busy;
    /* 1: a signal came while the thread was busy; rf_busy_end() calls rf_signals_deliver() (guest/signals.c). Written by the thread
     * and its signal handlers. */
    uint32_t pending_signals;
    uint32_t inside; /* > 0: inside the guest or a function that is not looked at: hooks and interceptors only do their job */
    uint32_t ignore_reads, ignore_writes; /* > 0: switched off by annotations, */
    uint32_t in_txn; /* 1: accesses are collected, not looked at (guest/transactions.h) */
    uint32_t locks;  /* the set of locks held now (guest/locks.h): RF_NO_LOCKS ... */
    /* guest/moments.c */
    uint32_t next_moment, block_end;  /* the free ones of its block */
    uint32_t block_slot;              /* whose slot the block is of */
    uint32_t epoch_time;              /* the epoch's moments have times from here on */
    uint32_t moments_mask;            /* how many are in `moments`, less one */
    uint32_t moments_missed;          /* how often one was not there, since they became so many */
    uint32_t noted_moment;            /* the last one of rf_moment_for() */
    uint32_t ignore_sync;             /* as the others above */
    uint32_t fenced;                  /* 1: guest/atomics.c, 2: a release fence was executed */
    struct rf_last_step last_steps[RF_LAST_STEPS]; /* guest/slow_access.c */

    struct rf_thread published; /* guest/accu.c: what its locks hand on */
    struct rf_order order;   /* what core/order.h needs to know, for this thread alone: limits, and its memory */
    struct rf_engine engine;
    struct rf_memory memory; /* the thread's own: no lock. What is left at its end goes to guest/memory.c */
    uint32_t system; /* > 0: in a section of the runtime system (guest/embed.c); it is ignored, or told with a mark (guest/tap.h, 6) */
    bool wants_sweep;
    uint64_t ordered_cell;                         /* guest/accu_units.c: what succeeds it does so again in the thread's epoch, */
    uint64_t ordered_first;                        /* ... whose rf_hot.first is this */
    struct rf_known_node *nodes;      /* NULL: it has not asked for RF_KNOWN_NODES yet, */
    uint32_t nodes_mask;              /* how many, less one */
    uint32_t nodes_missed;            /* how often it asked, or one was not there since they became so many */
    struct rf_nearby *nearby;         /* guest/nearby.h; NULL: none yet */
    uint64_t stamp;                   /* rf_hot.stamp of a fiber that is not running */
    uint64_t *seen;                   /* guest/hot.h, 4; NULL until it has frames */
    uintptr_t stored_at;  /* guest/escape.h, 3: where the thread is storing, or has last stored, */
    size_t stored_size;   /* ... and how much; 0: that was looked at */
    bool stack_escaped;   /* guest/escape.h, 4. Written by the thread */
    uintptr_t own_stack;  /* its stack while nobody else knows an address there: where it begins, */
    size_t own_size;      /* ... and how large it is; 0: not looked for yet, or not its own. Written by the thread */
    uint64_t transitions[RF_TRANSITION_KINDS]; /* guest/policy.h */

    struct rf_frame *frames_end;

    /* For reports and for whoever joins it. */
    uint32_t number;        /* 0 is the main thread; never used again for another */
    uint32_t parent;        /* who created it */
    uint32_t creation;      /* the note of where */
    int32_t tid;
    char name[16];
    bool is_fiber;          /* made by __tsan_create_fiber: no kernel thread of its own */
    struct rf_told *told;   /* guest/access.c: the last RF_ACCU_TOLD; NULL: none yet */
    uint32_t late;          /* > 0: what is told now has happened already (guest/refusal.h, 4) */
    bool has_late;          /* ... and a race was found there */
    void *threads, *locking, *atomics, *libc, *heap, *refusal, *txn; /* what these files of the guest keep of a thread */
    uint64_t *tape, *tape_end;                       /* guest/record.c: where the next event is written, and how far */
    void *online;                                    /* guest/online.c: what it keeps of the thread, */
    uint64_t version, versions, *received;           /* guest/versions.h: of the clock, */
    uint32_t version_time;                           /* ... and its own time then */
    uint32_t pacer_work, pacer_sets;                 /* guest/pacer.c: epochs, and words that were set, since it last looked */
    uint32_t races;                                  /* and how many races it found that were not told yet */

    struct rf_self *next, *previous; /* all that live, under the lock of guest/threads.c */
};

/* The calling thread; it is made known first if it must be. NULL only before the guest has started or while it ends. */
static inline struct rf_self *rf_self(void)
{
    extern struct rf_self *rf_self_attach(void); /* guest/threads.c */
    return __builtin_expect(rf_hot.self != NULL, 1) ? rf_hot.self : rf_self_attach();
}

/* Between the two the world cannot be stopped. Not nested; short; no waiting for another thread in between. guest/world.c argues why
 * the plain store and load suffice. */
extern uint32_t rf_world_stopping RF_OURS;
extern bool rf_world_fences RF_OURS;
void rf_world_wait(struct rf_self *self);
void rf_signals_deliver(void); /* guest/signals.c */

static inline void rf_busy_begin(struct rf_self *self)
{
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED);
    if (__builtin_expect(rf_world_fences, 0))
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the compiler keeps the order; rf_world_stop() sees to the processor */
    if (__builtin_expect(__atomic_load_n(&rf_world_stopping, __ATOMIC_RELAXED), 0))
        rf_world_wait(self);
}

static inline void rf_busy_end(struct rf_self *self)
{
    __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(self->pending_signals, 0)) /* one came while the thread was busy */
        rf_signals_deliver();
}

/* Waits until no other thread is busy and keeps them from becoming so: for sweeps and fork. */
void rf_world_stop(struct rf_self *self);
void rf_world_go(struct rf_self *self);
/* When it returns, every other thread of the process that runs has executed a fence, or executes its own from now on
 * (rf_world_fences). */
void rf_world_fence(void);

/* The thread's clock was published, or replaced: its next access begins a new epoch. guest/moments.c. Call after rf_thread_tick()
 * or rf_order_publish(), which tick by themselves. */
void rf_epoch_begin(struct rf_self *self);

#endif
