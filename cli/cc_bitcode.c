/* See cli/cc_bitcode.h. */
#include "cli/cc_bitcode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cc_words.h"
#include "cli/cli.h"
#include "trace/grow.h"

static bool in(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

static bool starts_with_one_of(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (strncmp(word, *list, strlen(*list)) == 0)
            return true;
    return false;
}

/* Invariant 1: these go to clang, with the word that follows, ... */
static const char *const meaning_with_next[] = { "-I",        "-D",       "-U",      "-x",         "-include",
                                                 "-imacros",  "-isystem", "-iquote", "-idirafter", "-isysroot",
                                                 "--sysroot", "-target",  NULL };
/* ... by themselves, */
static const char *const meaning[] = { "-pthread",
                                       "-ansi",
                                       "-nostdinc",
                                       "-nostdinc++",
                                       "-funsigned-char",
                                       "-fsigned-char",
                                       "-fno-signed-char",
                                       "-fno-unsigned-char",
                                       "-fshort-enums",
                                       "-fno-short-enums",
                                       "-fshort-wchar",
                                       "-fpack-struct",
                                       "-fno-exceptions",
                                       "-fexceptions",
                                       "-fno-rtti",
                                       "-fms-extensions",
                                       "-fgnu89-inline",
                                       "-fopenmp",
                                       "-m32",
                                       "-m64",
                                       "-mx32",
                                       NULL };
/* ... or by their beginning. */
static const char *const meaning_begins[] = { "-I",         "-D",    "-U",    "-x",      "-std=", "-isystem",
                                              "--sysroot=", "-msse", "-mavx", "-march=", NULL };
/* These take the next word, and neither goes. */
static const char *const others_with_next[] = {
    "-o",      "-MF",    "-MT",     "-MQ", "-L", "-l", "-T",        "-u", "-Xlinker", "-Xassembler", "-Xpreprocessor",
    "-Xclang", "-mllvm", "--param", "-z",  "-e", "-B", "-aux-info", NULL
};
/* Nothing is compiled. */
static const char *const no_object[] = { "-E", "-M", "-MM", "-S", "-fsyntax-only", "--version", "-v", "-###", NULL };

static bool is_source(const char *name)
{
    return name[0] != '-' && rf_cc_is_source(name, NULL);
}

static const char *clang(bool cxx)
{
    const char *set = getenv("REDFLAG_CLANG");
    if (set && *set)
        return set;
    static const char *const c[] = { "clang", "clang-14", NULL }, *const cc[] = { "clang++", "clang++-14", NULL };
    const char *const *names = cxx ? cc : c, *path = getenv("PATH");
    for (; *names; names++)
        for (const char *at = path ? path : "/usr/bin"; *at; at += strcspn(at, ":"), at += *at == ':') {
            char candidate[4096];
            snprintf(candidate, sizeof candidate, "%.*s/%s", (int)strcspn(at, ":"), at, *names);
            if (access(candidate, X_OK) == 0)
                return *names;
        }
    return NULL;
}

/* Invariant 3. */
static char *name_of(const char *source, const char *object)
{
    const char *from = object ? object : strrchr(source, '/') ? strrchr(source, '/') + 1 : source;
    const char *slash = strrchr(from, '/'), *dot = strrchr(from, '.');
    size_t stem = dot && (!slash || dot > slash + 1) ? (size_t)(dot - from) : strlen(from);
    char *name = rf_zeroed(stem + 4, 1);
    memcpy(name, from, stem);
    strcpy(name + stem, ".bc");
    return name;
}

static int run(char **command)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execvp(command[0], command);
        fprintf(stderr, "redflag cc: --bitcode: %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int rf_cc_bitcode(bool cxx, int argc, char **argv)
{
    static char *const fixed[] = { "-c", "-emit-llvm",         "-g", "-O1", "-Xclang", "-disable-llvm-passes",
                                   "-w", "-Qunused-arguments", "-o" };
    const char *compiler = clang(cxx), *object = NULL;
    size_t count = 0, sources = 0;
    bool only_compiles = false;
    char **command = rf_zeroed((size_t)argc + sizeof fixed / sizeof *fixed + 4, sizeof *command);
    if (!compiler) {
        fputs("redflag cc: --bitcode needs clang, and there is none; REDFLAG_CLANG names it\n", stderr);
        return RF_EXIT_USAGE;
    }
    command[count++] = (char *)compiler;
    for (int i = 1; i < argc; i++) {
        bool last = i + 1 == argc;
        if (in(no_object, argv[i])) {
            free(command);
            return 0;
        }
        only_compiles |= strcmp(argv[i], "-c") == 0;
        sources += is_source(argv[i]);
        if (strcmp(argv[i], "-o") == 0 && !last)
            object = argv[i + 1];
        if (in(meaning_with_next, argv[i]) && !last) {
            command[count++] = argv[i];
            command[count++] = argv[++i];
        } else if (in(others_with_next, argv[i])) {
            i++;
        } else if (in(meaning, argv[i]) || starts_with_one_of(meaning_begins, argv[i])) {
            command[count++] = argv[i];
        }
    }
    memcpy(command + count, fixed, sizeof fixed);
    count += sizeof fixed / sizeof *fixed;
    int status = 0;
    for (int i = 1; i < argc && !status; i++) {
        if (in(meaning_with_next, argv[i]) || in(others_with_next, argv[i])) {
            i++;
        } else if (is_source(argv[i])) {
            char *name = name_of(argv[i], only_compiles && sources == 1 ? object : NULL);
            command[count] = name;
            command[count + 1] = argv[i];
            command[count + 2] = NULL;
            status = run(command);
            if (status)
                fprintf(stderr, "redflag cc: --bitcode: %s gave no bitcode of %s\n", compiler, argv[i]);
            free(name);
        }
    }
    free(command);
    return status ? RF_EXIT_USAGE : 0;
}
