/* redflag cc, redflag c++: a compiler like the one underneath, whose programs find their races.
 *
 * 1. It becomes the compiler: no process stays between, but for --inline (cli/cc_inline.h). All arguments are passed on as they are; ours come first, so that the user's
 *    own -fsanitize= and -fno-sanitize= have the last word.
 * 2. What is compiled is compiled with -fsanitize=thread. What is linked gets our runtime in place of the compiler's:
 *      gcc    asks the linker for -ltsan and finds ours under that name, in a directory of its own; its start-up object
 *             (.preinit_array) comes along.
 *      clang  would link an archive of its own; -fno-sanitize-link-runtime keeps it out, and ours is named first.
 *    The place of the runtime is remembered in the program (-rpath), so that it runs without `redflag run`.
 *    redflag.h is found last of all places, so that it stands in nobody's way.
 * 3. What is neither compiled nor linked (questions like --version or -print-file-name) reaches the compiler untouched.
 * 4. clang leaves out the hook of a read if a write to the same place follows before the next branch or call: for a detector that looks at
 *    every access, the write tells as much. But the two may stand in different lines, and a pair of lines may name the read. So where
 *    lines are to be named, with --bitcode and --sites, each read has its hook.
 * 5. With --sites nothing tells where functions begin and end: clang would do so in every function of the file, also in those that it has to
 *    leave alone, and `redflag chase`, which such a program is built for, unwinds the stack. Nor with -fgnu-tm: gcc 12 crashes over the exit
 *    hook of a function that is called in a transaction.
 * 6. gcc gets a plugin that finds the same races with fewer hooks, and those of copies that it forgets (plugin/), if one was made for its version;
 *    with --inline clang's output gets passes that do (inline/fewer.h). With --every-access only copies get theirs. Not where accesses are
 *    sites, which --bitcode and --sites say; nor with -fgnu-tm, whose accesses in transactions are others' than plain ones.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cc_bitcode.h"
#include "cli/cc_inline.h"
#include "cli/cc_sites.h"
#include "cli/cc_words.h"
#include "cli/cli.h"
#include "cli/places.h"
#include "trace/grow.h"

/* What the arguments ask for. */
struct wish {
    bool question;     /* an answer about the compiler, and no more */
    bool stops_early;  /* -c, -S, -E and their like: nothing is linked */
    bool inputs;       /* there is something to compile or link */
    bool all_headers;  /* ... but it is only headers, to be precompiled */
    bool all_assembly; /* ... but nothing that a sanitizer could instrument: clang warns of options without use */
    bool all_bitcode;  /* ... but it is LLVM's, which includes no headers: the same */
    bool sources;      /* ... among it C or C++ */
    bool other_checks; /* -fsanitize= names others than thread */
    bool transactions; /* -fgnu-tm */
    bool lto;          /* -flto, in any of its forms */
    bool lld;          /* the linker, which needs no -flto: it knows bitcode when it meets it */
    bool lto_part;     /* -fthinlto-index=: what a link with -flto does, for one file */
    bool shared, relocatable, no_libraries;
    bool not_ours;     /* -fno-sanitize=thread or all has the last word: the runtime stays out, as the compiler's own would */
    const char *refused;
    const char *language; /* of -x */
};

static const char *const stop_early[] = { "-c",  "-S", "-E", "-M", "-MM", "-fsyntax-only", "--compile", "--assemble",
                                          "--preprocess", "-emit-ast", "--analyze", "--precompile", NULL };

static const char *const questions[] = { "--version", "--help", "-dumpversion", "-dumpfullversion", "-dumpmachine", "-dumpspecs",
                                         "--target-help", "-cc1", "-cc1as", NULL };

/* 7. clang makes calls of copies whose size it knows, for a runtime to look at. When files are optimised together, with -flto, LLVM would make
 *    moves of these again, and of others whose size it learns only then: it is told to leave calls of these functions as they are. (Of those of
 *    -D_FORTIFY_SOURCE it makes moves all the same if they fill the object, and it learns that only then.) -fno-builtin-memcpy would tell it, too,
 *    but also that a word that is read by memcpy(), as from a file's format, is a call from the start. */
