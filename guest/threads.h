/* Threads: begin, end, who knows whom. */
#ifndef RF_GUEST_THREADS_H
#define RF_GUEST_THREADS_H

#include "guest/self.h"

struct rf_self *rf_self_attach(void); /* a thread that was not made through us (the main one, a raw clone) becomes known */
/* The record of a child, made by its parent before it runs: the parent's knowledge is its first. */
struct rf_self *rf_thread_created(struct rf_self *parent, uint32_t creation, size_t stack_size);
void rf_thread_begin(struct rf_self *self); /* in the child, first of all: rf_hot, frames, its stack's history cleared */
void rf_thread_end(struct rf_self *self);   /* in the child, last of all */
void rf_thread_joined(struct rf_self *self, struct rf_self *child);
/* Fibers (guest/fibers.c): the calling kernel thread goes on as another. */
void rf_thread_switch(struct rf_self *to);

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

#endif
