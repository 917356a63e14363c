/* The table guest/libc.def as interceptors, and what its lines need beyond a word. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <grp.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <mntent.h>
#include <mqueue.h>
#include <net/ethernet.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <utime.h>
#include <utmp.h>
#include <utmpx.h>
#include <wchar.h>
#include <wordexp.h>

#include "guest/fd.h"
#include "guest/libc.h"
#include "guest/pacer.h"
#include "guest/policy.h"
#include "guest/refusal.h"
#include "guest/signals.h"

/* Hundreds of functions begin here: inlined in each this would be a quarter of their code. */
static __attribute__((noinline)) struct rf_scope enter(uintptr_t pc, uintptr_t caller, void *sp)
{
    return rf_enter(pc, caller, sp);
}

static __attribute__((noinline)) void leave(const struct rf_scope *scope)
{
    rf_leave(scope);
    rf_late_end(scope->self);
}

#undef RF_ENTER
#define RF_ENTER(name) enter((uintptr_t)&rf_icpt_##name, (uintptr_t)__builtin_return_address(0), __builtin_frame_address(0))

/* --- what lines call ------------------------------------------------------------------------------------------------------- */

#define UNSAFE rf_signal_unsafe(function, scope.pc)

#define FD_USE(fd) rf_fd_used(&scope, fd)
#define FD_ACQUIRE(fd) rf_fd_acquires(fd)
#define FD_RELEASE(fd) rf_fd_releases(fd)
#define FD_IN(fd, result) ((result) >= 0 ? FD_ACQUIRE(fd) : (void)0)
#define FD_OPEN(fd) rf_fd_opened(&scope, fd, RF_FD_FILE)
#define FD_SOCKET(fd) rf_fd_opened(&scope, fd, RF_FD_SOCKET)
#define FD_OWN(fd) rf_fd_opened(&scope, fd, RF_FD_OWN)
#define DIRFD(dir) (*(const int *)(dir)) /* glibc's DIR begins with it */

#define ORDER_ACQUIRE(addr) rf_acquire((uintptr_t)(addr), RF_O_USER)
#define ORDER_RELEASE(addr) rf_release((uintptr_t)(addr), RF_O_USER)
/* A queue of System V is known by a number: that many bytes into a place of ours. */
static char queues[4096];
#define QUEUE(number) (&queues[(unsigned)(number) % sizeof queues])

/* A stream: its first byte stands for its being open. What goes through buffers comes out of the descriptor when it will: order is
 * only told for what the descriptor is known to do, in and out. */
#define STREAM_USE(f) ((f) ? rf_access((uintptr_t)(f), 1, 0, scope.pc) : (void)0)
#define STREAM_END(f) rf_access((uintptr_t)(f), 1, RF_A_WRITE, scope.pc)
#define STREAM_NEW(f) ((f) ? rf_access((uintptr_t)(f), 1, RF_A_WRITE, scope.pc) : (void)0)
#define STREAM_OPEN(f) opened(&scope, f)
#define STREAM_CLOSE(f) closing(&scope, f)
#define STREAM_IN(f) FD_ACQUIRE(rf_stream_fd(f))
#define STREAM_OUT(f) FD_RELEASE(rf_stream_fd(f))

static void opened(const struct rf_scope *scope, FILE *f)
{
    if (!f)
        return;
    rf_fd_opened(scope, rf_stream_fd(f), RF_FD_FILE);
    if (f != stdin && f != stdout && f != stderr)
        rf_access((uintptr_t)f, 1, RF_A_WRITE, scope->pc);
}

/* The descriptor to be told of afterwards, or -1. */
static int closing(const struct rf_scope *scope, FILE *f)
{
    int fd = f ? rf_stream_fd(f) : -1;
    return rf_fd_closing(scope, fd) ? fd : -1;
}

static inline size_t seen(const char *text, size_t most)
{
    size_t length = rf_length_up_to(text, most);
    return length < most ? length + 1 : most;
}

static inline size_t least(ssize_t a, size_t b)
{
    return (size_t)a < b ? (size_t)a : b;
}

/* What a search for `what` in `text` has read of it. */
static void found(const struct rf_scope *scope, const char *text, const char *result, const char *what)
{
    rf_libc_access(scope, text, result ? (size_t)(result - text) + rf_length(what) : rf_length(text) + 1, 0);
}

/* strtok() keeps where it was in a variable of libc: two threads that use it disturb each other. */
static void token_state(const struct rf_scope *scope)
{
    static char state;
    rf_access((uintptr_t)&state, 1, RF_A_WRITE, scope->pc);
}

