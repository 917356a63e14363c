/* pthread_once() and C11's call_once(), which in libc are the same thing.
 *
 * 1. What the routine did comes before every return. A routine that is left by an exception, or because the thread is cancelled, has
 *    not been run: it publishes nothing, and the next caller runs it again.
 * 2. The routine has no argument, so ours finds the program's in a variable of the thread, and takes it before anything else can
 *    change it. A caller that finds it run already leaves the variable as it is.
 */
#include "guest/objects.h"
#include "guest/pthread.h"

static RF_TLS struct {
    void (*routine)(void);
    void *control;
} pending;

static void run(void)
{
    void (*routine)(void) = pending.routine;
    void *control = pending.control;
    routine();
    if (rf_started)
        rf_release((uintptr_t)control, RF_O_ONCE);
}

int rf_once(struct rf_scope *scope, void *control, void (*routine)(void), int (*real)(void *, void (*)(void)))
{
    pending.routine = routine;
    pending.control = control;
    int result = real(control, run);
    if (!result)
        rf_acquire((uintptr_t)control, RF_O_ONCE);
    rf_leave(scope);
    return result;
}

RF_INTERCEPT(int, pthread_once, (pthread_once_t * control, void (*routine)(void)))
{
    struct rf_scope scope = RF_ENTER(pthread_once);
    if (!scope.self)
        return RF_REAL(pthread_once)(control, routine);
    return rf_once(&scope, control, routine, (int (*)(void *, void (*)(void)))RF_REAL(pthread_once));
}
