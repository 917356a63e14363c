/* Signals: handlers of the program run at once, on the thread that was interrupted, and are looked at like all of its code.
 *
 * 1. The kernel knows one handler, ours, which knows the program's. What sigaction() and its like say of old handlers is the
 *    program's own.
 * 2. A signal that interrupts the guest itself (self->busy: histories and clocks are being changed; self->inside: a report is
 *    made) is kept: its information and context are copied, all other signals are blocked in the context that the kernel goes back
 *    to, and rf_busy_end() runs the handler a few instructions later, under the mask that it would have had. What such a handler
 *    changes in the registers of its context is lost; a change of the mask is not. It runs on the stack of the thread, not on the
 *    alternate one.
 * 3. Faults (a siginfo from the processor) are never kept. If the guest asked for its own faults first (rf_signals_on_fault), the
 *    program cannot block SIGSEGV and SIGBUS.
 * 4. The frame that an entry hook is about to fill is saved around a handler: the hook may have been interrupted half way.
 * 5. What orders: installing a handler comes before its runs; sending a signal within the process comes before the handler, or the
 *    sigwait() and its like, that receives it.
 * 6. The table is written under a lock with all signals blocked; handlers read single words of it. The lock's value is the process
 *    that took it, so that a child of fork() does not wait for a thread that it does not have.
 */
#include "guest/signals.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "guest/escape.h"
#include "guest/jumps.h"
#include "guest/libc.h"
#include "guest/planes.h"
#include "guest/policy.h"
#include "guest/report.h"
#include "guest/system.h"
#include "guest/tap.h"
#include "guest/vectors.h"

#define SIGNALS 65

struct action {
    uintptr_t handler; /* the program's function; stays when it is replaced by SIG_DFL or SIG_IGN: a signal may be on its way */
    int flags;         /* as the program gave them */
    uintptr_t instead; /* guarded signals, which stay ours: SIG_DFL or SIG_IGN if that is what the program wants */
};
static struct action actions[SIGNALS];
static char sent[SIGNALS]; /* addresses of the order between sender and receiver */
static uint64_t interrupting; /* siginterrupt() */
static uint32_t lock;         /* invariant 6 */
static bool (*on_fault)(siginfo_t *, void *);

RF_TLS struct rf_handling *rf_handling;
static RF_TLS int raising; /* the signal that this thread sends to itself now */

static const uint64_t all_signals = ~UINT64_C(0);
#define BIT(sig) (UINT64_C(1) << ((sig) - 1))
/* Those that the processor sends. Blocked, they would end the program. */
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGSYS))
#define GUARDED (BIT(SIGSEGV) | BIT(SIGBUS))

static uint64_t set_mask(int how, uint64_t mask)
{
    uint64_t before = 0;
    RF_SYSCALL(SYS_rt_sigprocmask, how, &mask, &before, sizeof mask);
    return before;
}

uint64_t rf_signals_block(void)
{
    return set_mask(SIG_BLOCK, all_signals & ~FAULTS);
}

void rf_signals_restore(uint64_t mask)
{
    set_mask(SIG_SETMASK, mask);
}

static uint64_t *bits(sigset_t *set)
{
    return (uint64_t *)(void *)set; /* the kernel's part of it */
}

static bool is_fault(int sig, const siginfo_t *info)
{
    return FAULTS & BIT(sig) && info->si_code > 0;
}

static bool guarded(int sig)
{
    return on_fault && GUARDED & BIT(sig);
}

/* --- delivery -------------------------------------------------------------------------------------------------------------- */

typedef void handler_fn(int, siginfo_t *, void *);

