/* See cli/cc_inline.h. */
#include "cli/cc_inline.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/places.h"
#include "trace/grow.h"

/* -- what the arguments are ------------------------------------------------------------------------------------------------------ */

/* Invariant 3. */
static const char *const one_step[] = { "-E",         "-M",           "-MM",           "-fsyntax-only", "--preprocess", "-emit-ast",
                                        "--analyze",  "--precompile", "-emit-llvm",    "--coverage",    "-coverage",    "-ftest-coverage",
                                        "-fprofile-arcs", "-###",     "-gsplit-dwarf", "-ftime-trace",  "-fstack-usage", "-MJ",
                                        "--", /* nothing after it is an option, and ours would come there */
                                        NULL };
static const char *const one_step_begins[] = { "-flto", "-save-temps", "--save-temps", "-save-stats", "--save-stats", "-gsplit-dwarf=",
                                               "-fthinlto", "-Wp,-M", "-fsave-optimization-record", "-foptimization-record-file",
                                               "--serialize-diagnostics", "-serialize-diagnostics",
                                               /* long names, which nobody writes, of what is taken apart here */
                                               "--output", "--language", "--write-dependencies", "--write-user-dependencies",
                                               NULL };

static bool begins_one_of(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (rf_word_starts(word, *list))
            return true;
    return false;
}

enum kind { OPTION, SOURCE, INPUT, LANGUAGE, OUTPUT, PHASE, DEPENDENCIES };

/* One argument of one or two words. */
struct part {
    enum kind kind;
    const char *word, *value; /* `value` NULL: there is no second word */
    const char *language;     /* of LANGUAGE, and of inputs; NULL: by the name */
};

struct call {
    struct part *parts;
    size_t count, sources, inputs;
    const char *output;
    bool only_objects, only_assembly; /* -c, -S */
    bool lists, list_named, target_named; /* -MD or -MMD, -MF, -MT or -MQ */
    bool one_step;
};

static void take(struct call *call, const struct part *part)
{
    call->parts = rf_resize(call->parts, (call->count + 1) * sizeof *call->parts);
    call->parts[call->count++] = *part;
    call->sources += part->kind == SOURCE;
    call->inputs += part->kind == INPUT;
    call->only_objects |= part->kind == PHASE && part->word[1] != 'S' && strcmp(part->word, "--assemble") != 0;
    call->only_assembly |= part->kind == PHASE && !(part->word[1] != 'S' && strcmp(part->word, "--assemble") != 0);
    call->one_step |= rf_word_in(one_step, part->word) || begins_one_of(one_step_begins, part->word);
}

static struct call look(const struct rf_words *words)
{
    static const char *const phases[] = { "-c", "-S", "--compile", "--assemble", NULL };
    struct call call = { .parts = NULL };
    const char *language = NULL;
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->word[i];
        struct part part = { .kind = OPTION, .word = word };
        if (rf_cc_takes_another(word) && i + 1 < words->count)
            part.value = words->word[++i];
        if (word[0] != '-' || !word[1]) {
            part.kind = rf_cc_is_source(word, language) ? SOURCE : INPUT;
            part.language = language;
        } else if (rf_word_starts(word, "-x") && (word[2] || part.value)) {
            const char *name = word[2] ? word + 2 : part.value;
            part.kind = LANGUAGE;
            part.language = language = strcmp(name, "none") != 0 ? name : NULL;
        } else if (rf_word_starts(word, "-o") && (word[2] || part.value)) {
            part.kind = OUTPUT;
            call.output = word[2] ? word + 2 : part.value;
        } else if (rf_word_in(phases, word)) {
            part.kind = PHASE;
        } else if (rf_word_starts(word, "-M")) {
            part.kind = DEPENDENCIES;
            call.lists |= !strcmp(word, "-MD") || !strcmp(word, "-MMD");
            call.list_named |= rf_word_starts(word, "-MF");
            call.target_named |= rf_word_starts(word, "-MT") || rf_word_starts(word, "-MQ");
        }
        take(&call, &part);
    }
    return call;
}

/* -- running ---------------------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

/* The steps get the signal as well, and end: what they left is removed. */
static void interrupt(int number)
{
    interrupted = number;
}

