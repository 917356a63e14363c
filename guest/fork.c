/* fork().
 *
 * 1. The guest's part is done by handlers like those of pthread_atfork(), registered before any other: so its `before` runs after all
 *    of the program's, which lock and call as they like, and its `after` before all of the program's. That covers every way to
 *    fork in libc (fork, forkpty, daemon) without an interceptor. _Fork() runs no handlers and has an interceptor.
 * 2. Before: the world is stopped and every lock of the guest is held. After: they are let go. In the child only the calling thread
 *    goes on. It is taken to know all that other threads did: the copy of the memory was made at one instant, after which nothing
 *    they do can be seen.
 * 3. vfork() is left alone: until the exec the child runs in the parent's memory while the calling thread waits, so for the guest it
 *    is that thread, and what it writes is seen by the others as that thread's. posix_spawn() runs no code of the program.
 * 4. clone() of libc that copies the memory is a fork that runs no handlers. A raw system call of that kind leaves the guest of the child
 *    with the parent's threads, which it never hears of again: a lock that one of them held in that instant stays held, unless the
 *    program tells of it (guest/sanitizer.c).
 */
#include "guest/fork.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include "guest/heap.h"
#include "guest/intercept.h"
#include "guest/locks.h"
#include "guest/memory.h"
#include "guest/objects.h"
#include "guest/options.h"
#include "guest/policy.h"
#include "guest/report.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/transactions.h"

static bool had_threads; /* in a child: its parent had several */
static RF_TLS struct rf_self *forking; /* between before and after */

bool rf_fork_forbids_threads(void)
{
    return had_threads && rf_options.die_after_fork;
}

/* What a test may put in: it is called where the guest's locks are not held yet. */
extern void __tsan_test_only_on_fork(void) __attribute__((weak, visibility("default")));

void rf_fork_before(void)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    forking = self;
    if (!self)
        return;
    self->inside++;
    if (&__tsan_test_only_on_fork)
        __tsan_test_only_on_fork();
    rf_heap_fork_before(); /* first: who has one of the heap's locks may be waiting for the world to go on */
    rf_world_stop(self);
    rf_threads_fork_before();
    rf_objects_fork_before();
    rf_lock_order_fork_before();
    rf_locks_fork_before();
    rf_memory_fork_before();
}

void rf_fork_after(bool child)
{
    struct rf_self *self = forking;
    if (!self)
        return;
    forking = NULL;
    if (child)
        had_threads |= rf_threads_live() > 1;
    rf_memory_fork_after();
    rf_locks_fork_after(child);
    rf_lock_order_fork_after();
    rf_objects_fork_after();
    rf_threads_fork_after(self, child);
    rf_world_go(self);
    rf_heap_fork_after(child);
    if (child) {
        rf_policy_fork_child();
        rf_txn_fork_child();
        rf_report_fork_child();
    }
    if (child && rf_tap)
        rf_tap->fork_child();
    self->inside--;
}

static void parent_after(void)
{
    rf_fork_after(false);
}

static void child_after(void)
{
    rf_fork_after(true);
}

void rf_fork_begin(void)
{
    pthread_atfork(rf_fork_before, parent_after, child_after);
}

RF_INTERCEPT(pid_t, _Fork, (void))
{
    rf_fork_before();
    pid_t result = RF_REAL(_Fork)();
    rf_fork_after(result == 0);
    return result;
}

struct cloned {
    int (*run)(void *);
    void *argument;
};

static int run_cloned(void *argument)
{
    struct cloned cloned = *(struct cloned *)argument; /* of the parent's stack, which was copied */
    rf_fork_after(true);
    return cloned.run(cloned.argument);
}

RF_INTERCEPT(int, clone, (int (*run)(void *), void *stack, int flags, void *argument, ...))
{
    __builtin_va_list list;
    __builtin_va_start(list, argument);
    void *parent_tid = __builtin_va_arg(list, void *), *tls = __builtin_va_arg(list, void *), *child_tid = __builtin_va_arg(list, void *);
    __builtin_va_end(list);
    if (flags & (CLONE_VM | CLONE_SETTLS) || !run || !stack)
        return RF_REAL(clone)(run, stack, flags, argument, parent_tid, tls, child_tid);
    struct cloned cloned = { run, argument };
    rf_fork_before();
    int result = RF_REAL(clone)(run_cloned, stack, flags, &cloned, parent_tid, tls, child_tid);
    int saved = errno;
    rf_fork_after(false);
    errno = saved;
    return result;
}
