/* Threads: begin, end, who knows whom.
 *
 * 1. A record (struct rf_self) lives from its creation until the thread has ended and was joined or detached. What a report needs of
 *    it afterwards is kept for ever, 32 bytes (rf_thread_facts).
 * 2. The list of live records is changed by busy threads only, under a lock that they wait for without being busy: so whoever stops
 *    the world may hold it and wait for them.
 * 3. Slots (guest/slots.h) and facts are under another lock, which is held for a few instructions and by busy threads only.
 * 4. Times are advanced by guest/moments.c alone, one for each moment. So order.tick is 0: to publish a clock needs no tick.
 */
#ifndef RF_GUEST_THREADS_H
#define RF_GUEST_THREADS_H

#include "guest/self.h"

struct rf_self *rf_self_attach(void); /* a thread that was not made through us (the main one, a raw clone) becomes known */
/* The record of a child, made by its parent before it runs: the parent's knowledge is its first. A stack size of 0: the stack is
 * looked at when the thread begins. */
struct rf_self *rf_thread_created(struct rf_self *parent, uint32_t creation, size_t stack_size);
void rf_thread_unborn(struct rf_self *parent, struct rf_self *child); /* the kernel refused it */
void rf_thread_begin(struct rf_self *self); /* in the child, first of all: rf_hot, frames, its stack's history cleared */
void rf_thread_end(struct rf_self *self);   /* in the child, last of all; for a fiber, by whoever destroys it */
void rf_thread_joined(struct rf_self *self, struct rf_self *child);
void rf_thread_detached(struct rf_self *self, struct rf_self *child);
/* Fibers (guest/fibers.c), threads of a language (guest/embed.c): the calling kernel thread goes on as another. */
void rf_thread_switch(struct rf_self *to);
struct rf_self *rf_thread_kernel(void); /* the calling kernel thread's own record, whatever it runs */
/* Times are used up: the thread goes on under a slot that nobody had before. The caller is busy and begins a new epoch. */
void rf_thread_fresh_slot(struct rf_self *self);

/* The parent tells the handle of a child that it may join: whoever has the handle finds the record, though the child has not begun. It has
 * said before the child was made that it is going to: the child does not end before it has. No signal comes in between. */
void rf_thread_expected(struct rf_self *child);
void rf_thread_born(struct rf_self *child, unsigned long pthread);
/* The record of a live or unjoined thread. NULL: it is not known. */
struct rf_self *rf_thread_by_handle(unsigned long pthread);
/* All that has happened comes before what the thread does from now on. The caller is not busy. */
void rf_thread_learn_past(struct rf_self *self);
void rf_thread_name(struct rf_self *child, const char *name);

/* What guest/pthread_create.c hangs into a record: whom to run. */
struct rf_thread_start {
    void *(*run)(void *);
    int (*run11)(void *); /* C11's kind */
    void *argument;
    uint64_t mask; /* of signals: it begins with all blocked, until it is known */
};
struct rf_thread_start *rf_thread_start(struct rf_self *self);

/* What a report needs of a thread, dead or alive: kept for ever, small. */
struct rf_thread_facts {
    uint32_t number, parent, creation;
    int32_t tid;
    bool running, is_fiber, main;
    char name[16];
};
bool rf_thread_facts(uint32_t number, struct rf_thread_facts *facts);
/* Which thread an epoch (slot, time) belongs to. */
uint32_t rf_thread_of(uint32_t slot, uint32_t time);
void rf_threads_each(void (*f)(struct rf_self *, void *), void *context); /* under the lock; the world stopped */
/* At exit: threads that have ended and that nobody joined or detached, one report for each place of creation. */
void rf_threads_leaks(void);
/* The stack that the calling thread runs on, static TLS included where it lies there: lowest address and size. */
bool rf_thread_stack(struct rf_self *self, uintptr_t *low, size_t *size);
uint32_t rf_threads_live(void);

/* Slots whose owner has ended without anybody knowing: they may be used again once no history names them. */
void rf_slots_dead(void (*f)(uint32_t slot, void *), void *context); /* the world stopped */
void rf_slot_reclaim(uint32_t slot);

/* guest/fork.c: the child knows the past of all threads, and is alone. */
void rf_fork_begin(void); /* once, at the start */
void rf_threads_fork_before(void);
void rf_threads_fork_after(struct rf_self *self, bool child);

/* Busy, unless the thread already is. Returns what rf_busy_leave() must be told. */
static inline bool rf_busy_enter(struct rf_self *self)
{
    if (!self || self->busy)
        return false;
    rf_busy_begin(self);
    return true;
}
static inline void rf_busy_leave(struct rf_self *self, bool mine)
{
    if (mine)
        rf_busy_end(self);
}

/* A clock that belongs to no thread's rf_memory: room for `len` entries, taken from guest/memory.h. The caller is busy. */
void rf_clock_widen(struct rf_clock *clock, uint32_t len);
static inline void rf_clock_room(struct rf_clock *clock, uint32_t len)
{
    if (__builtin_expect(clock->cap < len, 0))
        rf_clock_widen(clock, len);
}
void rf_clock_give(struct rf_clock *clock);

#endif
