/* C11's threads. In libc they are pthreads under other names, but they call those by names that cannot be intercepted. */
#include <errno.h>
#include <threads.h>
#include <time.h>

#include "guest/access.h"
#include "guest/escape.h"
#include "guest/pthread.h"
#include "guest/signals.h"
#include "guest/threads.h"
#include "guest/tap.h"

RF_INTERCEPT(int, thrd_create, (thrd_t *thread, thrd_start_t start, void *argument))
{
    struct rf_scope scope = RF_ENTER(thrd_create);
    if (!scope.self)
        return RF_REAL(thrd_create)(thread, start, argument);
    if (__builtin_expect(rf_caper_on, 0))
        rf_caper_given((uintptr_t)__builtin_return_address(0), thread);
    if (__builtin_expect(rf_escape_leaves != NULL, 0))
        rf_escape_value(scope.self, (uintptr_t)argument);
    struct rf_self *child = rf_thread_prepare(&scope);
    *rf_thread_start(child) = (struct rf_thread_start){ .run11 = start, .argument = argument };
    rf_thread_expected(child);
    uint64_t mask = rf_thread_start(child)->mask = rf_signals_block();
    scope.self->inside++;
    int result = RF_REAL(thrd_create)(thread, rf_thread_run11(), child);
    scope.self->inside--;
    if (result == thrd_success)
        rf_thread_born(child, *thread);
    rf_signals_restore(mask);
    if (result != thrd_success)
        rf_thread_unborn(scope.self, child);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, thrd_join, (thrd_t thread, int *value))
{
    struct rf_scope scope = RF_ENTER(thrd_join);
    if (__builtin_expect(rf_caper_on, 0))
        rf_caper_given((uintptr_t)__builtin_return_address(0), value);
    struct rf_self *child = scope.self ? rf_thread_by_handle(thread) : NULL;
    rf_park_here(scope.self);
    int result = RF_REAL(thrd_join)(thread, value);
    if (result == thrd_success && child)
        rf_thread_joined(scope.self, child);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, thrd_detach, (thrd_t thread))
{
    struct rf_scope scope = RF_ENTER(thrd_detach);
    struct rf_self *child = scope.self ? rf_thread_by_handle(thread) : NULL;
    int result = RF_REAL(thrd_detach)(thread);
    if (result == thrd_success && child)
        rf_thread_detached(scope.self, child);
    rf_leave(&scope);
    return result;
}

/* ---- mutexes ---- */

static int after_lock(struct rf_scope *scope, mtx_t *mutex, unsigned flags, int result)
{
    if (scope->self && result == thrd_success)
        rf_lock_acquired((uintptr_t)mutex, flags, scope->pc);
    rf_leave(scope);
    return result;
}

static unsigned before_lock(struct rf_scope *scope, mtx_t *mutex)
{
    unsigned flags = rf_mutex_flags((pthread_mutex_t *)mutex);
    if (scope->self && scope->self->locks)
        rf_lock_wanted((uintptr_t)mutex, flags, scope->pc);
    rf_park_here(scope->self);
    return flags;
}

RF_INTERCEPT(int, mtx_lock, (mtx_t *mutex))
{
    struct rf_scope scope = RF_ENTER_SYNC(mtx_lock, mutex);
    unsigned flags = before_lock(&scope, mutex);
    return after_lock(&scope, mutex, flags, RF_REAL(mtx_lock)(mutex));
}