static inline size_t wide_length(const wchar_t *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

/* In bytes, with the end. */
static inline size_t wide(const wchar_t *text)
{
    return text ? (wide_length(text) + 1) * sizeof *text : 0;
}

static inline size_t wide_seen(const wchar_t *text, size_t most)
{
    size_t n = 0;
    while (text && n < most && text[n])
        n++;
    return (n + (n < most)) * sizeof *text;
}

static inline size_t wide_added(const wchar_t *text, size_t most)
{
    size_t n = 0;
    while (n < most && text[n])
        n++;
    return (n + 1) * sizeof *text;
}

static void wide_compared(const struct rf_scope *scope, const wchar_t *a, const wchar_t *b, size_t most)
{
    size_t n = 0;
    while (n < most && a[n] && a[n] == b[n])
        n++;
    n += n < most;
    rf_libc_access(scope, a, n * sizeof *a, 0);
    rf_libc_access(scope, b, n * sizeof *b, 0);
}

/* What atoi() reads: white space, a sign, digits, and the character behind them. */
static size_t number(const char *text)
{
    const char *s = text;
    while (*s == ' ' || (*s >= '\t' && *s <= '\r'))
        s++;
    s += *s == '+' || *s == '-';
    while (*s >= '0' && *s <= '9')
        s++;
    return (size_t)(s - text) + 1;
}

static void vector(const struct rf_scope *scope, const struct iovec *v, int count, ssize_t bytes, unsigned flags)
{
    if (count <= 0 || bytes <= 0)
        return;
    rf_libc_access(scope, v, (size_t)count * sizeof *v, 0);
    for (int i = 0; i < count && bytes > 0; i++) {
        size_t size = v[i].iov_len < (size_t)bytes ? v[i].iov_len : (size_t)bytes;
        rf_libc_access(scope, v[i].iov_base, size, flags);
        bytes -= (ssize_t)size;
    }
}

static void named(const struct rf_scope *scope, struct sockaddr *name, socklen_t *size)
{
    if (!name || !size)
        return;
    rf_libc_access(scope, size, sizeof *size, RF_A_WRITE);
    rf_libc_access(scope, name, *size < sizeof(struct sockaddr_storage) ? *size : sizeof(struct sockaddr_storage), RF_A_WRITE);
}

static void message_out(const struct rf_scope *scope, const struct msghdr *m)
{
    rf_libc_access(scope, m, sizeof *m, 0);
    rf_libc_access(scope, m->msg_name, m->msg_namelen, 0);
    rf_libc_access(scope, m->msg_control, m->msg_controllen, 0);
    vector(scope, m->msg_iov, (int)m->msg_iovlen, SSIZE_MAX, 0);
}

static void message_in(const struct rf_scope *scope, struct msghdr *m, ssize_t bytes)
{
    rf_libc_access(scope, m, sizeof *m, RF_A_WRITE);
    rf_libc_access(scope, m->msg_name, m->msg_namelen, RF_A_WRITE);
    rf_libc_access(scope, m->msg_control, m->msg_controllen, RF_A_WRITE);
    vector(scope, m->msg_iov, (int)m->msg_iovlen, bytes, RF_A_WRITE);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len < CMSG_LEN(0))
            continue;
        const int *fds = (const int *)CMSG_DATA(c); /* descriptors that came with it */
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof *fds; i++)
            rf_fd_opened(scope, fds[i], RF_FD_FILE);
    }
}

static void polling(const struct rf_scope *scope, const struct pollfd *p, nfds_t count)
{
    for (nfds_t i = 0; i < count; i++) {
        rf_libc_access(scope, &p[i], offsetof(struct pollfd, revents), 0);
        rf_fd_used(scope, p[i].fd);
    }
}

static void polled(const struct rf_scope *scope, struct pollfd *p, nfds_t count, int result)
{
    for (nfds_t i = 0; result >= 0 && i < count; i++) {
        if (p[i].revents)
            rf_fd_acquires(p[i].fd);
        rf_libc_access(scope, &p[i].revents, sizeof p[i].revents, RF_A_WRITE);
    }
}

static inline bool in_set(const fd_set *set, int fd)
{
    return set && ((const unsigned long *)(const void *)set)[fd / 64] >> fd % 64 & 1; /* FD_ISSET refuses numbers above 1023 */
}

static void selecting(const struct rf_scope *scope, int count, fd_set *r, fd_set *w, fd_set *e)
{
    size_t size = count > 0 ? ((size_t)count + 63) / 64 * 8 : 0;
    rf_libc_access(scope, r, size, 0);
    rf_libc_access(scope, w, size, 0);
    rf_libc_access(scope, e, size, 0);
    for (int fd = 0; fd < count; fd++)
        if (in_set(r, fd) || in_set(w, fd) || in_set(e, fd))
            rf_fd_used(scope, fd);
}