static void run(struct rf_self *self, int sig, siginfo_t *info, ucontext_t *context)
{
    handler_fn *handler = (handler_fn *)__atomic_load_n(&actions[sig].handler, __ATOMIC_ACQUIRE);
    if (!self || self->inside || self->busy) { /* a fault of the guest's own, or nothing of it is there */
        handler(sig, info, context);
        return;
    }
    struct rf_frame half = *rf_hot.top; /* invariant 4 */
    struct rf_handling handling = {
        .outer = rf_handling,
        .top = rf_hot.top,
        .signal = sig,
        .synchronous = is_fault(sig, info) || raising == sig,
        .ignore_reads = self->ignore_reads,
        .ignore_writes = self->ignore_writes,
        .ignore_sync = self->ignore_sync,
        .mask = bits(&context->uc_sigmask),
    };
    uintptr_t alternate = (uintptr_t)context->uc_stack.ss_sp, end = alternate + context->uc_stack.ss_size;
    if (alternate <= (uintptr_t)&handling && (uintptr_t)&handling < end) {
        handling.stack = alternate;
        handling.stack_end = end;
    }
    uintptr_t stored_at = self->stored_at; /* the store that was interrupted may not have happened yet */
    size_t stored_size = self->stored_size;
    rf_handling = &handling;
    raising = 0;
    self->ignore_reads = self->ignore_writes = self->ignore_sync = rf_system_is_ignored(self);
    *rf_hot.top++ = (struct rf_frame){ (uintptr_t)context->uc_mcontext.gregs[REG_RIP] + 1, 0,
                                       (uint32_t)context->uc_mcontext.gregs[REG_RSP] };
    rf_acquire((uintptr_t)&actions[sig], RF_O_USER);
    if (info->si_code <= 0)
        rf_acquire((uintptr_t)&sent[sig], RF_O_USER);

    int before = errno;
    handler(sig, info, context);
    int after = errno;

    rf_escape_keep(self, stored_at, stored_size);
    self = rf_hot.self; /* a handler may have switched fibers */
    rf_handling = handling.outer;
    rf_hot.top = handling.top + 1;
    if (after != before && !handling.synchronous && sig != SIGTERM && rf_options.report_signal_unsafe) {
        /* SIGTERM: such handlers often send it again, which ends the program. */
        self->inside++;
        rf_report_errno_spoiled(sig, rf_note_here((uintptr_t)handler + 1, 0, 0));
        self->inside--;
        errno = after;
    }
    rf_hot.top = handling.top;
    *rf_hot.top = half;
    self->ignore_reads = handling.ignore_reads;
    self->ignore_writes = handling.ignore_writes;
    self->ignore_sync = handling.ignore_sync;
}

/* A signal that had to wait: invariant 2. Pages come straight from the kernel: the guest's memory may be what was interrupted. */
struct kept {
    struct kept *older;
    int signal;
    uint64_t during; /* the mask under which the handler runs */
    siginfo_t info;
    ucontext_t context;
    struct _libc_fpstate floats;
};

static bool keep(struct rf_self *self, int sig, const siginfo_t *info, ucontext_t *context)
{
    long page = RF_SYSCALL(SYS_mmap, RF_PLANES_END, sizeof(struct kept), /* as guest/memory.c */
                           PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page < 0)
        return false;
    struct kept *kept = (struct kept *)page;
    kept->signal = sig;
    kept->info = *info;
    kept->context = *context;
    if (context->uc_mcontext.fpregs) {
        kept->floats = *context->uc_mcontext.fpregs;
        kept->context.uc_mcontext.fpregs = &kept->floats;
    }
    kept->during = set_mask(SIG_BLOCK, 0);
    *bits(&context->uc_sigmask) |= all_signals & ~FAULTS;
    kept->older = self->libc;
    self->libc = kept;
    self->pending_signals = 1;
    return true;
}

void rf_signals_deliver(void)
{
    struct rf_self *self = rf_hot.self;
    while (self && self->libc && !self->inside && !self->busy) {
        struct kept *page = self->libc, kept = *page; /* the handler may never come back */
        if (kept.context.uc_mcontext.fpregs)
            kept.context.uc_mcontext.fpregs = &kept.floats;
        self->libc = kept.older;
        self->pending_signals = self->libc != NULL;
        RF_SYSCALL(SYS_munmap, page, sizeof *page);
        struct rf_vectors vectors; /* the kernel would give them back, too */
        rf_vectors_keep(&vectors);
        set_mask(SIG_SETMASK, kept.during);
        run(self, kept.signal, &kept.info, &kept.context);
        rf_vectors_back(&vectors);
        set_mask(SIG_SETMASK, *bits(&kept.context.uc_sigmask));
        self = rf_hot.self;
    }
}

/* Nobody wants it: what the kernel would have done. */
static void as_default(int sig, const siginfo_t *info)
{
    struct { uintptr_t handler; unsigned long flags; uintptr_t restorer; uint64_t mask; } none = { 0, 0, 0, 0 };
    RF_SYSCALL(SYS_rt_sigaction, sig, &none, 0, sizeof none.mask);
    if (!is_fault(sig, info)) /* a fault comes again by itself */
        RF_SYSCALL(SYS_tgkill, getpid(), RF_SYSCALL(SYS_gettid, 0), sig);
}

