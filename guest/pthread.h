/* What the interceptors of pthreads and of C11 share. */
#ifndef RF_GUEST_PTHREAD_H
#define RF_GUEST_PTHREAD_H

#include <pthread.h>

#include "guest/caper.h"
#include "guest/intercept.h"
#include "guest/locks.h"
#include "guest/policy.h"

/* For functions that synchronise and do nothing else, with what they are given, NULL if it is nothing. Caper takes no order from them:
 * to it they are accesses of that; and what the thread has stored is looked at before it is handed on, here as in rf_enter()
 * (guest/escape.h, 3). */
static inline void rf_pass_sync(uintptr_t caller, const volatile void *one, const volatile void *two,
                                const volatile void *three)
{
    struct rf_self *self = rf_hot.self;
    if (self && self->stored_size && !self->inside)
        rf_escape_flush(self);
    if (__builtin_expect(rf_caper_is_settled(caller), 1))
        return;
    rf_caper_given(caller, one);
    if (two)
        rf_caper_given(caller, two);
    if (three)
        rf_caper_given(caller, three);
}

static inline __attribute__((always_inline)) struct rf_scope rf_enter_sync(uintptr_t pc, uintptr_t caller, void *sp,
                                                                           const volatile void *one,
                                                                           const volatile void *two,
                                                                           const volatile void *three)
{
    if (__builtin_expect(!rf_caper_on, 1))
        return rf_enter(pc, caller, sp);
    rf_pass_sync(caller, one, two, three);
    return (struct rf_scope){ NULL, pc };
}
#define RF_THREE(one, two, three, ...) one, two, three
#define RF_ENTER_SYNC(name, ...)                                                                                            \
    rf_enter_sync((uintptr_t)&rf_icpt_##name, (uintptr_t)__builtin_return_address(0), __builtin_frame_address(0),           \
                  RF_THREE(__VA_ARGS__, NULL, NULL, NULL))

/* guest/pthread_create.c: the child's record, made by the caller; and what is run in a C11 thread with it as argument. */
struct rf_self *rf_thread_prepare(struct rf_scope *scope);
int (*rf_thread_run11(void))(void *);

/* The kind of a mutex, from where libc keeps it. C11's mtx_t is the same thing. */
static inline unsigned rf_mutex_flags(const pthread_mutex_t *mutex)
{
    switch (mutex->__data.__kind & 3) {
    case PTHREAD_MUTEX_RECURSIVE_NP:
        return RF_L_REAL | RF_L_RECURSIVE;
    case PTHREAD_MUTEX_ERRORCHECK_NP:
        return RF_L_REAL | RF_L_CHECKED;
    default:
        return RF_L_REAL;
    }
}

/* guest/pthread_cond.c: a wait that gives the mutex back and takes it again, also when the thread is cancelled in it. */
struct rf_wait {
    struct rf_scope *scope;
    uintptr_t mutex;
    unsigned flags;
    void *cleanup[4]; /* libc's struct _pthread_cleanup_buffer */
};
void rf_wait_begin(struct rf_wait *wait, struct rf_scope *scope, const void *condition, const void *mutex);
void rf_wait_end(struct rf_wait *wait, const void *condition, bool acquired);

/* guest/pthread_once.c: runs the routine at most once, through `real`; what it did comes before everybody's return. */
int rf_once(struct rf_scope *scope, void *control, void (*routine)(void), int (*real)(void *, void (*)(void)));

#endif