static const char *const copies[] = { "memcpy",  "memmove", "memset",   "mempcpy",      "memccpy",       "strncpy",      "strcat",        "strncat",
                                      "strncmp", "sprintf", "snprintf", "__memcpy_chk", "__memmove_chk", "__memset_chk", "__mempcpy_chk",
                                      "__strncpy_chk", "__strcpy_chk", "__stpcpy_chk" };

static bool is_header(const char *name)
{
    static const char *const endings[] = { "h", "hh", "hpp", "hxx", "H", "hp", "h++", "tcc", NULL };
    const char *dot = strrchr(name, '.');
    return dot && rf_word_in(endings, dot + 1);
}

static bool is_assembly(const char *name, const char *language)
{
    const char *dot = strrchr(name, '.');
    return language ? !strcmp(language, "assembler") : dot && !strcmp(dot, ".s");
}

static bool is_bitcode(const char *name, const char *language)
{
    const char *dot = strrchr(name, '.');
    return language ? !strcmp(language, "ir") : dot && (!strcmp(dot, ".bc") || !strcmp(dot, ".ll"));
}

static void sanitizers(struct wish *wish, const char *list, bool on)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        bool thread = length == 6 && !memcmp(list, "thread", 6), all = length == 3 && !memcmp(list, "all", 3);
        if (thread || (all && !on))
            wish->not_ours = !on;
        if (!thread && (on || all))
            wish->other_checks = on;
        list += length + (list[length] == ',');
    }
}

static void look(struct wish *wish, const struct rf_words *arguments, unsigned depth);

/* The arguments in a file: a file that is not there is the compiler's to complain about. */
static void look_in_file(struct wish *wish, const char *name, unsigned depth)
{
    struct rf_words inside = { NULL, 0 };
    if (depth >= RF_WORDS_DEPTH || !rf_words_of_file(&inside, name)) {
        wish->inputs = true;
        wish->all_headers = wish->all_assembly = wish->all_bitcode = false;
        return;
    }
    look(wish, &inside, depth + 1);
    for (size_t i = 0; i < inside.count; i++)
        if (!strcmp(inside.word[i], "-static-libtsan"))
            wish->refused = "-static-libtsan inside a response file: take it out, the runtime is a shared library";
}

/* What says how bitcode becomes code: it may stand in REDFLAG_CC, too. */
static bool look_at_link(struct wish *wish, const char *word)
{
    if (!strcmp(word, "-flto") || rf_word_starts(word, "-flto=") || !strcmp(word, "-fno-lto"))
        wish->lto = word[2] == 'l';
    else if (rf_word_starts(word, "-fuse-ld=") || rf_word_starts(word, "--ld-path="))
        wish->lld = strstr(word, "lld") != NULL;
    else
        return false;
    return true;
}