static void arrive(int sig, siginfo_t *info, void *context)
{
    bool fault = is_fault(sig, info);
    if (fault && on_fault && on_fault(info, context))
        return;
    if (guarded(sig) && __atomic_load_n(&actions[sig].instead, __ATOMIC_ACQUIRE) != UINTPTR_MAX) {
        if (fault || actions[sig].instead == (uintptr_t)SIG_DFL)
            as_default(sig, info);
        return;
    }
    if (guarded(sig) && actions[sig].flags & SA_RESETHAND)
        __atomic_store_n(&actions[sig].instead, (uintptr_t)SIG_DFL, __ATOMIC_RELEASE);
    struct rf_self *self = rf_started ? rf_hot.self : NULL;
    if (self && !fault && (self->busy || self->inside) && keep(self, sig, info, context))
        return;
    run(self, sig, info, context);
}

void rf_signals_unsafe(const char *function, uintptr_t pc)
{
    static RF_TLS struct rf_frame *reported; /* what that function calls in its turn is not reported again */
    static RF_TLS uintptr_t reported_pc;
    struct rf_self *self = rf_hot.self;
    if (!self || self->inside || rf_handling->synchronous || !rf_options.report_signal_unsafe)
        return;
    if (reported && rf_hot.top > reported && reported > rf_handling->top && reported[-1].pc == reported_pc)
        return;
    reported = rf_hot.top;
    reported_pc = reported[-1].pc;
    int before = errno;
    self->inside++;
    rf_report_signal_unsafe(function, rf_handling->signal, rf_note_here(pc, 0, 0));
    self->inside--;
    errno = before;
}

void rf_signals_left(uintptr_t sp)
{
    for (struct rf_handling *handling; (handling = rf_handling);) {
        if (sp < (uintptr_t)handling && sp >= handling->stack) /* it stays within the handler */
            return;
        rf_handling = handling->outer;
        rf_hot.top = handling->top;
    }
}

const uint64_t *rf_signals_mask_outside(const struct rf_handling *kept)
{
    const uint64_t *mask = NULL;
    for (const struct rf_handling *handling = rf_handling; handling && handling != kept; handling = handling->outer)
        mask = handling->mask;
    return mask;
}

/* --- the table ------------------------------------------------------------------------------------------------------------- */

static uint64_t lock_table(void)
{
    uint64_t mask = rf_signals_block();
    uint32_t us = (uint32_t)RF_SYSCALL(SYS_getpid, 0), owner = 0;
    while (!__atomic_compare_exchange_n(&lock, &owner, us, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (owner == us) {
            rf_yield();
            owner = 0;
        } /* else it was copied by fork: taken over */
    }
    return mask;
}

static void unlock_table(uint64_t mask)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    set_mask(SIG_SETMASK, mask);
}

RF_INTERCEPT(int, sigaction, (int sig, const struct sigaction *act, struct sigaction *old));

