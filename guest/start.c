/* The beginning and the end of the guest.
 *
 * 1. __tsan_init is called from .preinit_array, before libc knows its environment, and again by every instrumented file; hooks may be
 *    called even earlier, by resolvers of indirect functions. Until rf_start() has run they find a plane of one word of zeros and
 *    a thread without frames, and return.
 * 2. rf_start() runs once, on the thread that comes first; there is no other thread yet, except when the library was loaded by
 *    dlopen(), where the loader's lock keeps others out.
 * 3. The end: the first of exit(), _exit(), quick_exit() or the destructors makes the final report and decides the status.
 */
#include "guest/start.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <stdlib.h>
#include <unistd.h>

#include "guest/access.h"
#include "guest/atomics.h"
#include "guest/caper.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/moments.h"
#include "guest/near.h"
#include "guest/online.h"
#include "guest/options.h"
#include "guest/planes.h"
#include "guest/policy.h"
#include "guest/record.h"
#include "guest/refusal.h"
#include "guest/report.h"
#include "guest/system.h"
#include "guest/threads.h"
#include "guest/unchecked.h"

uint64_t rf_seen_nothing[2 * RF_SEEN];
const struct rf_fresh rf_fresh_nothing;
RF_TLS struct rf_hot rf_hot = RF_HOT_NONE;
int rf_started;

/* What the hooks of the first form use (guest/hooks.S, 1). */
static uint64_t no_word;
RF_MODE struct rf_plane rf_plane_now = { 0, &no_word };
extern struct rf_plane rf_plane __attribute__((alias("rf_plane_now"), visibility("default")));

static enum { NOT_YET, STARTING, RUNS, REFUSED } state;

/* This library from its first byte to its last. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

/* Usually we come before libc. Where only a library of the program's, or one that was loaded late, brought us along, we come after it. */
void *rf_find_real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        found = dlsym(RTLD_DEFAULT, name);
        if ((const char *)found >= __ehdr_start && (const char *)found < _end)
            found = NULL;
    }
    if (!found)
        rf_die("%s() was called, which no library after this one has", name);
    return found;
}

void *rf_find_real_version(const char *name, const char *version)
{
    void *found = dlvsym(RTLD_NEXT, name, version);
    return found ? found : rf_find_real(name);
}

/* The linker's: every RF_INTERCEPT(). */
extern const struct rf_real_place __start_rf_reals[] RF_OURS, __stop_rf_reals[] RF_OURS;

void rf_find_all_real(void)
{
    static bool done;
    if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        return;
    for (const struct rf_real_place *real = __start_rf_reals; real < __stop_rf_reals; real++) {
        if (__atomic_load_n(real->place, __ATOMIC_RELAXED))
            continue;
        void *found = real->version ? dlvsym(RTLD_NEXT, real->name, real->version) : dlsym(RTLD_NEXT, real->name);
        __atomic_store_n(real->place, found, __ATOMIC_RELAXED); /* NULL: of a library that is not there */
    }
    dlerror(); /* that some are not there is no error of the program's */
    __atomic_store_n(&done, true, __ATOMIC_RELEASE);
}

/* The environment as the kernel gave it: libc's own variable is not set this early. */
static char **environment_block(void)
{
    static char text[128 << 10];
    static char *list[4096];
    extern char **environ;
    if (environ)
        return environ;
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return list;
    size_t length = 0;
    for (long got; length < sizeof text - 1 && (got = RF_SYSCALL(SYS_read, fd, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    RF_SYSCALL(SYS_close, fd);
    size_t count = 0;
    for (size_t at = 0; at < length && count < sizeof list / sizeof *list - 1; at++)
        if (at == 0 || !text[at - 1])
            list[count++] = text + at;
    return list;
}

/* guest/signals.c */
void rf_signals_on_fault(bool (*ours)(siginfo_t *, void *));

static bool mend_fault(siginfo_t *info, void *context)
{
    (void)context;
    return rf_planes_fault((uintptr_t)info->si_addr);
}

/* What the program may have: called when the guest has started, and before it ends, with whether something was reported. What the
 * second returns takes the place of that. */
extern void __tsan_on_initialize(void) __attribute__((weak, visibility("default")));
extern int __tsan_on_finalize(int failed) __attribute__((weak, visibility("default")));

/* quick_exit() runs what was registered for it, ours last since it came first. glibc's name for at_quick_exit(). */
extern int __cxa_at_quick_exit(void (*function)(void *), void *library);
static void end_quickly(void *unused);

int rf_start(void)
{
    if (__builtin_expect(state != NOT_YET, 1))
        return state == RUNS;
    state = STARTING;
    rf_options_read(environment_block());
    if (!rf_planes_begin())
        rf_die("cannot start: the addresses 0x%zx to 0x%zx are taken; see `redflag doctor`", (size_t)RF_PATCHES, (size_t)RF_PLANES_END);
    if (rf_planes_lazy())
        rf_signals_on_fault(mend_fault);
    rf_world_begin();
    rf_depot_begin();
    rf_moments_begin();
    rf_online_begin(environment_block());
    rf_caper_begin(environment_block());
    rf_policy_begin();
    rf_record_begin(environment_block());
    rf_refusal_begin();
    rf_atomics_begin();
    rf_plane_now = (struct rf_plane){ RF_ADDRESS_MASK, (uint64_t *)RF_WORDS };
    state = RUNS;
    rf_started = 1;
    rf_self_attach();
    __cxa_at_quick_exit(end_quickly, NULL);
    rf_module_loaded();
    if (rf_options.verbosity)
        rf_say("runs with %s%s", rf_options.detector, rf_planes_lazy() ? ", histories mapped page by page" : "");
    if (&__tsan_on_initialize)
        __tsan_on_initialize();
    return 1;
}

RF_EXPORT void __tsan_init(void);
void __tsan_init(void)
{
    if (rf_start())
        rf_module_begins();
}

static __attribute__((constructor(101))) void begin(void)
{
    rf_start();
}

/* guest/threads.c */
void rf_threads_leaks(void) __attribute__((weak));

static int ended;

/* The status of a program that would have ended with `own`. */
static int final_status(int own)
{
    int status = rf_report_finish(own), failed = status != own;
    if (!&__tsan_on_finalize)
        return status;
    int decided = __tsan_on_finalize(failed);
    if (!decided == !failed)
        return status;
    return decided ? rf_options.exitcode : own;
}

/* The status to exit with. Only the first caller reports. */
static int finish(int status)
{
    if (!rf_started || __atomic_exchange_n(&ended, 1, __ATOMIC_ACQ_REL))
        return status;
    struct rf_self *self = rf_self();
    if (self)
        self->inside++;
    if (rf_threads_leaks)
        rf_threads_leaks();
    if (rf_moments_lost)
        rf_say("%zu accesses were not looked at: histories named more than %u places at once", (size_t)rf_moments_lost,
               1u << RF_MOMENT_BITS);
    rf_online_finish(self);
    rf_caper_finish();
    rf_online_statistics();
    rf_unchecked_statistics();
    if (rf_options.stats)
        rf_policy_print();
    return final_status(status);
}

#include "guest/ends.inc"