static void look_at(struct wish *wish, const char *word, const char *next, unsigned depth)
{
    if (look_at_link(wish, word))
        return;
    if (word[0] == '@' && word[1]) {
        look_in_file(wish, word + 1, depth);
    } else if (word[0] != '-' || !word[1]) {
        wish->inputs = true;
        if (!(wish->language ? strstr(wish->language, "-header") != NULL : is_header(word)))
            wish->all_headers = false;
        wish->all_assembly &= is_assembly(word, wish->language);
        wish->all_bitcode &= is_bitcode(word, wish->language);
        wish->sources |= rf_cc_is_source(word, wish->language);
    } else if (rf_word_in(stop_early, word)) {
        wish->stops_early = true;
    } else if (rf_word_in(questions, word) || rf_word_starts(word, "-print-") || rf_word_starts(word, "--print-") ||
               rf_word_starts(word, "--help=")) {
        wish->question = true;
    } else if (rf_word_starts(word, "-l")) {
        wish->inputs = true;
        wish->all_headers = false;
    } else if (!strcmp(word, "-x")) {
        wish->language = next && strcmp(next, "none") ? next : NULL;
    } else if (rf_word_starts(word, "-x")) {
        wish->language = strcmp(word + 2, "none") ? word + 2 : NULL;
    } else if (!strcmp(word, "-shared") || !strcmp(word, "--shared")) {
        wish->shared = true;
    } else if (!strcmp(word, "-r") || !strcmp(word, "-Wl,-r") || !strcmp(word, "-Wl,--relocatable")) {
        wish->relocatable = true;
    } else if (!strcmp(word, "-nostdlib") || !strcmp(word, "-nodefaultlibs") || !strcmp(word, "--no-standard-libraries")) {
        wish->no_libraries = true;
    } else if (!strcmp(word, "-static") || !strcmp(word, "-static-pie") || !strcmp(word, "--static")) {
        wish->refused = "a static program cannot be watched: the runtime is a shared library; link without -static";
    } else if (!strcmp(word, "-fgnu-tm") || !strcmp(word, "-fno-gnu-tm")) {
        wish->transactions = word[2] == 'g';
    } else if (rf_word_starts(word, "-fthinlto-index=")) {
        wish->lto_part = true;
    } else if (rf_word_starts(word, "-fsanitize=")) {
        sanitizers(wish, word + strlen("-fsanitize="), true);
    } else if (rf_word_starts(word, "-fno-sanitize=")) {
        sanitizers(wish, word + strlen("-fno-sanitize="), false);
    }
}

static void look(struct wish *wish, const struct rf_words *arguments, unsigned depth)
{
    for (size_t i = 0; i < arguments->count; i++) {
        const char *word = arguments->word[i];
        look_at(wish, word, i + 1 < arguments->count ? arguments->word[i + 1] : NULL, depth);
        if (rf_cc_takes_another(word))
            i++;
    }
}

/* What the compiler prints on a question; empty if it cannot be asked. */
static void ask(const struct rf_words *compiler, const char *question, char *answer, size_t size)
{
    int ends[2];
    answer[0] = 0;
    if (pipe(ends) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        struct rf_words command = { NULL, 0 };
        for (size_t i = 0; i < compiler->count; i++)
            rf_words_add(&command, compiler->word[i]);
        rf_words_add(&command, question);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execvp(command.word[0], command.word);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; (got = read(ends[0], answer + used, size - 1 - used)) > 0;)
        used += (size_t)got;
    answer[used] = 0;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* Does the compiler call itself clang? Its name tells, or it is asked. */
static bool is_clang(const struct rf_words *compiler)
{
    for (size_t i = 0; i < compiler->count; i++) {
        const char *slash = strrchr(compiler->word[i], '/'), *name = slash ? slash + 1 : compiler->word[i];
        if (name[0] == '-')
            continue;
        if (strstr(name, "clang"))
            return true;
        if (strstr(name, "gcc") || strstr(name, "g++"))
            return false;
    }
    char answer[512];
    ask(compiler, "--version", answer, sizeof answer);
    return strstr(answer, "clang") != NULL;
}

static void add_linker(struct rf_words *command, const char *option, const char *value)
{
    rf_words_add(command, "-Xlinker");
    rf_words_add(command, option);
    if (value) {
        rf_words_add(command, "-Xlinker");
        rf_words_add(command, value);
    }
}

/* Invariant 7: through the linker, which hands it on to LLVM, or to LLVM itself. */
static void keep_copies(struct rf_words *command, bool linker)
{
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        char option[64];
        snprintf(option, sizeof option, "%s-force-attribute=%s:nobuiltin", linker ? "-plugin-opt=" : "", copies[i]);
        rf_words_add(command, linker ? "-Xlinker" : "-mllvm");
        rf_words_add(command, strdup(option));
    }
}

static void add_runtime(struct rf_words *command, const struct rf_places *places)
{
    add_linker(command, "--push-state", NULL);
    add_linker(command, "--no-as-needed", NULL);
    rf_words_add(command, places->library);
    add_linker(command, "--pop-state", NULL);
}