static int install(int sig, const struct sigaction *act, struct sigaction *old)
{
    rf_fn_sigaction *real = RF_REAL(sigaction);
    if (sig <= 0 || sig >= SIGNALS)
        return real(sig, act, old);
    uint64_t mask = lock_table();
    struct action was = actions[sig], *now = &actions[sig];
    struct sigaction ours, before;
    if (act) {
        uintptr_t handler = (uintptr_t)act->sa_handler;
        bool function = handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN;
        ours = *act;
        if (function) {
            now->flags = act->sa_flags;
            __atomic_store_n(&now->handler, handler, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&now->instead, function ? UINTPTR_MAX : handler, __ATOMIC_RELEASE);
        if (function || guarded(sig)) {
            ours.sa_sigaction = arrive;
            ours.sa_flags |= SA_SIGINFO;
            if (guarded(sig)) /* a signal may interrupt the mending of a fault, and its handler may fault again */
                ours.sa_flags = (ours.sa_flags & ~SA_RESETHAND) | SA_NODEFER;
            if (on_fault)
                *bits(&ours.sa_mask) &= ~GUARDED;
        }
    }
    int result = real(sig, act ? &ours : NULL, &before);
    if (result) {
        *now = was;
    } else if (old) {
        if (before.sa_sigaction == arrive) {
            const int changed = SA_SIGINFO | (guarded(sig) ? SA_NODEFER | SA_RESETHAND : 0);
            before.sa_flags = (before.sa_flags & ~changed) | (was.flags & changed);
            before.sa_sigaction = (handler_fn *)(was.instead == UINTPTR_MAX ? was.handler : was.instead);
        }
        *old = before;
    }
    unlock_table(mask);
    return result;
}

void rf_signals_on_fault(bool (*ours)(siginfo_t *, void *))
{
    on_fault = ours;
    struct sigaction now;
    for (int sig = 1; sig < SIGNALS; sig++)
        if (GUARDED & BIT(sig) && !install(sig, NULL, &now))
            install(sig, &now, NULL);
}

static int install_seen(const struct rf_scope *scope, int sig, const struct sigaction *act, struct sigaction *old)
{
    if (scope->self && act) {
        rf_libc_access(scope, act, sizeof *act, 0);
        if (sig > 0 && sig < SIGNALS)
            rf_release((uintptr_t)&actions[sig], RF_O_USER);
    }
    int result = install(sig, act, old);
    if (scope->self && !result && old)
        rf_libc_access(scope, old, sizeof *old, RF_A_WRITE);
    return result;
}

static int rf_icpt_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct rf_scope scope = RF_ENTER(sigaction);
    int result = install_seen(&scope, sig, act, old);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, __sigaction, (int sig, const struct sigaction *act, struct sigaction *old))
{
    struct rf_scope scope = RF_ENTER(sigaction);
    int result = install_seen(&scope, sig, act, old);
    rf_leave(&scope);
    return result;
}

/* signal() and its like, which differ in flags. */
static sighandler_t install_simply(struct rf_scope scope, int sig, sighandler_t handler, int flags, bool blocks)
{
    struct sigaction act = { .sa_flags = flags }, old;
    act.sa_handler = handler;
    if (sig <= 0 || sig >= SIGNALS || handler == SIG_ERR) {
        errno = EINVAL;
        rf_leave(&scope);
        return SIG_ERR;
    }
    *bits(&act.sa_mask) = blocks ? BIT(sig) : 0;
    if (scope.self)
        rf_release((uintptr_t)&actions[sig], RF_O_USER);
    int result = install(sig, &act, &old);
    rf_leave(&scope);
    return result ? SIG_ERR : old.sa_handler;
}

#define BSD_FLAGS(sig) (__atomic_load_n(&interrupting, __ATOMIC_RELAXED) >> (((sig) - 1) & 63) & 1 ? 0 : SA_RESTART)
#define SYSV_FLAGS (SA_RESETHAND | SA_NODEFER)
RF_INTERCEPT(sighandler_t, signal, (int sig, sighandler_t handler))
{
    return install_simply(RF_ENTER(signal), sig, handler, BSD_FLAGS(sig), true);
}
RF_INTERCEPT(sighandler_t, bsd_signal, (int sig, sighandler_t handler))
{
    return install_simply(RF_ENTER(bsd_signal), sig, handler, BSD_FLAGS(sig), true);
}
RF_INTERCEPT(sighandler_t, ssignal, (int sig, sighandler_t handler))
{
    return install_simply(RF_ENTER(ssignal), sig, handler, BSD_FLAGS(sig), true);
}
RF_INTERCEPT(sighandler_t, sysv_signal, (int sig, sighandler_t handler))
{
    return install_simply(RF_ENTER(sysv_signal), sig, handler, SYSV_FLAGS, false);
}
RF_INTERCEPT(sighandler_t, __sysv_signal, (int sig, sighandler_t handler))
{
    return install_simply(RF_ENTER(__sysv_signal), sig, handler, SYSV_FLAGS, false);
}

RF_INTERCEPT(int, siginterrupt, (int sig, int flag))
{
    struct sigaction act;
    if (install(sig, NULL, &act))
        return -1;
    if (flag)
        __atomic_fetch_or(&interrupting, BIT(sig), __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&interrupting, ~BIT(sig), __ATOMIC_RELAXED);
    act.sa_flags = flag ? act.sa_flags & ~SA_RESTART : act.sa_flags | SA_RESTART;
    return install(sig, &act, NULL);
}