static int run(const struct rf_words *command, const char *who)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execvp(command->word[0], command->word);
        fprintf(stderr, "%s: %s: %s\n", who, command->word[0], strerror(errno));
        _exit(RF_EXIT_USAGE);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            child = -1;
    if (child < 0) {
        fprintf(stderr, "%s: --inline: %s\n", who, strerror(errno));
        return RF_EXIT_USAGE;
    }
    return interrupted ? 128 + interrupted : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static struct rf_words copy_of(const struct rf_words *words)
{
    struct rf_words copy = { NULL, 0 };
    for (size_t i = 0; i < words->count; i++)
        rf_words_add(&copy, words->word[i]);
    return copy;
}

static void add_part(struct rf_words *command, const struct part *part)
{
    rf_words_add(command, part->word);
    if (part->value)
        rf_words_add(command, part->value);
}

static char *joined(const char *a, const char *b)
{
    char *text = rf_zeroed(strlen(a) + strlen(b) + 1, 1);
    return strcat(strcpy(text, a), b);
}

/* `path` with another ending; where the compiler runs if `here`. */
static char *renamed(const char *path, const char *ending, bool here)
{
    const char *slash = strrchr(path, '/');
    if (here && slash)
        path = slash + 1, slash = NULL;
    const char *dot = strrchr(path, '.');
    char *stem = strndup(path, dot && dot > (slash ? slash + 1 : path) ? (size_t)(dot - path) : strlen(path));
    return joined(stem, ending);
}

/* -- the steps -------------------------------------------------------------------------------------------------------------------- */

struct work {
    const struct call *call;
    const struct rf_words *compile;
    struct rf_places places;
    bool every_access;
    const char *who;
    char directory[PATH_MAX];
};

/* The name that clang would have given to a source's object, or to its assembly. */
static const char *object_of(const struct work *work, const char *source, bool assembly)
{
    const struct call *call = work->call;
    return call->output && (call->only_objects || call->only_assembly) ? call->output : renamed(source, assembly ? ".s" : ".o", true);
}

static int make_bitcode(const struct work *work, const struct part *source, const char *bitcode)
{
    const struct call *call = work->call;
    struct rf_words command = copy_of(work->compile);
    rf_words_add(&command, "-Qunused-arguments");
    for (size_t i = 0; i < call->count; i++) {
        const struct part *part = &call->parts[i];
        if (part == source || (part->kind != SOURCE && part->kind != INPUT && part->kind != OUTPUT && part->kind != PHASE))
            add_part(&command, part);
    }
    if (call->lists && !call->list_named) {
        rf_words_add(&command, "-MF");
        rf_words_add(&command, renamed(call->output ? call->output : source->word, ".d", !call->output));
    }
    if (call->lists && !call->target_named) {
        rf_words_add(&command, "-MQ");
        rf_words_add(&command, call->output ? call->output : object_of(work, source->word, false));
    }
    static const char *const rest[] = { "-c", "-emit-llvm", "-o" };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        rf_words_add(&command, rest[i]);
    rf_words_add(&command, bitcode);
    return run(&command, work->who);
}

static int put_hooks_in(const struct work *work, const char *bitcode)
{
    struct rf_words command = { NULL, 0 };
    rf_words_add(&command, joined(work->places.lib, "/redflag/redflag-inline"));
    if (work->every_access)
        rf_words_add(&command, "--every-access");
    rf_words_add(&command, joined(work->places.lib, "/redflag/hooks.bc"));
    rf_words_add(&command, bitcode);
    return run(&command, work->who);
}

static int make_code(const struct work *work, const char *bitcode, const char *output)
{
    /* What is said of the source, and was obeyed: some of it is an error for bitcode. */
    static const char *const of_source[] = { "-include", "-imacros", "-include-pch", "-std", "-ansi", "-fmodules", NULL };
    const struct call *call = work->call;
    struct rf_words command = copy_of(work->compile);
    for (size_t i = 0; i < call->count; i++)
        if (call->parts[i].kind == OPTION && !begins_one_of(of_source, call->parts[i].word))
            add_part(&command, &call->parts[i]);
    /* Nor is the address of a cold hook, or what it is given, to be kept in a register through a loop that hardly ever calls it; and what is
     * called through a register no longer tells what it calls (guest/near.c). */
    static const char *const rest[] = { "-Qunused-arguments", "-w", "-Xclang", "-disable-llvm-passes", "-mllvm",
                                        "-disable-hoisting-to-hotter-blocks=all", "-mllvm", "-block-freq-ratio-threshold=1" };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        rf_words_add(&command, rest[i]);
    rf_words_add(&command, call->only_assembly ? "-S" : "-c");
    rf_words_add(&command, bitcode);
    rf_words_add(&command, "-o");
    rf_words_add(&command, output);
    return run(&command, work->who);
}

