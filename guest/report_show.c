/* Showing a report: to the reporter, or to the user directly; what was shown, and what that makes of the end of the program.
 *
 * 1. One report at a time: the caller sees to that. Counts may change at any time.
 * 2. Nothing here knows how races are found, or threads: every library of ours that reports has it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/intercept.h"
#include "guest/options.h"
#include "guest/report_parts.h"
#include "guest/system.h"

struct rf_report_counts rf_report_counts;

static const struct rf_record *current; /* while the program is told of it */
const struct rf_record *rf_report_current(void)
{
    return current;
}

/* The program may have its own of these. */
RF_EXPORT __attribute__((weak)) void __tsan_on_report(void *report);
void __tsan_on_report(void *report)
{
    (void)report;
}

RF_EXPORT __attribute__((weak)) void __sanitizer_report_error_summary(const char *summary);
void __sanitizer_report_error_summary(const char *summary)
{
    (void)summary;
}

static void (*death_callback)(void);
RF_EXPORT __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));
void __sanitizer_set_death_callback(void (*callback)(void))
{
    death_callback = callback;
}

/* What was counted, and the end of the reporter. */
static void sum_up(void)
{
    struct rf_wire wire = { 0 };
    rf_wire_add(&wire, "redflag %d finish\n", RF_WIRE_VERSION);
#define COUNT(name, value)                                                                                                  \
    if (value)                                                                                                              \
    rf_wire_add(&wire, "count %s %lu\n", name, (unsigned long)(value))
    COUNT("repeated", rf_report_counts.repeated);
    COUNT("other-races-at-reported-addresses", rf_report_counts.same_address);
    COUNT("found-while-reporting", rf_report_counts.interrupted);
#undef COUNT
    rf_wire_add(&wire, "end\n");
    if (!rf_reporter_finish(&wire))
        rf_report_failed = true;
    rf_wire_free(&wire);
}

_Noreturn void rf_halt(bool aborts)
{
    if (rf_reporter_runs() && rf_options.report_style[0] != 't') /* ThreadSanitizer says nothing more */
        sum_up();
    rf_reporter_forget();
    int status = rf_report_failed ? RF_FAILURE : rf_options.exitcode;
    if (death_callback)
        death_callback();
    if (aborts) {
        struct {
            void *handler;
            unsigned long flags;
            void *restorer;
            unsigned long mask;
        } usual = { 0 };
        uint64_t only_abort = ~(1ull << (SIGABRT - 1));
        RF_SYSCALL(SYS_rt_sigaction, SIGABRT, &usual, 0, 8);
        RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &only_abort, 0, 8);
        RF_SYSCALL(SYS_tgkill, RF_SYSCALL(SYS_getpid, 0), RF_SYSCALL(SYS_gettid, 0), SIGABRT);
    }
    for (;;)
        RF_SYSCALL(SYS_exit_group, status);
}

static int stream_override = -1;

int rf_report_stream(void)
{
    if (stream_override >= 0)
        return stream_override;
    const char *log = rf_options.log_path;
    return log[0] == 's' && log[1] == 't' && log[2] == 'd' && log[3] == 'o' ? STDOUT_FILENO : STDERR_FILENO;
}

bool rf_report_show(struct rf_record *record)
{
    char summary[1024];
    enum rf_answer answer = rf_reporter_report(record, summary, sizeof summary);
    if (answer == RF_LOST)
        rf_record_say(record, rf_report_stream());
    if (answer == RF_SUPPRESSED) {
        RF_COUNT(suppressed);
        return false;
    }
    RF_COUNT(shown);
    current = record;
    __tsan_on_report(record);
    __sanitizer_report_error_summary(summary);
    current = NULL;
    if (rf_options.halt_on_error)
        rf_halt(rf_options.abort_on_error);
    return true;
}

/* ---- begin and end ---- */

static char directory[4096];

const char *rf_report_directory(void)
{
    return directory;
}

/* Paths of options are meant from where the program was started, wherever it goes. */
void rf_report_begin(void)
{
    if (RF_SYSCALL(SYS_getcwd, directory, sizeof directory) < 0 || directory[0] != '/')
        directory[0] = 0;
    if (rf_options.suppressions[0]) {
        long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, rf_options.suppressions, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            rf_die("%s: the suppressions cannot be read", rf_options.suppressions);
        RF_SYSCALL(SYS_close, fd);
    }
}

int rf_report_end(int status)
{
    /* If nothing was ever reported, nothing is to be summed up; but suppressions may be out of date, or wrong. */
    if (rf_reporter_runs() || (rf_options.suppressions[0] && rf_options.print_suppressions))
        sum_up();
    if (rf_report_failed)
        return RF_FAILURE;
    return rf_report_counts.shown && rf_options.exitcode ? rf_options.exitcode : status;
}

RF_EXPORT void __sanitizer_set_report_fd(void *fd);
void __sanitizer_set_report_fd(void *fd)
{
    stream_override = (int)(intptr_t)fd;
    rf_options.log_path = "stderr";
}
