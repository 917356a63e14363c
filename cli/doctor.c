/* redflag doctor: will a run work here? What was found, one line each, and what redflag does about it.
 *
 * 1. A line begins with "ok", "note" (it works, with a difference) or "FAIL" (a run would not work). The status is 0 if none failed.
 * 2. What can be tried is tried: a child reserves the addresses that the runtime needs, and, if there is a compiler, a program with a
 *    race is built and run.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/places.h"
#include "cli/program.h"
#include "cli/run_options.h"

static bool failed;

__attribute__((format(printf, 3, 4))) static void line(const char *verdict, const char *what, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%-5s %-15s ", verdict, what);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout); /* children print, too */
    va_end(arguments);
    failed |= !strcmp(verdict, "FAIL");
}

/* The first line of a file, "" if it cannot be read. */
static const char *first_line(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    if (!file || !fgets(text, (int)size, file))
        text[0] = 0;
    if (file)
        fclose(file);
    text[strcspn(text, "\n")] = 0;
    return text;
}

static long status_field(const char *name)
{
    char text[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(text, sizeof text, file))
        if (!strncmp(text, name, strlen(name)) && text[strlen(name)] == ':')
            value = strtol(text + strlen(name) + 1, NULL, 10);
    if (file)
        fclose(file);
    return value;
}

static void kernel(void)
{
    struct utsname name;
    uname(&name);
    if (strcmp(name.machine, "x86_64"))
        line("FAIL", "kernel", "%s %s for %s; the runtime is for x86-64 Linux", name.sysname, name.release, name.machine);
    else
        line("ok", "kernel", "%s %s for %s", name.sysname, name.release, name.machine);
}

static void addresses(void)
{
    char text[256];
    const char *space = first_line("/proc/sys/kernel/randomize_va_space", text, sizeof text);
    if (*space)
        line("ok", "randomisation", "%s; the runtime lies where no randomisation reaches", *space == '0' ? "off" : "on");
    if (*first_line("/proc/sys/vm/mmap_rnd_bits", text, sizeof text))
        line("ok", "entropy", "%s bits of mappings are random; any number will do", text);
    int persona = personality(0xffffffff);
    if (persona > 0 && (persona & ADDR_COMPAT_LAYOUT))
        line("note", "personality", "0x%x, the old layout of addresses, in which the runtime has no room; `redflag run` changes it", (unsigned)persona);
    else if (persona < 0)
        line("ok", "personality", "refused (%s); it is not needed", strerror(errno));
    else
        line("ok", "personality", "0x%x; it is not changed", (unsigned)persona);
}