/* clang's archives for the other checks, which went out with its runtime for threads. */
static void add_other_checks(struct rf_words *command, const struct rf_words *compiler, bool cxx)
{
    static const char *const archives[] = { "libclang_rt.ubsan_standalone-x86_64.a", "libclang_rt.ubsan_standalone_cxx-x86_64.a" };
    for (int i = 0; i < 1 + cxx; i++) {
        char question[128], *path = rf_zeroed(PATH_MAX, 1);
        snprintf(question, sizeof question, "-print-file-name=%s", archives[i]);
        ask(compiler, question, path, PATH_MAX);
        path[strcspn(path, "\n")] = 0;
        if (path[0] != '/') {
            free(path);
            continue;
        }
        add_linker(command, "--whole-archive", NULL);
        rf_words_add(command, path);
        add_linker(command, "--no-whole-archive", NULL);
    }
}

/* ccache takes a file for what was compiled before if the list of functions has the same name: it must read what is in it. */
static void tell_ccache(const char *list)
{
    const char *others = getenv("CCACHE_EXTRAFILES");
    char files[4096];
    int length = snprintf(files, sizeof files, "%s%s%s", list, others && *others ? ":" : "", others ? others : "");
    if (length < 0 || (size_t)length >= sizeof files || setenv("CCACHE_EXTRAFILES", files, 1) != 0)
        setenv("CCACHE_DISABLE", "1", 1);
}

/* Does the compiler take these words? It compiles nothing with them. */
static bool compiler_knows(const struct rf_words *compiler, const char *const *words)
{
    static const char *const nothing[] = { "-x", "c", "-fsyntax-only", "/dev/null", NULL };
    struct rf_words command = { NULL, 0 };
    for (size_t i = 0; i < compiler->count; i++)
        rf_words_add(&command, compiler->word[i]);
    for (; *words; words++)
        rf_words_add(&command, *words);
    for (const char *const *word = nothing; *word; word++)
        rf_words_add(&command, *word);
    return rf_words_run(command.word, -1);
}

/* What a pass of the compiler is told, unless it does not know that, or is told something about it already, be it in a response file: LLVM
 * takes an option of its passes only once. */
static void tell_pass(struct rf_words *command, const struct rf_words *compiler, const struct rf_words *arguments, bool clang,
                      const char *option, const char *value)
{
    struct rf_words all = { NULL, 0 };
    char *text = rf_zeroed(strlen(option) + strlen(value) + sizeof "--param=-", 1);
    sprintf(text, clang ? "-%s%s" : "--param=%s%s", option, value);
    const char *const words[] = { clang ? "-mllvm" : text, clang ? text : NULL, NULL };
    rf_words_expand(&all, compiler, 0);
    rf_words_expand(&all, arguments, 0);
    for (size_t i = 0; i < all.count; i++)
        if (rf_word_starts(all.word[i], option) || (all.word[i][0] == '-' && strstr(all.word[i], option)))
            return;
    if (!compiler_knows(compiler, words))
        return;
    for (const char *const *word = words; *word; word++)
        rf_words_add(command, *word);
}

/* Invariants 4 and 5. */
static void tell_passes(struct rf_words *command, const struct rf_words *compiler, const struct rf_words *arguments, bool clang,
                        bool lines, bool no_functions)
{
    if (clang && lines)
        tell_pass(command, compiler, arguments, clang, "tsan-instrument-read-before-write", "");
    if (no_functions)
        tell_pass(command, compiler, arguments, clang, "tsan-instrument-func-entry-exit", "=0");
}

/* Invariant 6. */
static void add_plugin(struct rf_words *command, const struct rf_words *compiler, const struct rf_places *places, bool fewer)
{
    static const char begin[] = "-fplugin=";
    char version[64], option[sizeof begin + PATH_MAX];
    strcpy(option, begin);
    ask(compiler, "-dumpfullversion", version, sizeof version);
    version[strcspn(version, "\n")] = 0;
    if (rf_cli_plugin(places, version, fewer, option + strlen(begin), PATH_MAX))
        rf_words_add(command, option);
}

