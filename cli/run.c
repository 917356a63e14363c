/* redflag run: a program under the runtime.
 *
 * 1. It becomes the program: no process stays between, so signals, terminals and exit statuses are the program's own.
 * 2. What cannot work is said before the program starts, by its ELF file; nothing is run that would silently not be watched.
 * 3. The runtime is found through LD_LIBRARY_PATH, in a directory that holds nothing but it; options go through REDFLAG_OPTIONS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/places.h"
#include "cli/program.h"
#include "cli/run_options.h"
#include "cli/unchecked.h"
#include "trace/grow.h"

#define WHO "redflag run"

enum { CANNOT_EXECUTE = 126, NOT_FOUND = 127 }; /* as env, timeout and the shells */

static int help(void)
{
    puts("usage: redflag run [OPTION...] [--] PROGRAM [ARGUMENT...]\n\n"
         "Runs a program that was built with `redflag cc`, or with `gcc -fsanitize=thread`, and reports its data races.\n\n"
         "  --force     run it even if it does not look instrumented: a launcher of programs that are\n"
         "  --preload   load the runtime into a program that is not instrumented and loads libraries that are; implies --force");
    rf_run_options_help(NULL);
    puts("\nWhat is yes or no is switched off with --no-NAME or --NAME=0. The same options may stand in REDFLAG_OPTIONS, as\n"
         "NAME=VALUE:NAME=VALUE; those given here come last and count.\n\n"
         "Exit status: 66 (or --exitcode) if something was reported, that of the program otherwise; 2 if it cannot be watched,\n"
         "67 if the runtime fails, 126 and 127 if the program cannot be executed or found.");
    return RF_EXIT_OK;
}

/* Without a limit on the stack, or with the old layout of addresses, the kernel puts libraries where the runtime's histories must be. */
static void mend_layout(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) {
        limit.rlim_cur = RF_STACK_LIMIT;
        setrlimit(RLIMIT_STACK, &limit);
    }
    int persona = personality(0xffffffff);
    if (persona > 0 && (persona & ADDR_COMPAT_LAYOUT))
        personality((unsigned long)persona & ~(unsigned long)ADDR_COMPAT_LAYOUT);
}

int rf_cli_run(int argc, char **argv)
{
    struct rf_run_text text = { NULL, 0 };
    bool force = false, preload = false;
    const char *unchecked = NULL;
    int i = 1;
    if (getenv("REDFLAG_OPTIONS") && *getenv("REDFLAG_OPTIONS"))
        rf_run_text_add(&text, getenv("REDFLAG_OPTIONS"));
    for (int used; i < argc && argv[i][0] == '-' && argv[i][1]; i += used) {
        used = 1;
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help();
        if (!strcmp(argv[i], "--force"))
            force = true;
        else if (!strcmp(argv[i], "--preload"))
            preload = force = true;
        else if (!strncmp(argv[i], "--unchecked=", 12))
            unchecked = argv[i] + 12;
        else if (!rf_run_option(&text, WHO, argv + i, argc - i, &used)) {
            fprintf(stderr, WHO ": unknown option '%s'; try 'redflag run --help'\n", argv[i]);
            return RF_EXIT_USAGE;
        } else if (!used)
            return RF_EXIT_USAGE;
    }
    if (i >= argc) {
        fputs(WHO ": no program is named; try 'redflag run --help'\n", stderr);
        return RF_EXIT_USAGE;
    }

    struct rf_places places;
    struct rf_program program;
    char path[PATH_MAX];
    if (!rf_cli_places(&places, WHO))
        return RF_EXIT_USAGE;
    if (!rf_program_find(argv[i], path, sizeof path)) {
        fprintf(stderr, WHO ": %s: %s\n", argv[i], strerror(errno));
        return NOT_FOUND;
    }
    rf_put_first("LD_LIBRARY_PATH", places.tsan);
    rf_program_read(&program, path);
    /* A program that may be executed but not read is the user's wish, and the loader's to judge. */
    if (program.kind == RF_PROGRAM_UNREADABLE && access(path, X_OK) != 0) {
        fprintf(stderr, WHO ": %s: %s\n", path, strerror(errno));
        return CANNOT_EXECUTE;
    }
    char reason[2 * PATH_MAX];
    if (!force && program.kind != RF_PROGRAM_UNREADABLE &&
        !rf_program_watchable(&program, path, &places, reason, sizeof reason)) {
        fprintf(stderr, WHO ": %s: %s\n", path, reason);
        return RF_EXIT_USAGE;
    }
    /* With an instrumented library of a program that is not itself, the loader puts the runtime behind libc: too late for its calls. */
    if (preload || (!force && program.kind == RF_PROGRAM_ELF && !*program.needs_tsan && !program.needs_ours))
        rf_put_first("LD_PRELOAD", places.library);
    if (unchecked && !rf_unchecked_sites(&text, WHO, unchecked, path))
        return RF_EXIT_USAGE;
    if (text.text)
        setenv("REDFLAG_OPTIONS", text.text, 1);
    mend_layout();
    execvp(argv[i], argv + i);
    fprintf(stderr, WHO ": %s: %s\n", path, strerror(errno));
    return errno == ENOENT ? NOT_FOUND : CANNOT_EXECUTE;
}
