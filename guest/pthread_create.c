/* pthread_create() and what follows from it. C11's threads are made here, too: guest/c11.c only has other types. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <time.h>

#include "guest/access.h"
#include "guest/fork.h"
#include "guest/intercept.h"
#include "guest/options.h"
#include "guest/escape.h"
#include "guest/pthread.h"
#include "guest/refusal.h"
#include "guest/signals.h"
#include "guest/system.h"
#include "guest/threads.h"

/* A race that nobody catches ends the thread here, as if it had been cancelled; nothing is unwound, since code between may know of no
 * exceptions. */
static __attribute__((noinline)) void *run_to_last(struct rf_self *self, struct rf_thread_start *start)
{
    jmp_buf last;
    if (_setjmp(last))
        return PTHREAD_CANCELED;
    rf_refusal_last(self, last);
    return start->run11 ? (void *)(intptr_t)start->run11(start->argument) : start->run(start->argument);
}

/* The function that the program gave is called straight from here, so that its frame is the first. */
static void *run(void *argument)
{
    struct rf_self *self = argument;
    rf_thread_begin(self);
    struct rf_thread_start *start = rf_thread_start(self);
    rf_signals_restore(start->mask);
    if (__builtin_expect(rf_refuses, 0))
        return run_to_last(self, start);
    return start->run(start->argument);
}

static int run11(void *argument)
{
    struct rf_self *self = argument;
    rf_thread_begin(self);
    struct rf_thread_start *start = rf_thread_start(self);
    rf_signals_restore(start->mask);
    if (__builtin_expect(rf_refuses, 0))
        return (int)(intptr_t)run_to_last(self, start);
    return start->run11(start->argument);
}

/* In ThreadSanitizer's words if they are wanted, and with the status that it would have. */
static _Noreturn void end_after_fork(void)
{
    if (rf_options.report_style[0] != 't')
        rf_die("a thread is started in the child of a process with several threads (die_after_fork=1)");
    rf_say("ThreadSanitizer: starting new threads after multi-threaded fork is not supported. Dying (set die_after_fork=0 to override)");
    for (;;)
        RF_SYSCALL(SYS_exit_group, rf_options.exitcode);
}

struct rf_self *rf_thread_prepare(struct rf_scope *scope)
{
    if (rf_fork_forbids_threads())
        end_after_fork();
    rf_busy_begin(scope->self);
    uint32_t note = rf_note_here(scope->pc, 0, 0);
    rf_busy_end(scope->self);
    return rf_thread_created(scope->self, note, 0);
}

typedef int (*rf_start11)(void *);
rf_start11 rf_thread_run11(void)
{
    return run11;
}

RF_INTERCEPT(int, pthread_create, (pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument))
{
    struct rf_scope scope = RF_ENTER(pthread_create);
    if (!scope.self)
        return RF_REAL(pthread_create)(thread, attributes, start, argument);
    if (__builtin_expect(rf_caper_on, 0)) {
        rf_caper_given((uintptr_t)__builtin_return_address(0), thread);
        rf_caper_given((uintptr_t)__builtin_return_address(0), attributes);
    }
    if (__builtin_expect(rf_escape_leaves != NULL, 0))
        rf_escape_value(scope.self, (uintptr_t)argument);
    struct rf_self *child = rf_thread_prepare(&scope);
    *rf_thread_start(child) = (struct rf_thread_start){ .run = start, .argument = argument };
    int state = PTHREAD_CREATE_JOINABLE;
    if (attributes)
        pthread_attr_getdetachstate(attributes, &state);
    if (state == PTHREAD_CREATE_DETACHED)
        rf_thread_detached(scope.self, child);
    else
        rf_thread_expected(child);
    sigset_t own; /* a mask that is set in the attributes is the child's at once */
    uint64_t mask = rf_signals_block();
    if (attributes && pthread_attr_getsigmask_np(attributes, &own) == 0)
        rf_thread_start(child)->mask = *(const uint64_t *)(const void *)&own;
    else
        rf_thread_start(child)->mask = mask;
    scope.self->inside++; /* libc's allocations for it are no business of the program's */
    int result = RF_REAL(pthread_create)(thread, attributes, run, child);
    scope.self->inside--;
    if (!result && state != PTHREAD_CREATE_DETACHED)
        rf_thread_born(child, *thread);
    rf_signals_restore(mask);
    if (result)
        rf_thread_unborn(scope.self, child);
    rf_leave(&scope);
    return result;
}

/* The record is looked up before the real function, after which the handle may be another thread's. */
#define JOIN(call)                                                       \
    struct rf_self *child = scope.self ? rf_thread_by_handle(thread) : NULL; \
    if (__builtin_expect(rf_caper_on, 0))                                \
        rf_caper_given((uintptr_t)__builtin_return_address(0), value);   \
    rf_park_here(scope.self);                                            \
    int result = (call);                                                 \
    if (!result && child)                                                \
        rf_thread_joined(scope.self, child);                             \
    rf_leave(&scope);                                                    \
    return result

RF_INTERCEPT(int, pthread_join, (pthread_t thread, void **value))
{
    struct rf_scope scope = RF_ENTER(pthread_join);
    JOIN(RF_REAL(pthread_join)(thread, value));
}

RF_INTERCEPT(int, pthread_tryjoin_np, (pthread_t thread, void **value))
{
    struct rf_scope scope = RF_ENTER(pthread_tryjoin_np);
    JOIN(RF_REAL(pthread_tryjoin_np)(thread, value));
}

RF_INTERCEPT(int, pthread_timedjoin_np, (pthread_t thread, void **value, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER(pthread_timedjoin_np);
    JOIN(RF_REAL(pthread_timedjoin_np)(thread, value, until));
}

RF_INTERCEPT(int, pthread_clockjoin_np, (pthread_t thread, void **value, clockid_t clock, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER(pthread_clockjoin_np);
    JOIN(RF_REAL(pthread_clockjoin_np)(thread, value, clock, until));
}

RF_INTERCEPT(int, pthread_detach, (pthread_t thread))
{
    struct rf_scope scope = RF_ENTER(pthread_detach);
    struct rf_self *child = scope.self ? rf_thread_by_handle(thread) : NULL;
    int result = RF_REAL(pthread_detach)(thread);
    if (!result && child)
        rf_thread_detached(scope.self, child);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_setname_np, (pthread_t thread, const char *name))
{
    struct rf_scope scope = RF_ENTER(pthread_setname_np);
    struct rf_self *child = scope.self ? rf_thread_by_handle(thread) : NULL;
    if (child && name)
        rf_thread_name(child, name);
    int result = RF_REAL(pthread_setname_np)(thread, name);
    rf_leave(&scope);
    return result;
}