/* The old interface of System V: a disposition may be "held". */
RF_INTERCEPT(sighandler_t, sigset, (int sig, sighandler_t disposition))
{
    if (sig <= 0 || sig >= SIGNALS || disposition == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    if (disposition == SIG_HOLD) {
        struct sigaction old;
        if (set_mask(SIG_BLOCK, BIT(sig)) & BIT(sig))
            return SIG_HOLD;
        return install(sig, NULL, &old) ? SIG_ERR : old.sa_handler;
    }
    sighandler_t old = install_simply(RF_ENTER(sigset), sig, disposition, 0, false);
    if (old == SIG_ERR)
        return SIG_ERR;
    return set_mask(SIG_UNBLOCK, BIT(sig)) & BIT(sig) ? SIG_HOLD : old;
}

/* --- masks, waiting, sending ----------------------------------------------------------------------------------------------- */

#define CHANGES_MASK(name)                                                                    \
    RF_INTERCEPT(int, name, (int how, const sigset_t *set, sigset_t *old))                    \
    {                                                                                         \
        struct rf_scope scope = RF_ENTER(name);                                               \
        sigset_t allowed;                                                                     \
        if (scope.self)                                                                       \
            RO(set);                                                                          \
        if (set && on_fault && how != SIG_UNBLOCK) { /* invariant 3 */                        \
            allowed = *set;                                                                   \
            *bits(&allowed) &= ~GUARDED;                                                      \
            set = &allowed;                                                                   \
        }                                                                                     \
        int result = RF_REAL(name)(how, set, old);                                            \
        if (scope.self && !result)                                                            \
            WO(old);                                                                          \
        rf_leave(&scope);                                                                     \
        return result;                                                                        \
    }
CHANGES_MASK(sigprocmask)
CHANGES_MASK(pthread_sigmask)

static void received(const struct rf_scope *scope, int sig)
{
    if (scope->self && sig > 0 && sig < SIGNALS)
        rf_acquire((uintptr_t)&sent[sig], RF_O_USER);
}

#define WAITS(name, parameters, arguments, ok, sig, after)                                    \
    RF_INTERCEPT(int, name, parameters)                                                       \
    {                                                                                         \
        struct rf_scope scope = RF_ENTER(name);                                               \
        if (!scope.self)                                                                      \
            return RF_REAL(name) arguments;                                                   \
        RO(set);                                                                              \
        rf_park_here(scope.self);                                                             \
        int result = RF_REAL(name) arguments;                                                 \
        if (ok) {                                                                             \
            received(&scope, sig);                                                            \
            after;                                                                            \
        }                                                                                     \
        rf_leave(&scope);                                                                     \
        return result;                                                                        \
    }
WAITS(sigwait, (const sigset_t *set, int *sig), (set, sig), !result, *sig, WO(sig))
WAITS(sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info), result > 0, result, WO(info))
WAITS(sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *t), (set, info, t), result > 0, result, WO(info))
WAITS(sigsuspend, (const sigset_t *set), (set), false, 0, )

#define SENDS(name, parameters, arguments, to_self)                                           \
    RF_INTERCEPT(int, name, parameters)                                                       \
    {                                                                                         \
        struct rf_scope scope = RF_ENTER(name);                                               \
        if (scope.self && sig > 0 && sig < SIGNALS)                                           \
            rf_release((uintptr_t)&sent[sig], RF_O_USER);                                     \
        int before = raising;                                                                 \
        if (to_self)                                                                          \
            raising = sig;                                                                    \
        int result = RF_REAL(name) arguments;                                                 \
        raising = before;                                                                     \
        rf_leave(&scope);                                                                     \
        return result;                                                                        \
    }
SENDS(raise, (int sig), (sig), true)
SENDS(kill, (pid_t pid, int sig), (pid, sig), false)
SENDS(killpg, (pid_t group, int sig), (group, sig), false)
SENDS(tgkill, (pid_t group, pid_t thread, int sig), (group, thread, sig), thread == RF_SYSCALL(SYS_gettid, 0))
SENDS(pthread_kill, (pthread_t thread, int sig), (thread, sig), thread == pthread_self())
SENDS(sigqueue, (pid_t pid, int sig, const union sigval value), (pid, sig, value), false)
SENDS(pthread_sigqueue, (pthread_t thread, int sig, const union sigval value), (thread, sig, value), thread == pthread_self())