static void memory(void)
{
    char text[256];
    struct rlimit limit;
    const char *overcommit = first_line("/proc/sys/vm/overcommit_memory", text, sizeof text);
    if (*overcommit == '2')
        line("note", "overcommit", "2, strict: nothing can be reserved, so pages of the runtime are mapped when they are touched");
    else
        line("ok", "overcommit", "%s", *overcommit ? overcommit : "not to be read");
    getrlimit(RLIMIT_AS, &limit);
    if (limit.rlim_cur != RLIM_INFINITY)
        line("note", "address limit", "%llu MiB (ulimit -v): pages of the runtime are mapped one by one, when they are touched",
             (unsigned long long)limit.rlim_cur >> 20);
    else
        line("ok", "address limit", "none");
    getrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        line("note", "stack limit", "none: the kernel puts libraries where the runtime must be; `redflag run` sets %lu MiB, elsewhere use ulimit -s",
             RF_STACK_LIMIT >> 20);
    else
        line("ok", "stack limit", "%llu KiB", (unsigned long long)limit.rlim_cur >> 10);
    if (*first_line("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text))
        line("ok", "huge pages", "%s", text);
}

static void permissions(void)
{
    long seccomp = status_field("Seccomp");
    line(seccomp > 0 ? "note" : "ok", "seccomp",
         seccomp > 0 ? "mode %ld: system calls are filtered; if one is refused, the runtime does without it" : "mode %ld, nothing is filtered",
         seccomp < 0 ? 0 : seccomp);
    long barriers = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (barriers > 0 && (barriers & MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        line("ok", "membarrier", "there");
    else
        line("note", "membarrier", "not there: the long way of an access has a fence of its own instead, which is slower");
    if (access("/proc/self/maps", R_OK) == 0 && access("/proc/self/environ", R_OK) == 0)
        line("ok", "/proc", "readable");
    else
        line("note", "/proc", "not readable (%s): REDFLAG_OPTIONS and names of libraries in reports may be missing", strerror(errno));
    if (access("/proc/self/mem", W_OK) == 0)
        line("ok", "/proc/self/mem", "writable; calls of the hooks are made direct");
    else
        line("note", "/proc/self/mem", "%s: calls reach the hooks the slower way, through the PLT", strerror(errno));
    bool container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
    line("ok", "container", container ? "yes; nothing special is needed" : "no sign of one");
    char text[64];
    if (*first_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof text))
        line("ok", "perf", "perf_event_paranoid is %s; the runtime does not use it", text);
}

/* The addresses between the low ones and those where the kernel puts programs (guest/planes.h): can so much be reserved? */
static void planes(void)
{
    const size_t size = (size_t)1 << 46;
    void *wanted = (void *)0x100000000000;
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
        return; /* the layout here is not the one of a run */
    void *got = mmap(wanted, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED || got != wanted)
        line("note", "reservation", "64 TiB of addresses are refused (%s): pages are mapped when they are touched, which is slower",
             got == MAP_FAILED ? strerror(errno) : "another place was given");
    else
        line("ok", "reservation", "64 TiB of addresses can be reserved");
    if (got != MAP_FAILED)
        munmap(got, size);
}

/* Runs a command with its output in a file; its status, -1 if it did not end by itself. */
static int run(const char *output, char *const *arguments)
{
    pid_t child = fork();
    if (child == 0) {
        int file = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(file, 1);
        dup2(file, 2);
        execvp(arguments[0], arguments);
        _exit(127);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* The first line that a command prints; false: it cannot be asked. */
static bool ask(const char *command, char *answer, size_t size)
{
    answer[0] = 0;
    FILE *pipe = popen(command, "r");
    bool there = pipe && fgets(answer, (int)size, pipe);
    answer[strcspn(answer, "\n")] = 0;
    if (pipe)
        while (fgetc(pipe) != EOF) {
        }
    return (pipe && pclose(pipe) == 0) && there;
}

static bool compiler(const char *name)
{
    char command[64], text[256];
    snprintf(command, sizeof command, "%s --version 2>/dev/null", name);
    bool there = ask(command, text, sizeof text);
    line(there ? "ok" : "note", name, "%s", there ? text : "not found");
    return there;
}

static void plugin(const struct rf_places *places)
{
    char version[64], path[PATH_MAX];
    if (!ask("gcc -dumpfullversion 2>/dev/null", version, sizeof version))
        return;
    if (rf_cli_plugin(places, version, true, path, sizeof path))
        line("ok", "fewer checks", "%s", path);
    else
        line("note", "fewer checks", "there is no plugin for gcc %s: every access has a check of its own, which is slower", version);
}

static const char race[] = "#include <pthread.h>\n"
                           "int shared;\n"
                           "static void *work(void *unused) { shared++; return unused; }\n"
                           "int main(void)\n"
                           "{\n"
                           "    pthread_t a, b;\n"
                           "    pthread_create(&a, 0, work, 0);\n"
                           "    pthread_create(&b, 0, work, 0);\n"
                           "    pthread_join(a, 0);\n"
                           "    pthread_join(b, 0);\n"
                           "    return 0;\n"
                           "}\n";

static void try_one(const char *redflag, const char *directory, const char *compiler_name)
{
    char source[PATH_MAX], program[PATH_MAX], log[PATH_MAX], what[32];
    snprintf(source, sizeof source, "%s/race.c", directory);
    snprintf(program, sizeof program, "%s/race", directory);
    snprintf(log, sizeof log, "%s/log", directory);
    snprintf(what, sizeof what, "a %s program", compiler_name);
    FILE *file = fopen(source, "w");
    if (!file || fputs(race, file) < 0 || fclose(file) != 0) {
        line("note", what, "not tried: %s: %s", source, strerror(errno));
        return;
    }
    setenv("REDFLAG_CC", compiler_name, 1);
    int built = run(log, (char *[]){ (char *)redflag, "cc", "-g", "-pthread", source, "-o", program, NULL });
    int ran = built == 0 ? run(log, (char *[]){ (char *)redflag, "run", "--exitcode=66", program, NULL }) : 0;
    if (built != 0)
        line("FAIL", what, "cannot be built by `redflag cc`:");
    else if (ran != RF_EXIT_RACES)
        line("FAIL", what, "with a race ended with status %d instead of %d:", ran, RF_EXIT_RACES);
    else
        line("ok", what, "with a race was built and run, and the race was reported");
    if (built != 0 || ran != RF_EXIT_RACES)
        run("/dev/stdout", (char *[]){ "tail", "-n", "20", log, NULL });
    unlink(source);
    unlink(program);
    unlink(log);
}

static void program(const char *path, const struct rf_places *places)
{
    struct rf_program it;
    char full[PATH_MAX];
    if (!rf_program_find(path, full, sizeof full)) {
        line("FAIL", "program", "%s: %s", path, strerror(errno));
        return;
    }
    rf_program_read(&it, full);
    char reason[2 * PATH_MAX];
    if (rf_program_watchable(&it, full, places, reason, sizeof reason))
        line("ok", "program", "%s: %s", full,
             it.kind == RF_PROGRAM_SCRIPT ? "a script; what it starts is watched if it is instrumented"
             : it.needs_ours              ? "instrumented, linked with our runtime"
                                          : "instrumented, and our runtime takes the place of libtsan.so.2");
    else
        line("FAIL", "program", "%s: %s", full, reason);
}

static int help(void)
{
    puts("usage: redflag doctor [PROGRAM]\n\n"
         "Says what it finds on this machine, and of the program, that matters for `redflag run`, and what is done about it.\n\n"
         "Exit status: 0 if a run will work, 1 if not.");
    return RF_EXIT_OK;
}

int rf_cli_doctor(int argc, char **argv)
{
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return help();
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fputs("redflag doctor: at most a program may follow; try 'redflag doctor --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    struct rf_places places;
    kernel();
    addresses();
    memory();
    permissions();
    planes();
    bool there = rf_cli_places(&places, "redflag doctor");
    line(there ? "ok" : "FAIL", "runtime", "%s", there ? places.library : "not found");
    bool gcc = compiler("gcc"), clang = compiler("clang");
    if (there && gcc)
        plugin(&places);
    char directory[] = "/tmp/redflag-doctor-XXXXXX";
    if (there && (gcc || clang) && mkdtemp(directory)) {
        if (gcc)
            try_one(places.command, directory, "gcc");
        if (clang)
            try_one(places.command, directory, "clang");
        rmdir(directory);
    }
    if (there && argc == 2)
        program(argv[1], &places);
    puts(failed ? "A run will not work here; see the lines with FAIL." : "A run will work here.");
    return failed ? RF_EXIT_FOUND : RF_EXIT_OK;
}