RF_INTERCEPT(int, mtx_timedlock, (mtx_t *mutex, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(mtx_timedlock, mutex, until);
    unsigned flags = before_lock(&scope, mutex);
    return after_lock(&scope, mutex, flags, RF_REAL(mtx_timedlock)(mutex, until));
}

RF_INTERCEPT(int, mtx_trylock, (mtx_t *mutex))
{
    struct rf_scope scope = RF_ENTER_SYNC(mtx_trylock, mutex);
    unsigned flags = rf_mutex_flags((pthread_mutex_t *)mutex) | RF_L_TRY;
    return after_lock(&scope, mutex, flags, RF_REAL(mtx_trylock)(mutex));
}

RF_INTERCEPT(int, mtx_unlock, (mtx_t *mutex))
{
    struct rf_scope scope = RF_ENTER_SYNC(mtx_unlock, mutex);
    if (scope.self)
        rf_lock_released((uintptr_t)mutex, 0, scope.pc);
    int result = RF_REAL(mtx_unlock)(mutex);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, mtx_init, (mtx_t *mutex, int type))
{
    struct rf_scope scope = RF_ENTER_SYNC(mtx_init, mutex);
    int result = RF_REAL(mtx_init)(mutex, type);
    if (scope.self && result == thrd_success)
        rf_lock_created((uintptr_t)mutex, type & mtx_recursive ? RF_L_RECURSIVE : 0, scope.pc);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(void, mtx_destroy, (mtx_t *mutex))
{
    struct rf_scope scope = RF_ENTER_SYNC(mtx_destroy, mutex);
    if (scope.self)
        rf_lock_destroyed((uintptr_t)mutex, scope.pc);
    RF_REAL(mtx_destroy)(mutex);
    rf_leave(&scope);
}

/* ---- conditions ---- */

RF_INTERCEPT(int, cnd_wait, (cnd_t *condition, mtx_t *mutex))
{
    struct rf_scope scope = RF_ENTER_SYNC(cnd_wait, condition, mutex);
    struct rf_wait wait;
    rf_wait_begin(&wait, &scope, condition, mutex);
    rf_park_here(scope.self);
    int result = RF_REAL(cnd_wait)(condition, mutex);
    rf_wait_end(&wait, condition, true);
    return result;
}

RF_INTERCEPT(int, cnd_timedwait, (cnd_t *condition, mtx_t *mutex, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(cnd_timedwait, condition, mutex, until);
    struct rf_wait wait;
    rf_wait_begin(&wait, &scope, condition, mutex);
    rf_park_here(scope.self);
    int result = RF_REAL(cnd_timedwait)(condition, mutex, until);
    rf_wait_end(&wait, condition, true);
    return result;
}

RF_INTERCEPT(int, cnd_signal, (cnd_t *condition))
{
    struct rf_scope scope = RF_ENTER_SYNC(cnd_signal, condition);
    if (scope.self) {
        rf_range_read(condition, 1, scope.pc);
        rf_tap_signalled(condition);
    }
    int result = RF_REAL(cnd_signal)(condition);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, cnd_broadcast, (cnd_t *condition))
{
    struct rf_scope scope = RF_ENTER_SYNC(cnd_broadcast, condition);
    if (scope.self) {
        rf_range_read(condition, 1, scope.pc);
        rf_tap_signalled(condition);
    }
    int result = RF_REAL(cnd_broadcast)(condition);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, cnd_init, (cnd_t *condition))
{
    struct rf_scope scope = RF_ENTER_SYNC(cnd_init, condition);
    if (scope.self)
        rf_range_write(condition, 1, scope.pc);
    int result = RF_REAL(cnd_init)(condition);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(void, cnd_destroy, (cnd_t *condition))
{
    struct rf_scope scope = RF_ENTER_SYNC(cnd_destroy, condition);
    if (scope.self)
        rf_range_write(condition, 1, scope.pc);
    RF_REAL(cnd_destroy)(condition);
    rf_leave(&scope);
}

/* ---- once. thrd_exit, thrd_sleep, thrd_yield, thrd_current and tss_* order nothing, and destructors of tss_create() run in their own
 * thread before the guest's end of it: the real ones do all there is to do. ---- */

static int real_call_once(void *control, void (*routine)(void));

RF_INTERCEPT(void, call_once, (once_flag *control, void (*routine)(void)))
{
    struct rf_scope scope = RF_ENTER(call_once);
    if (!scope.self)
        RF_REAL(call_once)(control, routine);
    else
        rf_once(&scope, control, routine, real_call_once);
}

static int real_call_once(void *control, void (*routine)(void))
{
    RF_REAL(call_once)(control, routine);
    return 0;
}