static int compile(bool cxx, int argc, char **argv)
{
    const char *who = cxx ? "redflag c++" : "redflag cc";
    const char *variable = cxx ? "REDFLAG_CXX" : "REDFLAG_CC", *set = getenv(variable);
    struct rf_words command = { NULL, 0 }, arguments = { NULL, 0 };
    rf_words_split(&command, set && *set ? set : cxx ? "g++" : "gcc");
    if (!command.count) {
        fprintf(stderr, "%s: %s names no compiler\n", who, variable);
        return RF_EXIT_USAGE;
    }
    const char *slash = strrchr(command.word[0], '/');
    if (!strcmp(slash ? slash + 1 : command.word[0], "redflag")) {
        fprintf(stderr, "%s: %s is redflag itself; it names the compiler underneath, as gcc or clang\n", who, variable);
        return RF_EXIT_USAGE;
    }
    bool inlines = rf_cc_wants("--inline", &argc, argv), every_access = rf_cc_wants("--every-access", &argc, argv);
    const char *candidates = rf_cc_wants_sites(&argc, argv);
    if (inlines && candidates) {
        fprintf(stderr, "%s: --inline and --sites do not go together: inlined hooks are no sites\n", who);
        return RF_EXIT_USAGE;
    }
    bool bitcode = rf_cc_wants("--bitcode", &argc, argv);
    if (bitcode) {
        int status = rf_cc_bitcode(cxx, argc, argv);
        if (status)
            return status;
    }
    for (int i = 1; i < argc; i++)
        rf_words_add(&arguments, argv[i]);
    struct wish wish = { .all_headers = true, .all_assembly = true, .all_bitcode = true };
    for (size_t i = 1; i < command.count; i++)
        look_at_link(&wish, command.word[i]);
    look(&wish, &arguments, 0);

    struct rf_places places;
    bool builds = wish.inputs && !wish.question;
    bool links = builds && !wish.stops_early && !wish.relocatable && !wish.all_headers;
    if (links && wish.refused) {
        fprintf(stderr, "%s: %s\n", who, wish.refused);
        return RF_EXIT_USAGE;
    }
    bool placed = builds && rf_cli_places(&places, links ? who : NULL);
    if (links && !placed)
        return RF_EXIT_USAGE;
    struct rf_words compiler = { NULL, 0 };
    for (size_t i = 0; i < command.count; i++)
        rf_words_add(&compiler, command.word[i]);
    bool compiles = builds && !wish.all_assembly && !wish.all_headers;
    bool clang = (links || compiles) && is_clang(&compiler);
    if (inlines && builds && !clang && (links || compiles)) {
        fprintf(stderr, "%s: --inline needs clang, and %s is not: set %s=%s\n", who, compiler.word[0], variable, cxx ? "clang++" : "clang");
        return RF_EXIT_USAGE;
    }
    struct rf_cc_sites sites = { .instrument = true };
    if (candidates && compiles && arguments.count) {
        int status = rf_cc_sites(&sites, candidates, compiler.word, arguments.word, clang, who);
        if (status)
            return status;
    }
    if (sites.instrument && (links || (builds && !wish.all_assembly)))
        rf_words_add(&command, "-fsanitize=thread");
    char ignore[128];
    if (sites.instrument && sites.ignore_list[0]) {
        snprintf(ignore, sizeof ignore, "-fsanitize-ignorelist=%s", sites.ignore_list);
        rf_words_add(&command, ignore);
        tell_ccache(sites.ignore_list);
    }
    if (sites.instrument && compiles && wish.sources && (candidates || bitcode || wish.transactions))
        tell_passes(&command, &compiler, &arguments, clang, candidates || bitcode, candidates || wish.transactions);
    if (sites.instrument && compiles && wish.sources && bitcode && clang) /* one store of two lines': doc/caper.md */
        tell_pass(&command, &compiler, &arguments, clang, "vectorize-slp", "=0");
    if (placed && !clang && (compiles || (links && wish.lto)) && !candidates && !bitcode && !wish.transactions)
        add_plugin(&command, &compiler, &places, !every_access);
    if (placed && places.include[0] && !wish.all_assembly && !wish.all_bitcode) {
        rf_words_add(&command, "-idirafter");
        rf_words_add(&command, places.include);
    }
    struct rf_words first = { NULL, 0 }; /* what compiles, and does not link */
    for (size_t i = 0; i < command.count; i++)
        rf_words_add(&first, command.word[i]);
    if (clang && (wish.lto || wish.lld) && !wish.stops_early)
        keep_copies(&command, true);
    if (sites.instrument && clang && wish.lto_part)
        keep_copies(&command, false);
    if (clang && !wish.not_ours && (links || (wish.relocatable && !wish.stops_early))) /* gcc's stays out of what -r makes by itself */
        rf_words_add(&command, "-fno-sanitize-link-runtime");
    if (links) {
        add_linker(&command, "-rpath", places.lib);
        if (!clang) {
            rf_words_add(&command, "-L");
            rf_words_add(&command, places.tsan);
        }
        /* gcc finds it by itself, when it is told of the sanitizer; objects that come along may have hooks though the source has none. */
        bool by_name = clang || !sites.instrument ? wish.shared || !wish.no_libraries : wish.shared && wish.no_libraries;
        if (!wish.not_ours && by_name)
            add_runtime(&command, &places);
        if (clang && !wish.not_ours && wish.other_checks)
            add_other_checks(&command, &compiler, cxx);
    }
    if (inlines && compiles && sites.instrument && !wish.not_ours) {
        int status = rf_cc_inline(&first, &command, &arguments, links, every_access || bitcode || wish.transactions, who);
        if (status >= 0)
            return status;
    }
    for (size_t i = 0; i < arguments.count; i++)
        if (!links || strcmp(arguments.word[i], "-static-libtsan"))
            rf_words_add(&command, arguments.word[i]);
    execvp(command.word[0], command.word);
    fprintf(stderr, "%s: %s: %s; %s names the compiler\n", who, command.word[0], strerror(errno), variable);
    return RF_EXIT_USAGE;
}

