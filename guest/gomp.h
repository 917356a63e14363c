/* Between the two files that model gcc's libgomp: guest/gomp.c has regions, barriers and locks, guest/gomp_tasks.c tasks. */
#ifndef RF_GUEST_GOMP_H
#define RF_GUEST_GOMP_H

#include "guest/intercept.h"
#include "guest/openmp.h"

/* As guest/intercept.h has it, but the OpenMP runtime may have come with a library that was opened for itself: then it is not among
 * those that the loader looks through for us. */
void *rf_gomp_find(const char *name);

static inline void *rf_gomp_real(void **place, const char *name)
{
    void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (__builtin_expect(!found, 0))
        __atomic_store_n(place, found = rf_gomp_find(name), __ATOMIC_RELAXED);
    return found;
}

#undef RF_REAL
#define RF_REAL(name) ((rf_fn_##name *)rf_gomp_real(&rf_real_##name, #name))

/* Set by guest/ompt.c before there are teams: the OpenMP runtime tells by itself what it does. */
extern bool rf_gomp_off;

/* The task that the thread runs; NULL: it is in no region. */
extern RF_TLS struct rf_omp_task *rf_gomp_current;

/* The same, if there is anything to be said. */
static inline struct rf_omp_task *rf_gomp_task(const struct rf_scope *scope)
{
    return scope->self && !rf_gomp_off ? rf_gomp_current : NULL;
}

/* libgomp itself runs, between the two (guest/gomp.c, 2). */
static inline void rf_gomp_begin(struct rf_self *self)
{
    self->ignore_reads++;
    self->ignore_writes++;
    self->ignore_sync++;
}

static inline void rf_gomp_end(struct rf_self *self)
{
    self->ignore_reads--;
    self->ignore_writes--;
    self->ignore_sync--;
}

/* It calls the program to run a task. What to go back to: */
struct rf_gomp_outer {
    struct rf_omp_task *task;
    uint32_t ignore_reads, ignore_writes, ignore_sync;
};

static inline struct rf_gomp_outer rf_gomp_enter(struct rf_self *self, struct rf_omp_task *task)
{
    struct rf_gomp_outer outer = { rf_gomp_current, self->ignore_reads, self->ignore_writes, self->ignore_sync };
    self->ignore_reads = self->ignore_writes = self->ignore_sync = 0;
    rf_gomp_current = task;
    return outer;
}

static inline void rf_gomp_exit(struct rf_self *self, const struct rf_gomp_outer *outer)
{
    rf_gomp_current = outer->task;
    self->ignore_reads = outer->ignore_reads;
    self->ignore_writes = outer->ignore_writes;
    self->ignore_sync = outer->ignore_sync;
}

#endif
