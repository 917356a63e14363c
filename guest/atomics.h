/* Atomic operations: what their orders mean for happens-before. guest/atomics.c has the rules, guest/atomics_abi.c the entry points. */
#ifndef RF_GUEST_ATOMICS_H
#define RF_GUEST_ATOMICS_H

#include "guest/access.h"
#include "guest/refusal.h"
#include "guest/objects.h"
#include "guest/spin.h"

struct rf_report_side;

/* One atomic operation of the calling thread. */
struct rf_atomic {
    struct rf_self *self;
    struct rf_object *object; /* between rf_atomic_open() and the rule that closes it: locked */
    uintptr_t addr, pc;
    size_t size;
    bool acquires, releases;
    bool publishes; /* it releases, or hands on what a release fence before it has released */
    bool silent;    /* orders nothing: the thread ignores synchronisation */
    bool within;    /* it is checked between what it receives and what it publishes */
};

/* The thread for which there is something to do; NULL: only the operation itself is. */
struct rf_self *rf_atomic_self(void);
struct rf_atomic rf_atomic_begin(struct rf_self *self, const volatile void *addr, size_t size, int order, uintptr_t pc);
bool rf_atomic_acquires(int order);
bool rf_atomic_releases(int order);

/* What there is to think of besides happens-before and FastTrack's history: nothing, in any thread, from the start on. Written before the
 * second thread begins. */
extern bool rf_atomics_straight RF_OURS;
void rf_atomics_begin(void); /* everything else has begun */

/* ... nor in this one, now. */
static inline __attribute__((always_inline)) bool rf_atomic_is_straight(const struct rf_self *self)
{
    return __builtin_expect(rf_atomics_straight && self, 1) &&
           __builtin_expect(!(self->inside | self->busy | self->ignore_reads | self->ignore_writes | self->ignore_sync), 1);
}

/* A relaxed operation on a location through which nobody has published, by a thread that has published nothing by a fence: it is an access,
 * and no more. The value was read before (guest/atomics.c, 4). */
static inline __attribute__((always_inline)) bool rf_atomic_is_lone(const struct rf_self *self, const volatile void *addr, int order)
{
    return !(order & 7) && rf_atomic_is_straight(self) && !self->fenced && rf_object_is_nowhere((uintptr_t)addr);
}

/* ... which is looked at after it was done. */
void rf_atomic_lone_read(struct rf_self *self, uintptr_t addr, size_t size, uintptr_t pc);
void rf_atomic_lone_write(struct rf_self *self, uintptr_t addr, size_t size, uintptr_t pc);

/* Locks the location's object and says true; false if there is none and none is made. */
bool rf_atomic_open_slowly(struct rf_atomic *op, bool make);

static inline bool rf_atomic_open(struct rf_atomic *op, bool make)
{
    return !op->silent && (make || rf_object_exists(op->addr)) && rf_atomic_open_slowly(op, make);
}

/* What an operation that writes is going to change comes into this core's cache at once, not piece by piece: others may be waiting. */
static inline void rf_atomic_fetch(const struct rf_atomic *op)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)op->addr));
    __asm__ volatile("prefetchw %0" : : "m"(*rf_word(op->addr)));
    __asm__ volatile("prefetchw %0" : : "m"(*op->object->few));
}

/* The rules. Each unlocks the object. */
void rf_atomic_read(struct rf_atomic *op, bool acquires);
void rf_atomic_written(struct rf_atomic *op);
void rf_atomic_updated(struct rf_atomic *op);
void rf_atomic_close(struct rf_atomic *op); /* nothing was done */

/* The quick way of an update that acquires and releases, on a location that others have published through: it meets the object (NULL: go
 * the other way), the value is read, and if the object can be locked then, the operation follows, and what it means, which unlocks it. */
void rf_atomic_quick_updated(struct rf_self *self, struct rf_object *object, uintptr_t addr, size_t size, uintptr_t pc);

/* Somebody is at the location. When it returns, he has left it; somebody else may have come. */
void rf_atomic_wait(struct rf_object *object);

/* As long as somebody is at the location, to read the value would only take the line of the cache away from him. Then it is asked for in
 * the state that the operation needs. Nobody is kept from coming in between. */
static inline __attribute__((always_inline)) struct rf_object *rf_atomic_meet(const struct rf_self *self, const volatile void *addr,
                                                                             size_t size, int order)
{
    if ((order & 7) <= 3 || !rf_atomic_is_straight(self) || (uintptr_t)addr % RF_GRANULE + size > RF_GRANULE)
        return NULL;
    struct rf_object *object = rf_object_find((uintptr_t)addr);
    if (!object)
        return NULL;
    if (__builtin_expect(__atomic_load_n(&object->lock, __ATOMIC_RELAXED), 0))
        rf_atomic_wait(object);
    __asm__ volatile("prefetchw %0" : : "m"(*(const volatile char *)addr));
    return object;
}

static inline __attribute__((always_inline)) bool rf_atomic_quick_lock(struct rf_self *self, struct rf_object *object,
                                                                      const volatile void *addr)
{
    if (!object)
        return false;
    rf_busy_begin(self);
    while (__builtin_expect(__atomic_exchange_n(&object->lock, 1, __ATOMIC_ACQUIRE), 0))
        rf_atomic_wait(object);
    if (__builtin_expect(object->addr == (uintptr_t)addr && object->kind == RF_O_ATOMIC, 1))
        return true;
    rf_object_unlock(self, object);
    return false;
}

/* The check of the operation as an access: before it if it publishes, within it if it also receives, after it otherwise
 * (guest/atomics.c, 5). */
void rf_atomic_check(struct rf_atomic *op, bool writes);
void rf_atomic_settle(struct rf_atomic *op);
/* Just before an operation that writes, with the object locked if there is one: whether it races is decided now, if such are refused
 * (guest/refusal.h). It may not come back; if it does, the object is as it was. */
void rf_atomic_refuse_slowly(struct rf_atomic *op);
static inline void rf_atomic_refuse(struct rf_atomic *op)
{
    if (__builtin_expect(rf_refuses, 0))
        rf_atomic_refuse_slowly(op);
}

/* guest/access.c asks before it reports a race of an atomic access with an earlier one of (slot, time). True: the operation is not
 * done yet and may turn out to be ordered after the other by what it acquires; the report is made then, if it must be. */
bool rf_atomic_defer(struct rf_self *self, const struct rf_report_side *now, const struct rf_report_side *before,
                     uint32_t slot, uint32_t time);

/* The thread, or fiber, has ended: guest/threads.c. The caller is busy. */
void rf_atomics_thread_end(struct rf_self *self);

#endif