static bool asks_for_help(int argc, char **argv)
{
    return argc == 2 && !strcmp(argv[1], "--redflag-help");
}

static int help(const char *command, const char *variable, const char *compiler)
{
    printf("usage: redflag %s [ARGUMENT OF THE COMPILER...]\n\n"
           "A compiler whose programs find their data races as they run. Use it as any other:\n\n"
           "  CC=\"redflag cc\" CXX=\"redflag c++\" ./configure && make\n\n"
           "%s names the compiler underneath, with flags if need be (default: %s). All arguments are its own, but\n"
           "  --sites FILE   instrument only what holds sites that FILE lists, for `redflag chase`: functions with clang, files with\n"
           "                 gcc\n"
           "  --every-access   with gcc or --inline, a check for each access, also where fewer find the same races: each is a site of\n"
           "                 its own\n"
           "  --inline   put what nearly every access needs into the program's own code, faster where accesses repeat; needs clang\n"
           "  --bitcode   leave the source as LLVM bitcode beside the object, FILE.bc, for `redflag static`; needs clang\n"
           "Run the result as it is, or with `redflag run`, which takes options.\n",
           command, variable, compiler);
    return RF_EXIT_OK;
}

int rf_cli_cc(int argc, char **argv)
{
    return asks_for_help(argc, argv) ? help("cc", "REDFLAG_CC", "gcc") : compile(false, argc, argv);
}

int rf_cli_cxx(int argc, char **argv)
{
    return asks_for_help(argc, argv) ? help("c++", "REDFLAG_CXX", "g++") : compile(true, argc, argv);
}