static void selected(const struct rf_scope *scope, int count, fd_set *r, fd_set *w, fd_set *e, int result)
{
    if (result < 0)
        return;
    for (int fd = 0; result && fd < count; fd++)
        if (in_set(r, fd) || in_set(e, fd))
            rf_fd_acquires(fd);
    size_t size = count > 0 ? ((size_t)count + 63) / 64 * 8 : 0;
    rf_libc_access(scope, r, size, RF_A_WRITE);
    rf_libc_access(scope, w, size, RF_A_WRITE);
    rf_libc_access(scope, e, size, RF_A_WRITE);
}

static void globbed(const struct rf_scope *scope, const glob_t *g)
{
    rf_libc_access(scope, g, sizeof *g, RF_A_WRITE);
    if (g->gl_pathv)
        rf_libc_access(scope, g->gl_pathv, (g->gl_pathc + 1) * sizeof *g->gl_pathv, RF_A_WRITE);
}

/* --- the table ------------------------------------------------------------------------------------------------------------- */

/* errno is the real function's: nothing of what comes after calls anything that sets it. A signal that came while a report was made
 * is delivered before the function, which may wait for it. */
static __attribute__((noinline)) void waiting_signals(struct rf_self *self)
{
    if (__builtin_expect(self->pending_signals, 0))
        rf_signals_deliver();
    rf_park_here(self);
}

#define FN(type, name, parameters, arguments, before, after)             \
    RF_INTERCEPT(type, name, parameters)                                 \
    {                                                                    \
        static const char function[] __attribute__((unused)) = #name;    \
        struct rf_scope scope = RF_ENTER(name);                          \
        if (!scope.self)                                                 \
            return RF_REAL(name) arguments;                              \
        before;                                                          \
        waiting_signals(scope.self);                                     \
        type result = RF_REAL(name) arguments;                           \
        rf_late_begin(scope.self);                                       \
        after;                                                           \
        leave(&scope);                                                   \
        return result;                                                   \
    }

#define VOID(name, parameters, arguments, before, after)                 \
    RF_INTERCEPT(void, name, parameters)                                 \
    {                                                                    \
        static const char function[] __attribute__((unused)) = #name;    \
        struct rf_scope scope = RF_ENTER(name);                          \
        if (!scope.self) {                                               \
            RF_REAL(name) arguments;                                     \
            return;                                                      \
        }                                                                \
        before;                                                          \
        waiting_signals(scope.self);                                     \
        RF_REAL(name) arguments;                                         \
        rf_late_begin(scope.self);                                       \
        after;                                                           \
        leave(&scope);                                                   \
    }

#define QUIET(type, name, parameters, arguments, before, after)          \
    RF_INTERCEPT(type, name, parameters)                                 \
    {                                                                    \
        static const char function[] __attribute__((unused)) = #name;    \
        struct rf_scope scope = RF_ENTER(name);                          \
        if (!scope.self)                                                 \
            return RF_REAL(name) arguments;                              \
        before;                                                          \
        waiting_signals(scope.self);                                     \
        rf_quiet_begin(scope.self);                                      \
        type result = RF_REAL(name) arguments;                           \
        rf_quiet_end(scope.self);                                        \
        rf_late_begin(scope.self);                                       \
        after;                                                           \
        leave(&scope);                                                   \
        return result;                                                   \
    }

#define QUIET_VOID(name, parameters, arguments, before, after) \
    VOID(name, parameters, arguments, before; rf_quiet_begin(scope.self), rf_quiet_end(scope.self); after)

/* The end is asked for even if the program does not want it. */
#define NUMBER(type, name, letter, parameters, arguments)                \
    RF_INTERCEPT(type, name, parameters)                                 \
    {                                                                    \
        letter *stop = NULL;                                             \
        struct rf_scope scope = RF_ENTER(name);                          \
        type result = RF_REAL(name) arguments;                           \
        if (scope.self) {                                                \
            if (stop)                                                    \
                R(s, ((size_t)(stop - s) + 1) * sizeof *s);              \
            WO(end);                                                     \
            rf_leave(&scope);                                            \
        }                                                                \
        if (end)                                                         \
            *end = stop;                                                 \
        return result;                                                   \
    }

/* Prototypes that these headers give in other words, or not at all, are ours. */
#include "guest/libc.def"

/* --- with a variable number of arguments ----------------------------------------------------------------------------------- */

