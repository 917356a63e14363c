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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/places.h"
#include "cli/program.h"
#include "cli/run_options.h"
#include "trace/grow.h"

#define WHO "redflag run"

enum { CANNOT_EXECUTE = 126, NOT_FOUND = 127 }; /* as env, timeout and the shells */

static int help(void)
{
    puts("usage: redflag run [OPTION...] [--] PROGRAM [ARGUMENT...]\n\n"
         "Runs a program that was built with `redflag cc`, or with `gcc -fsanitize=thread`, and reports its data races.\n\n"
         "  --force     run it even if it does not look instrumented: a launcher of programs that are\n"
         "  --preload   load the runtime into a program that is not instrumented and loads libraries that are; implies --force");
    rf_run_options_help();
    puts("\nWhat is yes or no is switched off with --no-NAME or --NAME=0. The same options may stand in REDFLAG_OPTIONS, as\n"
         "NAME=VALUE:NAME=VALUE; those given here come last and count.\n\n"
         "Exit status: 66 (or --exitcode) if something was reported, that of the program otherwise; 2 if it cannot be watched,\n"
         "67 if the runtime fails, 126 and 127 if the program cannot be executed or found.");
    return RF_EXIT_OK;
}

/* Puts a directory first in a list like LD_LIBRARY_PATH. */
static void put_first(const char *variable, const char *directory)
{
    const char *old = getenv(variable);
    char *list = rf_zeroed(strlen(directory) + (old ? strlen(old) : 0) + 2, 1);
    sprintf(list, "%s%s%s", directory, old && *old ? ":" : "", old && *old ? old : "");
    setenv(variable, list, 1);
    free(list);
}

/* Does another library than ours lie under the name in one of the directories of a DT_RPATH, which come before LD_LIBRARY_PATH? */
static bool hidden_by(const char *rpath, const char *program, const char *name, const char *ours, char *found)
{
    struct stat mine, other;
    char directory[PATH_MAX], full[2 * PATH_MAX];
    if (!realpath(program, directory) || stat(ours, &mine) != 0)
        return false;
    *strrchr(directory, '/') = 0;
    while (*rpath) {
        size_t length = strcspn(rpath, ":");
        size_t origin = !strncmp(rpath, "$ORIGIN", 7) ? 7 : !strncmp(rpath, "${ORIGIN}", 9) ? 9 : 0;
        snprintf(full, sizeof full, "%s%.*s/%s", origin ? directory : "", (int)(length - origin), rpath + origin, name);
        if (stat(full, &other) == 0 && (other.st_ino != mine.st_ino || other.st_dev != mine.st_dev)) {
            snprintf(found, PATH_MAX, "%.*s", PATH_MAX - 1, full);
            return true;
        }
        rpath += length + (rpath[length] == ':');
    }
    return false;
}

/* Would the loader bring a runtime along with some library of the program's? It is asked, as ldd does. */
static bool comes_with_a_library(const char *path)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *list = fdopen(ends[0], "r");
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    while (list && getline(&line, &size, list) > 0)
        found |= strstr(line, "libtsan.so.2 ") || strstr(line, RF_RT_NAME " ");
    free(line);
    if (list)
        fclose(list);
    if (child > 0)
        waitpid(child, NULL, 0);
    return found;
}

/* What stands against watching it, in one line on standard error; true if nothing does. */
static bool can_be_watched(const char *path, const struct rf_program *program, const struct rf_places *places)
{
    char other[PATH_MAX];
    const char *advice = "build it with `redflag cc`, or with `gcc -fsanitize=thread`";
    if (program->kind == RF_PROGRAM_SCRIPT)
        return true;
    if (program->kind == RF_PROGRAM_FOREIGN)
        fprintf(stderr, WHO ": %s: not a program for x86-64 Linux (--force runs it all the same)\n", path);
    else if (!program->dynamic)
        fprintf(stderr, WHO ": %s: linked statically, so the runtime has no way in; link it without -static\n", path);
    else if (program->own_runtime)
        fprintf(stderr,
                WHO ": %s: a ThreadSanitizer runtime is linked into it, as clang and -static-libtsan do; link it with "
                    "REDFLAG_CC=clang `redflag cc`, or with -fno-sanitize-link-runtime and %s\n",
                path, places->library);
    else if (*program->needs_tsan && strcmp(program->needs_tsan, "libtsan.so.2"))
        fprintf(stderr, WHO ": %s: made for %s, of another gcc; link it again with gcc 12 or `redflag cc`\n", path,
                program->needs_tsan);
    else if (*program->needs_tsan && program->privileged)
        fprintf(stderr,
                WHO ": %s: set-user-ID, set-group-ID or with capabilities, for which the loader ignores LD_LIBRARY_PATH; run a "
                    "copy without them, or link it with `redflag cc`\n",
                path);
    else if (*program->needs_tsan && hidden_by(program->rpath, path, program->needs_tsan, places->library, other))
        fprintf(stderr,
                WHO ": %s: its DT_RPATH finds %s before ours; link it without that path, or take that away "
                    "(`chrpath -d`, or `patchelf --remove-rpath`)\n",
                path, other);
    else if (!*program->needs_tsan && !program->needs_ours && !comes_with_a_library(path))
        fprintf(stderr, WHO ": %s: %s: %s\n", path,
                program->hooks ? "instrumented, but linked with no runtime" : "not instrumented, so no access would be seen",
                advice);
    else
        return true;
    return false;
}

int rf_cli_run(int argc, char **argv)
{
    struct rf_run_text text = { NULL, 0 };
    bool force = false, preload = false;
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
    put_first("LD_LIBRARY_PATH", places.tsan);
    rf_program_read(&program, path);
    /* A program that may be executed but not read is the user's wish, and the loader's to judge. */
    if (program.kind == RF_PROGRAM_UNREADABLE && access(path, X_OK) != 0) {
        fprintf(stderr, WHO ": %s: %s\n", path, strerror(errno));
        return CANNOT_EXECUTE;
    }
    if (!force && program.kind != RF_PROGRAM_UNREADABLE && !can_be_watched(path, &program, &places))
        return RF_EXIT_USAGE;
    if (preload)
        put_first("LD_PRELOAD", places.library);
    if (text.text)
        setenv("REDFLAG_OPTIONS", text.text, 1);
    execvp(argv[i], argv + i);
    fprintf(stderr, WHO ": %s: %s\n", path, strerror(errno));
    return errno == ENOENT ? NOT_FOUND : CANNOT_EXECUTE;
}
