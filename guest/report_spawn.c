/* The reporter: another process, which is started when the first report is made.
 *
 * 1. It must not be seen by the program: it is nobody's child (its parent ends at once, and that one is reaped here; it has no
 *    SIGCHLD), holds none of the program's descriptors, is in a session of its own, and starts with default signals and an
 *    environment of a few harmless variables.
 * 2. It is started like by vfork(): both processes between us and it share our memory and run on a stack of their own, with all
 *    signals blocked until none of the program's handlers is left. Nothing of libc is called there.
 * 3. The program may close our end of the socket (a loop over all descriptors), and open something else under its number: it is ours
 *    only while it is the same socket. Then another reporter is started.
 * 4. SIGPIPE never reaches the program: MSG_NOSIGNAL.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/maps.h"
#include "guest/options.h"
#include "guest/report_parts.h"
#include "guest/system.h"
#include "guest/text.h"

#define PATIENCE_MS 120000 /* the debugging information of a browser is read in less */
#define STACK (64u << 10)

static struct {
    int fd; /* our end, while `runs` */
    bool runs, failed;
    bool had_one; /* and lost it: the next goes on where it ended */
    dev_t device;
    ino_t inode;
} reporter;

bool rf_report_failed;

struct start {
    const char *path;
    const char *arguments[3];
    const char **environment;
    int socket;
    volatile int error; /* of execve; written by the new process in our memory */
    char *stack;        /* for the process that becomes the reporter */
};

/* Runs `run` in a new process that shares our memory, and waits until it has ended or executes another program. */
static long run_apart(int (*run)(void *), void *argument, char *top)
{
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    long result;
    void **stack = (void **)((uintptr_t)top & ~(uintptr_t)15);
    *--stack = argument;
    *--stack = (void *)run;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "pop %%rax\n\t"
                     "pop %%rdi\n\t"
                     "call *%%rax\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(CLONE_VM | CLONE_VFORK), "S"(stack), "d"(0L), "r"(r10),
                       "r"(r8), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
}

/* Invariant 1, in the process that becomes the reporter. */
static int become_reporter(void *argument)
{
    struct start *start = argument;
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } usual = { 0 };
    unsigned long none = 0;
    RF_SYSCALL(SYS_setsid, 0);
    for (int signal = 1; signal <= 64; signal++)
        RF_SYSCALL(SYS_rt_sigaction, signal, &usual, 0, 8);
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
    RF_SYSCALL(SYS_dup2, start->socket, 0);
    long null = RF_SYSCALL(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    if (null >= 0) {
        RF_SYSCALL(SYS_dup2, null, 1);
        RF_SYSCALL(SYS_dup2, null, 2);
    }
    if (RF_SYSCALL(SYS_close_range, 3, ~0u, 0) < 0)
        for (int fd = 3; fd < 65536; fd++)
            RF_SYSCALL(SYS_close, fd);
    start->error = (int)-RF_SYSCALL(SYS_execve, start->path, start->arguments, start->environment);
    return 127;
}

static int leave_reporter(void *argument)
{
    struct start *start = argument;
    return run_apart(become_reporter, start, start->stack + STACK) < 0 ? 126 : 0;
}

/* ---- where it is ---- */

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

/* The file that this library is in, by the kernel's own name: not through links. */
static bool own_path(char *path, size_t size)
{
    struct rf_mapping *mapping = rf_scratch(sizeof *mapping);
    if (!rf_mapping_at((uintptr_t)&own_path, mapping) || mapping->path[0] != '/' || length_of(mapping->path) >= size)
        return false;
    rf_format(path, size, "%s", mapping->path);
    return true;
}

static void cut_last_part(char *path)
{
    size_t length = length_of(path);
    while (length && path[length - 1] != '/')
        length--;
    path[length ? length - 1 : 0] = 0;
}

/* An option written for ThreadSanitizer names a symbolizer, which is no reporter. */
static bool is_symbolizer(const char *path)
{
    for (; *path; path++)
        if (rf_text_begins(path, "symbolizer") || rf_text_begins(path, "addr2line"))
            return true;
    return false;
}

/* The i-th place to look at; "" if it is none, NULL after the last. */
static const char *candidate(unsigned i, char *path, size_t size)
{
    extern char **environ;
    const char *named;
    switch (i) {
    case 0:
        named = rf_options.external_symbolizer_path;
        return is_symbolizer(named) ? "" : named;
    case 1:
        named = environ ? rf_environment(environ, "REDFLAG_HELPER") : NULL;
        return named ? named : "";
    case 2:
    case 3:
    case 4:
        if (!own_path(path, size))
            return "";
        cut_last_part(path);
        cut_last_part(path);
        if (i == 4) /* lib/redflag/libredflag-rt.so.0, lib/x86_64-linux-gnu/... */
            cut_last_part(path);
        rf_format(path + length_of(path), size - length_of(path), "%s", i == 3 ? "/redflag" : "/bin/redflag");
        return path;
    default:
        return NULL;
    }
}