#define OPENS(name, parameters, arguments, fixed)                        \
    RF_INTERCEPT(int, name, parameters)                                  \
    {                                                                    \
        mode_t mode = 0;                                                 \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {       \
            __builtin_va_list list;                                      \
            __builtin_va_start(list, flags);                             \
            mode = __builtin_va_arg(list, mode_t);                       \
            __builtin_va_end(list);                                      \
        }                                                                \
        struct rf_scope scope = RF_ENTER(name);                          \
        if (!scope.self)                                                 \
            return RF_REAL(name) arguments;                              \
        RS(path);                                                        \
        int result = RF_REAL(name) arguments;                            \
        FD_OPEN(result);                                                 \
        rf_leave(&scope);                                                \
        return result;                                                   \
    }
OPENS(open, (const char *path, int flags, ...), (path, flags, mode), )
OPENS(open64, (const char *path, int flags, ...), (path, flags, mode), )
OPENS(__open, (const char *path, int flags, ...), (path, flags, mode), )
OPENS(__open64, (const char *path, int flags, ...), (path, flags, mode), )
OPENS(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode), )
OPENS(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode), )

static long one_argument(__builtin_va_list list)
{
    return __builtin_va_arg(list, long);
}

#define FCNTL(name)                                                      \
    RF_INTERCEPT(int, name, (int fd, int command, ...))                  \
    {                                                                    \
        __builtin_va_list list;                                          \
        __builtin_va_start(list, command);                               \
        long argument = one_argument(list);                              \
        __builtin_va_end(list);                                          \
        struct rf_scope scope = RF_ENTER(name);                          \
        if (!scope.self)                                                 \
            return RF_REAL(name)(fd, command, argument);                 \
        FD_USE(fd);                                                      \
        bool lock = command == F_GETLK || command == F_SETLK || command == F_SETLKW; \
        if (lock)                                                        \
            R((struct flock *)argument, sizeof(struct flock));           \
        int result = RF_REAL(name)(fd, command, argument);               \
        if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) \
            rf_fd_copied(&scope, fd, result);                            \
        if (result >= 0 && command == F_GETLK)                           \
            W((struct flock *)argument, sizeof(struct flock));           \
        rf_leave(&scope);                                                \
        return result;                                                   \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

/* Requests that say in their number what they read and write, and the old ones that do not. */
static size_t ioctl_reads(unsigned long request, size_t *writes)
{
    *writes = 0;
    switch (request) {
    case TCGETS:
        *writes = 36; /* the kernel's struct termios */
        return 0;
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
        return 36;
    case TIOCGWINSZ:
        *writes = sizeof(struct winsize);
        return 0;
    case TIOCSWINSZ:
        return sizeof(struct winsize);
    case FIONREAD:
    case TIOCOUTQ:
    case TIOCGPGRP:
    case TIOCMGET:
        *writes = sizeof(int);
        return 0;
    case FIONBIO:
    case FIOASYNC:
    case TIOCSPGRP:
    case TIOCMSET:
        return sizeof(int);
    default:
        break;
    }
    if (request >> 32 || !(request >> 30) || _IOC_TYPE(request) == 'T')
        return 0;
    *writes = _IOC_DIR(request) & _IOC_READ ? _IOC_SIZE(request) : 0;
    return _IOC_DIR(request) & _IOC_WRITE ? _IOC_SIZE(request) : 0;
}

RF_INTERCEPT(int, ioctl, (int fd, unsigned long request, ...))
{
    __builtin_va_list list;
    __builtin_va_start(list, request);
    long argument = one_argument(list);
    __builtin_va_end(list);
    struct rf_scope scope = RF_ENTER(ioctl);
    if (!scope.self)
        return RF_REAL(ioctl)(fd, request, argument);
    size_t writes, reads = ioctl_reads(request, &writes);
    FD_USE(fd);
    R((void *)argument, reads);
    int result = RF_REAL(ioctl)(fd, request, argument);
    if (result >= 0)
        W((void *)argument, writes);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, prctl, (int option, ...))
{
    __builtin_va_list list;
    __builtin_va_start(list, option);
    unsigned long a[4];
    for (int i = 0; i < 4; i++)
        a[i] = __builtin_va_arg(list, unsigned long);
    __builtin_va_end(list);
    struct rf_scope scope = RF_ENTER(prctl);
    enum { SET_NAME = 15, GET_NAME = 16, SET_SECCOMP = 22, SET_NO_NEW_PRIVILEGES = 38, NAME_SIZE = 16 };
    if (scope.self && option == SET_NAME)
        R((void *)a[0], seen((const char *)a[0], NAME_SIZE));
    if (scope.self && (option == SET_SECCOMP || option == SET_NO_NEW_PRIVILEGES)) /* one comes before every filter of system calls */
        rf_pacer_confined(scope.self);
    int result = RF_REAL(prctl)(option, a[0], a[1], a[2], a[3]);
    if (scope.self && option == GET_NAME && !result)
        W((void *)a[0], NAME_SIZE);
    rf_leave(&scope);
    return result;
}
