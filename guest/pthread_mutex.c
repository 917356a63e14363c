/* Mutexes.
 *
 * 1. What a thread knows is published before the real unlock, and received after the real lock: so the object belongs to whoever has
 *    the mutex (guest/locks.h).
 * 2. Objects are found by address. A mutex in memory that several processes share orders the threads of this one only; and one that
 *    is mapped twice in this process is two.
 */
#include <errno.h>
#include <time.h>

#include "guest/pthread.h"

/* What the real function said. A mutex whose owner has died is held all the same; the others that fail order nothing. */
static inline __attribute__((always_inline)) int after_lock(struct rf_scope *scope, pthread_mutex_t *mutex, unsigned flags, int result)
{
    if (__builtin_expect(result == 0, 1)) {
        if (scope->self)
            rf_lock_acquired((uintptr_t)mutex, flags, scope->pc);
    } else if (scope->self && result == EOWNERDEAD) {
        rf_lock_acquired((uintptr_t)mutex, flags | RF_L_ROBUST_DEAD, scope->pc);
    } else if (scope->self && result == EINVAL) {
        rf_lock_invalid((uintptr_t)mutex, scope->pc);
    }
    rf_leave(scope);
    return result;
}

static inline __attribute__((always_inline)) unsigned before_lock(struct rf_scope *scope, pthread_mutex_t *mutex)
{
    unsigned flags = rf_mutex_flags(mutex);
    if (scope->self && scope->self->locks)
        rf_lock_wanted((uintptr_t)mutex, flags, scope->pc);
    return flags;
}

/* The frame that a report shows is pushed only when there may be one. */
static inline __attribute__((always_inline)) struct rf_self *quick_self(void)
{
    struct rf_self *self = rf_hot.self;
    return __builtin_expect(self && rf_started && !self->inside, 1) ? self : NULL;
}

/* Apart, so that the quick way saves no registers. */
static __attribute__((noinline)) int late(pthread_mutex_t *mutex, int result, uintptr_t pc, uintptr_t caller, void *sp)
{
    struct rf_scope scope = rf_enter(pc, caller, sp);
    return after_lock(&scope, mutex, rf_mutex_flags(mutex), result);
}

typedef int mutex_fn(pthread_mutex_t *);

RF_INTERCEPT(int, pthread_mutex_trylock, (pthread_mutex_t *mutex));

/* The real lock. Who would have to wait for it parks first (sync/fib.h). */
static int lock_or_park(struct rf_self *self, pthread_mutex_t *mutex, mutex_fn *real)
{
    if (rf_policy != RF_POLICY_FIB || !self)
        return real(mutex);
    int result = RF_REAL(pthread_mutex_trylock)(mutex);
    if (result != EBUSY)
        return result;
    rf_park_here(self);
    return real(mutex);
}

static __attribute__((noinline)) int lock_slowly(pthread_mutex_t *mutex, mutex_fn *real, uintptr_t pc, uintptr_t caller, void *sp)
{
    struct rf_scope scope = rf_enter(pc, caller, sp);
    unsigned flags = before_lock(&scope, mutex);
    return after_lock(&scope, mutex, flags, lock_or_park(scope.self, mutex, real));
}

#define HERE(name) (uintptr_t)&rf_icpt_##name, (uintptr_t)__builtin_return_address(0), __builtin_frame_address(0)

RF_INTERCEPT(int, pthread_mutex_lock, (pthread_mutex_t *mutex))
{
    if (__builtin_expect(rf_caper_on, 0)) {
        rf_pass_sync((uintptr_t)__builtin_return_address(0), mutex, NULL, NULL);
        return RF_REAL(pthread_mutex_lock)(mutex);
    }
    struct rf_self *self = quick_self();
    if (__builtin_expect(!self || rf_policy == RF_POLICY_FIB, 0) ||
        (self->locks && !rf_lock_wanted_quickly(self, (uintptr_t)mutex)))
        return lock_slowly(mutex, RF_REAL(pthread_mutex_lock), HERE(pthread_mutex_lock));
    int result = RF_REAL(pthread_mutex_lock)(mutex);
    if (__builtin_expect(result == 0, 1) && rf_lock_acquired_quickly(self, (uintptr_t)mutex))
        return 0;
    return late(mutex, result, HERE(pthread_mutex_lock));
}

RF_INTERCEPT(int, pthread_mutex_trylock, (pthread_mutex_t *mutex))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_mutex_trylock, mutex);
    unsigned flags = rf_mutex_flags(mutex) | RF_L_TRY;
    return after_lock(&scope, mutex, flags, RF_REAL(pthread_mutex_trylock)(mutex));
}

/* A timed one that times out is a way out of a circle, but it was not meant to be needed: it counts as waiting. EINVAL may speak of
 * the time, and is not taken for a wrong mutex. */
#define TIMED(call)                                                         \
    unsigned flags = before_lock(&scope, mutex);                            \
    rf_park_here(scope.self);                                               \
    int result = (call);                                                    \
    if (result == EINVAL) {                                                 \
        rf_leave(&scope);                                                   \
        return result;                                                      \
    }                                                                       \
    return after_lock(&scope, mutex, flags, result)

RF_INTERCEPT(int, pthread_mutex_timedlock, (pthread_mutex_t *mutex, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_mutex_timedlock, mutex, until);
    TIMED(RF_REAL(pthread_mutex_timedlock)(mutex, until));
}

RF_INTERCEPT(int, pthread_mutex_clocklock, (pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_mutex_clocklock, mutex, until);
    TIMED(RF_REAL(pthread_mutex_clocklock)(mutex, clock, until));
}

static __attribute__((noinline)) int unlock_slowly(pthread_mutex_t *mutex, mutex_fn *real, uintptr_t pc, uintptr_t caller, void *sp)
{
    struct rf_scope scope = rf_enter(pc, caller, sp);
    if (scope.self)
        rf_lock_released((uintptr_t)mutex, 0, scope.pc);
    int result = real(mutex);
    if (__builtin_expect(result == EINVAL && scope.self, 0))
        rf_lock_invalid((uintptr_t)mutex, scope.pc);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_mutex_unlock, (pthread_mutex_t *mutex))
{
    if (__builtin_expect(rf_caper_on, 0)) {
        rf_pass_sync((uintptr_t)__builtin_return_address(0), mutex, NULL, NULL);
        return RF_REAL(pthread_mutex_unlock)(mutex);
    }
    struct rf_self *self = quick_self();
    if (__builtin_expect(self && rf_lock_released_quickly(self, (uintptr_t)mutex), 1))
        return RF_REAL(pthread_mutex_unlock)(mutex);
    return unlock_slowly(mutex, RF_REAL(pthread_mutex_unlock), HERE(pthread_mutex_unlock));
}

RF_INTERCEPT(int, pthread_mutex_init, (pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_mutex_init, mutex, attributes);
    int result = RF_REAL(pthread_mutex_init)(mutex, attributes);
    if (scope.self && !result)
        rf_lock_created((uintptr_t)mutex, rf_mutex_flags(mutex) & RF_L_RECURSIVE, scope.pc);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_mutex_destroy, (pthread_mutex_t *mutex))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_mutex_destroy, mutex);
    int result = RF_REAL(pthread_mutex_destroy)(mutex);
    if (scope.self && (result == 0 || result == EBUSY))
        rf_lock_destroyed((uintptr_t)mutex, scope.pc);
    rf_leave(&scope);
    return result;
}