static int compile(const struct work *work, const struct part *source, const char *output)
{
    char *bitcode = joined(work->directory, "/source.bc");
    int status = make_bitcode(work, source, bitcode);
    bool made = !status && access(bitcode, F_OK) == 0; /* if not, clang was asked for something else, as by -Xclang -ast-dump */
    if (made)
        status = put_hooks_in(work, bitcode);
    if (made && !status)
        status = make_code(work, bitcode, output);
    struct stat old;
    if (status && lstat(output, &old) == 0 && S_ISREG(old.st_mode)) /* what an earlier run left is not this one's result */
        unlink(output);
    unlink(bitcode);
    free(bitcode);
    return status;
}

/* The objects take the places of their sources, which may depend on their order among libraries. */
static int link_objects(const struct call *call, const struct rf_words *link, char *const *objects, const char *who)
{
    struct rf_words command = copy_of(link);
    size_t object = 0;
    for (size_t i = 0; i < call->count; i++) {
        const struct part *part = &call->parts[i];
        if (part->kind == SOURCE) {
            rf_words_add(&command, objects[object++]);
        } else if (part->kind == LANGUAGE && part->language && rf_cc_is_source("", part->language)) {
            rf_words_add(&command, "-xnone");
        } else if (part->kind != DEPENDENCIES && strcmp(part->word, "-static-libtsan") != 0) {
            add_part(&command, part);
        }
    }
    return run(&command, who);
}

static int compile_all(const struct work *work, const struct rf_words *link, bool links)
{
    const struct call *call = work->call;
    char **objects = rf_zeroed(call->sources, sizeof *objects);
    size_t made = 0;
    int status = 0;
    for (size_t i = 0; i < call->count && !status; i++) {
        const struct part *part = &call->parts[i];
        if (part->kind != SOURCE)
            continue;
        if (links) {
            char name[32];
            snprintf(name, sizeof name, "/%zu.o", made);
            objects[made] = joined(work->directory, name);
            status = compile(work, part, objects[made++]);
        } else {
            status = compile(work, part, object_of(work, part->word, call->only_assembly));
        }
    }
    if (!status && links)
        status = link_objects(call, link, objects, work->who);
    return status;
}

/* With all that is in it: an option that is not known here may have named a file after a step's output. */
static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
    rmdir(path);
}

int rf_cc_inline(const struct rf_words *compile, const struct rf_words *link, const struct rf_words *arguments, bool links,
                 bool every_access, const char *who)
{
    struct rf_words words = { NULL, 0 };
    rf_words_expand(&words, arguments, 0);
    struct call call = look(&words);
    struct work work = { .call = &call, .compile = compile, .every_access = every_access, .who = who };
    if (!call.sources || call.one_step || (!links && !call.only_objects && !call.only_assembly) ||
        (!links && call.inputs) || (!links && call.output && call.sources > 1)) /* the last one is an error, and clang's to tell */
        return -1;
    if (!rf_cli_places(&work.places, who))
        return RF_EXIT_USAGE;
    char *hooks = joined(work.places.lib, "/redflag/hooks.bc");
    if (access(hooks, R_OK) != 0) {
        fprintf(stderr, "%s: --inline: %s is not there: redflag was built without clang or LLVM (Debian: clang, llvm-14-dev)\n", who, hooks);
        return RF_EXIT_USAGE;
    }
    const char *temporary = getenv("TMPDIR");
    snprintf(work.directory, sizeof work.directory, "%s/redflag-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(work.directory)) {
        fprintf(stderr, "%s: --inline: %s: %s\n", who, work.directory, strerror(errno));
        return RF_EXIT_USAGE;
    }
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_handler = interrupt }, old;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* as nohup has it */
            sigaction(signals[i], &action, NULL);
    int status = compile_all(&work, link, links);
    remove_directory(work.directory);
    return status;
}
