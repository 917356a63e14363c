/* Condition variables.
 *
 * 1. A wait gives the mutex back and takes it again: that alone orders the waiter after whoever held the mutex in between. Signals
 *    order nothing by themselves: a waiter may wake without one, and a condition that was changed without the mutex is a race.
 * 2. libc takes the mutex again before it runs the cleanup handlers of a thread that is cancelled in the wait. Ours is the first.
 * 3. There are two sets of these functions in libc, by symbol version: the older ones (GLIBC_2.2.5) have another layout. The symbols
 *    here have no version and are found for both; every program of this century means the newer ones.
 */
#define RF_REAL_VERSION "GLIBC_2.3.2" /* guest/intercept.h */

#include <errno.h>
#include <time.h>

#include "guest/access.h"
#include "guest/pthread.h"
#include "guest/tap.h"

static inline void *real_version(void **place, const char *name)
{
    void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (__builtin_expect(!found, 0))
        __atomic_store_n(place, found = rf_find_real_version(name, RF_REAL_VERSION), __ATOMIC_RELAXED);
    return found;
}
#define REAL(name) ((rf_fn_##name *)real_version(&rf_real_##name, #name))

/* libc's functions for cleanup handlers without macros, which need no support of the compiler. */
typedef void push_fn(void *buffer, void (*routine)(void *), void *argument);
typedef void pop_fn(void *buffer, int execute);
static void *push_place, *pop_place;

static void cancelled(void *argument)
{
    struct rf_wait *wait = argument;
    rf_lock_acquired(wait->mutex, wait->flags, wait->scope->pc);
    rf_leave(wait->scope);
}

void rf_wait_begin(struct rf_wait *wait, struct rf_scope *scope, const void *condition, const void *mutex)
{
    *wait = (struct rf_wait){ .scope = scope, .mutex = (uintptr_t)mutex, .flags = rf_mutex_flags(mutex) };
    if (!scope->self)
        return;
    rf_range_read(condition, 1, scope->pc);
    rf_lock_released(wait->mutex, wait->flags, scope->pc);
    ((push_fn *)rf_real(&push_place, "_pthread_cleanup_push"))(wait->cleanup, cancelled, wait);
}

void rf_wait_end(struct rf_wait *wait, const void *condition, bool acquired)
{
    if (wait->scope->self) {
        ((pop_fn *)rf_real(&pop_place, "_pthread_cleanup_pop"))(wait->cleanup, 0);
        if (acquired)
            rf_lock_acquired(wait->mutex, wait->flags, wait->scope->pc);
        rf_tap_waited(condition);
    }
    rf_leave(wait->scope);
}

/* Whatever a wait returns, the mutex is held again: also when the time is over, or when its owner has died. Only if the mutex was
 * not the caller's to begin with it is not, and then it was not given back, either. */
#define WAIT(call)                                                             \
    struct rf_wait wait;                                                       \
    rf_wait_begin(&wait, &scope, condition, mutex);                            \
    rf_park_here(scope.self);                                                  \
    int result = (call);                                                       \
    rf_wait_end(&wait, condition, result != EPERM && result != ENOTRECOVERABLE); \
    return result

RF_INTERCEPT(int, pthread_cond_wait, (pthread_cond_t *condition, pthread_mutex_t *mutex))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_cond_wait, condition, mutex);
    WAIT(REAL(pthread_cond_wait)(condition, mutex));
}

RF_INTERCEPT(int, pthread_cond_timedwait, (pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_cond_timedwait, condition, mutex, until);
    WAIT(REAL(pthread_cond_timedwait)(condition, mutex, until));
}

RF_INTERCEPT(int, pthread_cond_clockwait,
             (pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_cond_clockwait, condition, mutex, until);
    WAIT(RF_REAL(pthread_cond_clockwait)(condition, mutex, clock, until));
}

RF_INTERCEPT(int, pthread_cond_signal, (pthread_cond_t *condition))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_cond_signal, condition);
    if (scope.self) {
        rf_range_read(condition, 1, scope.pc);
        rf_tap_signalled(condition);
    }
    int result = REAL(pthread_cond_signal)(condition);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_cond_broadcast, (pthread_cond_t *condition))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_cond_broadcast, condition);
    if (scope.self) {
        rf_range_read(condition, 1, scope.pc);
        rf_tap_signalled(condition);
    }
    int result = REAL(pthread_cond_broadcast)(condition);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_cond_init, (pthread_cond_t *condition, const pthread_condattr_t *attributes))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_cond_init, condition, attributes);
    if (scope.self)
        rf_range_write(condition, 1, scope.pc);
    int result = REAL(pthread_cond_init)(condition, attributes);
    rf_leave(&scope);
    return result;
}

/* Destroying waits until nobody is in it, and is a write: one who still uses it is a race. */
RF_INTERCEPT(int, pthread_cond_destroy, (pthread_cond_t *condition))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_cond_destroy, condition);
    if (scope.self)
        rf_range_write(condition, 1, scope.pc);
    int result = REAL(pthread_cond_destroy)(condition);
    rf_leave(&scope);
    return result;
}
