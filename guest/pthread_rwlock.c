/* Read-write locks and spin locks. As for mutexes: guest/pthread_mutex.c. */
#include <errno.h>
#include <time.h>

#include "guest/pthread.h"

static inline int after_lock(struct rf_scope *scope, const volatile void *lock, unsigned flags, int result)
{
    if (scope->self && result == 0)
        rf_lock_acquired((uintptr_t)lock, flags, scope->pc);
    rf_leave(scope);
    return result;
}

static inline void before_lock(struct rf_scope *scope, const volatile void *lock, unsigned flags)
{
    if (scope->self && scope->self->locks)
        rf_lock_wanted((uintptr_t)lock, flags, scope->pc);
}

/* A write lock that the thread has is refused by libc (EDEADLK), for both modes. */
#define READ (RF_L_RW | RF_L_READ | RF_L_CHECKED)
#define WRITE (RF_L_RW | RF_L_CHECKED)

#define BLOCKING(flags, call)              \
    before_lock(&scope, lock, flags);      \
    if (!((flags) & RF_L_SPIN))            \
        rf_park_here(scope.self);          \
    return after_lock(&scope, lock, flags, (call))

RF_INTERCEPT(int, pthread_rwlock_rdlock, (pthread_rwlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_rdlock, lock);
    BLOCKING(READ, RF_REAL(pthread_rwlock_rdlock)(lock));
}

RF_INTERCEPT(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_tryrdlock, lock);
    return after_lock(&scope, lock, READ | RF_L_TRY, RF_REAL(pthread_rwlock_tryrdlock)(lock));
}

RF_INTERCEPT(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *lock, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_timedrdlock, lock, until);
    BLOCKING(READ, RF_REAL(pthread_rwlock_timedrdlock)(lock, until));
}

RF_INTERCEPT(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_clockrdlock, lock, until);
    BLOCKING(READ, RF_REAL(pthread_rwlock_clockrdlock)(lock, clock, until));
}

RF_INTERCEPT(int, pthread_rwlock_wrlock, (pthread_rwlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_wrlock, lock);
    BLOCKING(WRITE, RF_REAL(pthread_rwlock_wrlock)(lock));
}

RF_INTERCEPT(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_trywrlock, lock);
    return after_lock(&scope, lock, WRITE | RF_L_TRY, RF_REAL(pthread_rwlock_trywrlock)(lock));
}

RF_INTERCEPT(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *lock, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_timedwrlock, lock, until);
    BLOCKING(WRITE, RF_REAL(pthread_rwlock_timedwrlock)(lock, until));
}

RF_INTERCEPT(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_clockwrlock, lock, until);
    BLOCKING(WRITE, RF_REAL(pthread_rwlock_clockwrlock)(lock, clock, until));
}

RF_INTERCEPT(int, pthread_rwlock_unlock, (pthread_rwlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_unlock, lock);
    if (scope.self)
        rf_lock_released((uintptr_t)lock, RF_L_RW | RF_L_ANY, scope.pc);
    int result = RF_REAL(pthread_rwlock_unlock)(lock);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_rwlock_init, (pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_init, lock, attributes);
    int result = RF_REAL(pthread_rwlock_init)(lock, attributes);
    if (scope.self && !result)
        rf_lock_created((uintptr_t)lock, RF_L_RW, scope.pc);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_rwlock_destroy, (pthread_rwlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_rwlock_destroy, lock);
    if (scope.self)
        rf_lock_destroyed((uintptr_t)lock, scope.pc);
    int result = RF_REAL(pthread_rwlock_destroy)(lock);
    rf_leave(&scope);
    return result;
}

/* ---- spin locks ---- */

RF_INTERCEPT(int, pthread_spin_lock, (pthread_spinlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_spin_lock, lock);
    BLOCKING(RF_L_SPIN, RF_REAL(pthread_spin_lock)(lock));
}

RF_INTERCEPT(int, pthread_spin_trylock, (pthread_spinlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_spin_trylock, lock);
    return after_lock(&scope, lock, RF_L_SPIN | RF_L_TRY, RF_REAL(pthread_spin_trylock)(lock));
}

RF_INTERCEPT(int, pthread_spin_unlock, (pthread_spinlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_spin_unlock, lock);
    if (scope.self)
        rf_lock_released((uintptr_t)lock, RF_L_SPIN, scope.pc);
    int result = RF_REAL(pthread_spin_unlock)(lock);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_spin_init, (pthread_spinlock_t *lock, int shared))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_spin_init, lock);
    int result = RF_REAL(pthread_spin_init)(lock, shared);
    if (scope.self && !result)
        rf_lock_created((uintptr_t)lock, RF_L_SPIN, scope.pc);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_spin_destroy, (pthread_spinlock_t *lock))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_spin_destroy, lock);
    if (scope.self)
        rf_lock_destroyed((uintptr_t)lock, scope.pc);
    int result = RF_REAL(pthread_spin_destroy)(lock);
    rf_leave(&scope);
    return result;
}
