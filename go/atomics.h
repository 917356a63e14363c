/* Atomic operations: those of package sync/atomic, which are done here, and order goroutines.
 *
 * 1. The operation is done while the object at its address is locked: what it acquires and releases is in the order of the operations.
 * 2. One that succeeds acquires and releases; one that only looks acquires. What it races with are plain accesses (objects.h, 2).
 */
#ifndef RF_GO_ATOMICS_H
#define RF_GO_ATOMICS_H

#include "go/accesses.h"
#include "go/detectors.h"
#include "go/objects.h"

struct atomic {
    struct step step;
    struct cell *cell;
    struct object *object;
    uint32_t *lock;
    uintptr_t addr, call;
    bool locks; /* it takes a mutex */
    bool done;  /* nothing is to be looked at: only the operation is done */
};

/* Go code calls sync/atomic through wrappers, which pass arguments on the stack: `call` is in one, and where its own caller goes on lies
 * behind the arguments and a saved register. Other callers are their own; what lies there means nothing then, but is there. */
static inline uintptr_t behind_arguments(const void *arguments, size_t size)
{
    uintptr_t caller;
    memcpy(&caller, (const char *)arguments + size + sizeof caller, sizeof caller);
    return caller;
}

static inline uintptr_t atomic_caller(uintptr_t call, uintptr_t caller)
{
    return caller_at(call) == CALLER_WRAPPER ? caller : call;
}

static __attribute__((noinline)) const struct site *site_asked(struct goroutine *g, struct site *site, struct site is,
                                                               uintptr_t pc)
{
    uintptr_t caller = atomic_caller(is.call, is.caller);
    is.note = note_again(g, pc, note_of_call(g, caller));
    is.locks = caller_at(caller) == CALLER_LOCKS;
    *site = is;
    return site;
}

/* cli/go_fast.c does the same. */
INLINE const struct site *site_here(struct goroutine *g, uintptr_t call, uintptr_t caller, uintptr_t pc)
{
    const struct frame *top = g->top;
    struct site is = { .caller = caller, .call = call };
    if (top > g->frames)
        is.below = top[-1].note;
    if (!is.below && top - 1 > g->frames) {
        is.frame = top[-1].pc;
        is.below = top[-2].note;
    }
    uintptr_t hash = caller ^ is.frame;
    struct site *site = &g->sites[(hash ^ hash >> 4) % SITES];
    bool again =
        site->caller == caller && site->call == call && site->frame == is.frame && site->below == is.below && is.below;
    return __builtin_expect(again, 1) ? site : site_asked(g, site, is, pc);
}

INLINE void atomic_begin(struct atomic *a, struct goroutine *g, uintptr_t call, uintptr_t caller, uintptr_t pc,
                         uintptr_t addr, unsigned size, bool writes)
{
    a->done = !g || g->ignore;
    a->locks = false;
    if (others_listen()) {
        a->call = atomic_caller(call, caller);
        a->locks = caller_at(a->call) == CALLER_LOCKS;
        a->done = !g || others_lock_function(g, a->call, addr) || g->ignore;
    }
    if (a->done)
        return;
    epoch_room(g);
    a->addr = addr;
    a->cell = cell_of(addr);
    __builtin_prefetch(a->cell); /* on their way while the object is locked */
    if (writes)
        prefetch_to_write((const void *)addr);
    a->step.g = g;
    a->step.now = g->now;
    a->step.race = 0;
    if (!others_listen()) {
        const struct site *site = site_here(g, call, caller, pc);
        a->step.note = site->note;
        a->locks = site->locks;
    }
    g->used = true;
    a->object = object_lock(a->cell, addr, &a->lock);
    a->object->size = (uint8_t)size;
}

INLINE void atomic_end(struct atomic *a, bool write, bool acquire, bool release)
{
    if (a->done)
        return;
    struct goroutine *g = a->step.g;
    if (others_listen()) {
        others_atomic(g, a->addr, acquire, release);
        spin_unlock(a->lock);
        others_access(g, a->addr, a->object->size, a->call, RF_A_ATOMIC | (write ? RF_A_WRITE : 0));
        return;
    }
    a->step.write = write;
    step_against_plain(&a->step, a->cell, ((1u << a->object->size) - 1) << a->addr % RF_GRANULE & 0xff);
    if (acquire)
        object_acquire(g, a->object);
    a->step.now = g->now;
    g->used = true; /* of this epoch, which may have begun with what was learned: the stamp names it */
    object_stamp(&a->step, a->object);
    if (release)
        object_release(g, a->object);
    spin_unlock(a->lock);
    if (__builtin_expect(a->step.race != 0, 0))
        race_found(&a->step, (a->addr & ~(uintptr_t)7) + a->step.race_byte);
}