/* ---- starting it ---- */

static bool start_program(const char *path, int socket)
{
    extern char **environ;
    static const char *const kept[] = { "PATH=", "HOME=", "LANG=", "LC_", "TERM=", "TMPDIR=" };
    struct start start = { .path = path, .arguments = { "redflag", "reporter", NULL }, .socket = socket };
    size_t variables = 0, count = 0;
    while (environ && environ[variables])
        variables++;
    start.environment = rf_scratch((variables + 1) * sizeof *start.environment);
    for (size_t i = 0; i < variables; i++)
        for (size_t j = 0; j < sizeof kept / sizeof *kept; j++)
            if (rf_text_begins(environ[i], kept[j]))
                start.environment[count++] = environ[i];
    start.environment[count] = NULL;
    char *stacks = rf_pages(2 * STACK);
    start.stack = stacks;
    uint64_t all = ~0ull, before;
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    long child = run_apart(leave_reporter, &start, stacks + 2 * STACK);
    int status = -1;
    if (child > 0)
        while (RF_SYSCALL(SYS_wait4, child, &status, __WALL, 0) == -EINTR)
            ;
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
    rf_pages_back(stacks, 2 * STACK);
    return child > 0 && !start.error && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- talking to it ---- */

static bool still_ours(void)
{
    struct stat facts;
    return reporter.runs && RF_SYSCALL(SYS_fstat, reporter.fd, &facts) == 0 && facts.st_dev == reporter.device &&
           facts.st_ino == reporter.inode;
}

bool rf_reporter_runs(void)
{
    return still_ours();
}

void rf_reporter_forget(void)
{
    if (still_ours())
        RF_SYSCALL(SYS_close, reporter.fd);
    reporter.runs = false;
    rf_modules_forget();
}

void rf_reporter_fork_child(void)
{
    rf_reporter_forget();
    reporter.had_one = reporter.failed = false;
}

/* `stream` goes with the first part, -1: none. */
static bool tell(const char *text, size_t length, int stream)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .bytes = { 0 } };
    while (length) {
        struct iovec vector = { (char *)text, length };
        struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
        if (stream >= 0) {
            message.msg_control = &control;
            message.msg_controllen = sizeof control;
            control.header.cmsg_level = SOL_SOCKET;
            control.header.cmsg_type = SCM_RIGHTS;
            control.header.cmsg_len = CMSG_LEN(sizeof(int));
            *(int *)(void *)CMSG_DATA(&control.header) = stream;
        }
        long sent = RF_SYSCALL(SYS_sendmsg, reporter.fd, &message, MSG_NOSIGNAL);
        if (sent == -EBADF && stream >= 0) { /* the program has closed it: nobody wants to read */
            stream = -1;
            continue;
        }
        if (sent == -EINTR)
            continue;
        if (sent <= 0)
            return false;
        stream = -1;
        text += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool hear(char *answer, size_t size)
{
    size_t length = 0;
    while (length < size - 1) {
        struct pollfd ready = { reporter.fd, POLLIN, 0 };
        struct timespec patience = { PATIENCE_MS / 1000, 0 };
        long events = RF_SYSCALL(SYS_ppoll, &ready, 1, &patience, 0, 8);
        if (events == -EINTR)
            continue;
        if (events <= 0)
            return false;
        long got = RF_SYSCALL(SYS_recvfrom, reporter.fd, answer + length, size - 1 - length, 0, 0, 0);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            return false;
        length += (size_t)got;
        if (answer[length - 1] == '\n') {
            answer[length - 1] = 0;
            return true;
        }
    }
    return false;
}

static bool ask(const struct rf_wire *wire, int stream, char *answer, size_t size)
{
    return tell(wire->text, wire->length, stream) && hear(answer, size);
}

extern const char *__tsan_default_suppressions(void) __attribute__((weak, visibility("default")));

static void put_path_option(struct rf_wire *wire, const char *name, const char *path)
{
    const char *directory = rf_report_directory();
    bool relative = path[0] && path[0] != '/' && directory[0];
    char *whole = rf_scratch(length_of(directory) + length_of(path) + 2);
    rf_format(whole, length_of(directory) + length_of(path) + 2, "%s%s%s", relative ? directory : "", relative ? "/" : "",
              path);
    rf_wire_add(wire, "option %s ", name);
    rf_wire_text(wire, whole);
}

static void put_hello(struct rf_wire *wire)
{
    rf_wire_add(wire, "redflag %d hello\npid %d\nresumed %d\n", RF_WIRE_VERSION, (int)RF_SYSCALL(SYS_getpid, 0),
                reporter.had_one);
#define BOOL(name) rf_wire_add(wire, "option " #name " %d\n", rf_options.name)
#define TEXT(name) (rf_wire_add(wire, "option " #name " "), rf_wire_text(wire, rf_options.name))
    TEXT(format);
    TEXT(report_style);
    TEXT(strip_path_prefix);
    TEXT(stack_trace_format);
    TEXT(color);
    BOOL(print_suppressions);
    BOOL(gen_suppressions);
    BOOL(second_deadlock_stack);
    const char *log = rf_options.log_path;
    if ((rf_text_begins(log, "stderr") || rf_text_begins(log, "stdout")) && !log[6])
        TEXT(log_path);
    else
        put_path_option(wire, "log_path", log);
    put_path_option(wire, "output", rf_options.output);
    put_path_option(wire, "suppressions", rf_options.suppressions);
#undef BOOL
#undef TEXT
    for (const char *own = __tsan_default_suppressions ? __tsan_default_suppressions() : NULL; own && *own;) {
        const char *end = own;
        while (*end && *end != '\n')
            end++;
        char *line = rf_scratch((size_t)(end - own) + 1);
        rf_format(line, (size_t)(end - own) + 1, "%.*s", (int)(end - own), own);
        rf_wire_add(wire, "suppress ");
        rf_wire_text(wire, line);
        own = *end ? end + 1 : end;
    }
    rf_wire_add(wire, "end\n");
}

/* A number that the program is unlikely to count on. */
static int out_of_the_way(int fd)
{
    long high = RF_SYSCALL(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 960);
    if (high < 0)
        return fd;
    RF_SYSCALL(SYS_close, fd);
    return (int)high;
}

static bool try_candidate(const char *path, char *answer, size_t size)
{
    int ends[2];
    struct stat facts;
    if (RF_SYSCALL(SYS_faccessat, AT_FDCWD, path, X_OK) < 0 ||
        RF_SYSCALL(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    bool started = start_program(path, ends[1]);
    RF_SYSCALL(SYS_close, ends[1]);
    reporter.fd = out_of_the_way(ends[0]);
    if (started && RF_SYSCALL(SYS_fstat, reporter.fd, &facts) == 0) {
        reporter.device = facts.st_dev;
        reporter.inode = facts.st_ino;
        struct rf_wire wire = { 0 };
        put_hello(&wire);
        reporter.runs = ask(&wire, -1, answer, size);
        rf_wire_free(&wire);
    }
    if (!reporter.runs)
        RF_SYSCALL(SYS_close, reporter.fd);
    rf_modules_forget();
    return reporter.runs;
}

/* false: there is none, and will be none. */
static bool have_reporter(void)
{
    char answer[1024] = "";
    if (still_ours())
        return true;
    reporter.runs = false;
    if (reporter.failed)
        return false;
    char *path = rf_scratch(4200);
    for (unsigned i = 0;; i++) {
        const char *named = candidate(i, path, 4200);
        if (!named)
            break;
        if (!*named || !try_candidate(named, answer, sizeof answer))
            continue;
        reporter.had_one = true;
        if (rf_text_begins(answer, "bad "))
            rf_die("%s", answer + 4);
        return true;
    }
    reporter.failed = true;
    rf_say("the program that prints reports, redflag, was not found or does not start; frames are shown without names"
           " (REDFLAG_HELPER may name it)");
    return false;
}

enum rf_answer rf_reporter_report(const struct rf_record *record, char *text, size_t size)
{
    char answer[1100] = "";
    struct rf_wire wire = { 0 };
    text[0] = 0;
    if (!have_reporter())
        return RF_LOST;
    rf_wire_record(&wire, record);
    bool heard = ask(&wire, rf_report_stream(), answer, sizeof answer);
    rf_wire_free(&wire);
    if (!heard) {
        rf_reporter_forget();
        rf_say("the program that prints reports has ended before its time");
        return RF_LOST;
    }
    rf_modules_told();
    if (rf_text_begins(answer, "failed ")) {
        if (!rf_report_failed)
            rf_say("%s", answer + 7);
        rf_report_failed = true;
        return RF_LOST;
    }
    const char *rest = answer;
    while (*rest && *rest != ' ')
        rest++;
    rf_format(text, size, "%s", *rest ? rest + 1 : "");
    return rf_text_begins(answer, "suppressed") ? RF_SUPPRESSED : RF_SHOWN;
}

bool rf_reporter_finish(const struct rf_wire *counts)
{
    char answer[1100] = "";
    if (!have_reporter())
        return true;
    bool heard = ask(counts, rf_report_stream(), answer, sizeof answer);
    rf_reporter_forget();
    if (heard && rf_text_begins(answer, "failed ") && !rf_report_failed)
        rf_say("%s", answer + 7);
    return heard && rf_text_begins(answer, "done");
}
