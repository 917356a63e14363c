/* Which accesses may run at the same time as which: the threads of a program, as far as its text tells.
 *
 * 1. Root 0 is the main thread: main(), and constructors before it. Every function that a thread is made with is a root; all functions
 *    that code outside may call back, from whatever thread, are one root together.
 * 2. A root is single if at most one thread of it can ever be: its one call of pthread_create() is not in a loop, and stands in a
 *    function that runs once.
 * 3. Code of the main thread runs beside a root only if it can be reached from a call that makes it, without passing the join: the two
 *    of a thread are known to belong together if the handle is a variable that nothing else uses, and the root is single.
 * 4. All else may run at the same time: no locks are looked at, nor the order of threads that are not made or joined by the main one.
 */
#ifndef RF_STATIC_THREADS_H
#define RF_STATIC_THREADS_H

#include "static/program.h"

#define RF_ROOTS 64 /* those above share the last one, which is not single */

struct rf_threads {
    unsigned count;
    uint64_t several;      /* roots of which there may be several threads */
    uint64_t *in;          /* by access: the roots, other than 0, whose threads may do it */
    uint64_t *main_beside; /* by access: the roots beside which the main thread may do it */
};

void rf_threads_find(struct rf_threads *threads, const struct rf_program_ir *program);

static inline bool rf_threads_beside(const struct rf_threads *threads, uint32_t one, uint32_t other)
{
    uint64_t a = threads->in[one], b = threads->in[other];
    if (threads->main_beside[one] & b || threads->main_beside[other] & a)
        return true;
    if (!a || !b)
        return false;
    return a & b & threads->several || a != b || a & (a - 1);
}

#endif