/* A mutex that was taken acquires only: what its owner did before is handed on when it is given back.
 *
 * The arguments of a function of sync/atomic, as they lie on its caller's stack, results included. */
#define ATOMICS(bits)                                                                                                       \
    struct atomic_load##bits {                                                                                              \
        uint##bits##_t *addr, result;                                                                                       \
    };                                                                                                                      \
    struct atomic_change##bits {                                                                                            \
        uint##bits##_t *addr, value;                                                                                        \
        uint##bits##_t result __attribute__((aligned(8)));                                                                  \
    };                                                                                                                      \
    struct atomic_swap##bits {                                                                                              \
        uint##bits##_t *addr, old, new;                                                                                     \
        uint8_t result __attribute__((aligned(8)));                                                                         \
    };                                                                                                                      \
    void __tsan_go_atomic##bits##_load(struct goroutine *, uintptr_t, uintptr_t, struct atomic_load##bits *);               \
    void __tsan_go_atomic##bits##_load(struct goroutine *g, uintptr_t call, uintptr_t pc, struct atomic_load##bits *x)      \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        atomic_begin(&a, g, call, behind_arguments(x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, false);                 \
        x->result = __atomic_load_n(x->addr, __ATOMIC_SEQ_CST);                                                             \
        atomic_end(&a, false, true, false);                                                                                 \
    }                                                                                                                       \
    void __tsan_go_atomic##bits##_store(struct goroutine *, uintptr_t, uintptr_t, struct atomic_load##bits *);              \
    void __tsan_go_atomic##bits##_store(struct goroutine *g, uintptr_t call, uintptr_t pc, struct atomic_load##bits *x)     \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        atomic_begin(&a, g, call, behind_arguments(x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, true);                  \
        __atomic_store_n(x->addr, x->result, __ATOMIC_SEQ_CST);                                                             \
        atomic_end(&a, true, false, true);                                                                                  \
    }                                                                                                                       \
    void __tsan_go_atomic##bits##_exchange(struct goroutine *, uintptr_t, uintptr_t, struct atomic_change##bits *);         \
    void __tsan_go_atomic##bits##_exchange(struct goroutine *g, uintptr_t call, uintptr_t pc,                               \
                                           struct atomic_change##bits *x)                                                   \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        atomic_begin(&a, g, call, behind_arguments(x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, true);                  \
        x->result = __atomic_exchange_n(x->addr, x->value, __ATOMIC_SEQ_CST);                                               \
        atomic_end(&a, true, true, true);                                                                                   \
    }                                                                                                                       \
    void __tsan_go_atomic##bits##_fetch_add(struct goroutine *, uintptr_t, uintptr_t, struct atomic_change##bits *);        \
    void __tsan_go_atomic##bits##_fetch_add(struct goroutine *g, uintptr_t call, uintptr_t pc,                              \
                                            struct atomic_change##bits *x)                                                  \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        atomic_begin(&a, g, call, behind_arguments(x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, true);                  \
        x->result = __atomic_fetch_add(x->addr, x->value, __ATOMIC_SEQ_CST);                                                \
        atomic_end(&a, true, true, true);                                                                                   \
    }                                                                                                                       \
    void __tsan_go_atomic##bits##_compare_exchange(struct goroutine *, uintptr_t, uintptr_t, struct atomic_swap##bits *);   \
    void __tsan_go_atomic##bits##_compare_exchange(struct goroutine *g, uintptr_t call, uintptr_t pc,                       \
                                                   struct atomic_swap##bits *x)                                             \
    {                                                                                                                       \
        struct atomic a;                                                                                                    \
        uint##bits##_t old = x->old;                                                                                        \
        atomic_begin(&a, g, call, behind_arguments(x, sizeof *x), pc, (uintptr_t)x->addr, bits / 8, true);                  \
        if (a.locks) /* what it protects is likely to lie behind it */                                                      \
            prefetch_to_write(cell_of((uintptr_t)x->addr + RF_GRANULE));                                                    \
        bool done = __atomic_compare_exchange_n(x->addr, &old, x->new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
        x->result = done;                                                                                                   \
        atomic_end(&a, done, true, done && !a.locks);                                                                       \
    }

ATOMICS(32)
ATOMICS(64)

#endif
