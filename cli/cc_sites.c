/* See cli/cc_sites.h. */
#include "cli/cc_sites.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cc_words.h"
#include "cli/cli.h"
#include "sites/list.h"
#include "trace/grow.h"

const char *rf_cc_wants_sites(int *argc, char **argv)
{
    const char *file = NULL;
    int kept = 0;
    for (int i = 0; i < *argc; i++) {
        if (!strcmp(argv[i], "--sites"))
            file = i + 1 < *argc ? argv[++i] : "";
        else if (!strncmp(argv[i], "--sites=", 8))
            file = argv[i] + 8;
        else
            argv[kept++] = argv[i];
    }
    argv[*argc = kept] = NULL;
    return file;
}

/* -- the candidates -------------------------------------------------------------------------------------------------------------- */

struct names {
    struct rf_site_pattern *list;
    size_t count, cap;
};

/* One line, which is cut into words: are there names in it? */
static bool read_line(struct names *names, char *line)
{
    const char *between = strchr(line, '\t') ? "\t\n" : " ,\n";
    size_t before = names->count;
    for (char *rest = NULL, *word = strtok_r(line, between, &rest); word; word = strtok_r(NULL, between, &rest)) {
        struct rf_site_pattern name;
        if (!rf_site_pattern_read(word, &name) || name.kind == RF_SITE_BY_OFFSET)
            continue;
        name.text = strndup(name.text, name.length);
        names->list = rf_reserve(names->list, &names->cap, names->count + 1, sizeof *names->list);
        names->list[names->count++] = name;
    }
    return names->count > before;
}

static bool read_names(struct names *names, const char *path, const char *who)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s: --sites: %s: %s\n", who, path, strerror(errno));
        return false;
    }
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    for (unsigned number = 1; good && getline(&line, &size, file) > 0; number++) {
        line[strcspn(line, "#")] = 0;
        if (line[strspn(line, " \t\n")] && !read_line(names, line)) {
            fprintf(stderr, "%s: --sites: %s:%u: no FILE:LINE and no @FUNCTION\n", who, path, number);
            good = false;
        }
    }
    free(line);
    fclose(file);
    return good;
}

/* -- asking the compiler --------------------------------------------------------------------------------------------------------- */

struct command {
    char **words;
    size_t count, cap;
};

static void add(struct command *command, const char *word)
{
    command->words = rf_reserve(command->words, &command->cap, command->count + 2, sizeof *command->words);
    command->words[command->count++] = (char *)word;
    command->words[command->count] = NULL;
}

static bool is(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(*list, word))
            return true;
    return false;
}

/* The compiler with the arguments that say what the source means, and not what is made of it. */
static struct command question(char *const *compiler, char *const *arguments)
{
    static const char *const drop[] = { "-c", "-S", "-E", "-M", "-MM", "-MD", "-MMD", "-MP", "-MG", "-flto", "-save-temps", NULL };
    static const char *const drop_two[] = { "-o", "-MF", "-MT", "-MQ", "-MJ", NULL };
    struct command command = { .words = NULL };
    for (; *compiler; compiler++)
        add(&command, *compiler);
    for (; *arguments; arguments++) {
        if (is(*arguments, drop_two) && arguments[1])
            arguments++;
        else if (!is(*arguments, drop) && strncmp(*arguments, "-o", 2) != 0 && strncmp(*arguments, "-flto=", 6) != 0)
            add(&command, *arguments);
    }
    return command;
}

/* Does a file of the list "x.o: a.c b.h \", as make reads it, belong to a candidate? */
static bool mentions(char *text, const struct names *names)
{
    char full[PATH_MAX];
    for (char *rest = NULL, *word = strtok_r(text, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
        if (!strcmp(word, "\\") || word[strlen(word) - 1] == ':' || !realpath(word, full))
            continue;
        for (size_t i = 0; i < names->count; i++)
            if (names->list[i].kind == RF_SITE_BY_LINE && rf_site_path_fits(full, names->list[i].text, names->list[i].length))
                return true;
    }
    return false;
}

static bool has_functions(const struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (names->list[i].kind == RF_SITE_BY_FUNCTION)
            return true;
    return false;
}

/* Invariant 2. */
static bool needs_hooks(const struct names *names, char *const *compiler, char *const *arguments)
{
    if (has_functions(names)) /* they may be anywhere */
        return true;
    int out = memfd_create("dependencies", MFD_CLOEXEC);
    struct command command = question(compiler, arguments);
    add(&command, "-M");
    bool needs = true;
    if (out >= 0 && rf_words_run(command.words, out)) {
        off_t size = lseek(out, 0, SEEK_END);
        char *text = rf_zeroed((size_t)size + 1, 1);
        if (size > 0 && pread(out, text, (size_t)size, 0) == size)
            needs = mentions(text, names);
        free(text);
    }
    if (out >= 0)
        close(out);
    free(command.words);
    return needs;
}

/* -- functions that hold candidates ---------------------------------------------------------------------------------------------- */

struct function {
    const char *name; /* of its symbol */
    Dwarf_Addr low, high;
    bool wanted;
};

struct functions {
    const struct names *names;
    struct function *list;
    size_t count, cap;
};

static int take_function(Dwarf_Die *die, void *context)
{
    struct functions *functions = context;
    struct function function = { .name = NULL };
    Dwarf_Attribute attribute;
    if (dwarf_lowpc(die, &function.low) != 0 || dwarf_highpc(die, &function.high) != 0)
        return DWARF_CB_OK;
    const char *linkage = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    const char *plain = dwarf_diename(die);
    function.name = linkage ? linkage : plain;
    if (!function.name)
        return DWARF_CB_OK;
    for (size_t i = 0; i < functions->names->count; i++) {
        const struct rf_site_pattern *name = &functions->names->list[i];
        if (name->kind == RF_SITE_BY_FUNCTION)
            function.wanted |= rf_site_function_fits(function.name, name->text, name->length) ||
                               rf_site_function_fits(plain, name->text, name->length);
    }
    functions->list = rf_reserve(functions->list, &functions->cap, functions->count + 1, sizeof *functions->list);
    functions->list[functions->count++] = function;
    return DWARF_CB_OK;
}

static bool line_wanted(const struct names *names, const char *file, int line)
{
    char full[PATH_MAX];
    bool resolved = false;
    for (size_t i = 0; i < names->count; i++) {
        if (names->list[i].kind != RF_SITE_BY_LINE || (int)names->list[i].line != line)
            continue;
        if (!resolved && !realpath(file, full))
            snprintf(full, sizeof full, "%s", file);
        resolved = true;
        if (rf_site_path_fits(full, names->list[i].text, names->list[i].length) ||
            rf_site_path_fits(file, names->list[i].text, names->list[i].length))
            return true;
    }
    return false;
}

static void take_lines(Dwarf_Die *unit, struct functions *functions)
{
    Dwarf_Lines *lines;
    size_t count;
    if (dwarf_getsrclines(unit, &lines, &count) != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *line = dwarf_onesrcline(lines, i);
        Dwarf_Addr addr;
        int number;
        const char *file = dwarf_linesrc(line, NULL, NULL);
        if (!file || dwarf_lineaddr(line, &addr) != 0 || dwarf_lineno(line, &number) != 0 ||
            !line_wanted(functions->names, file, number))
            continue;
        for (size_t f = 0; f < functions->count; f++)
            if (addr >= functions->list[f].low && addr < functions->list[f].high)
                functions->list[f].wanted = true;
    }
}

static void write_list(const struct functions *functions, int to, struct rf_cc_sites *sites)
{
    FILE *file = fdopen(dup(to), "w");
    sites->instrument = false;
    if (file)
        fputs("[thread]\n", file);
    for (size_t i = 0; i < functions->count; i++) {
        sites->instrument |= functions->list[i].wanted;
        bool also = false; /* one of several of that name: constructors have two */
        for (size_t j = 0; j < functions->count && !also; j++)
            also = functions->list[j].wanted && !strcmp(functions->list[j].name, functions->list[i].name);
        if (file && !also)
            fprintf(file, "fun:%s\n", functions->list[i].name);
    }
    if (!file || fclose(file) != 0)
        sites->instrument = true;
    else
        snprintf(sites->ignore_list, sizeof sites->ignore_list, "/proc/self/fd/%d", to);
}

/* Invariant 3, of an object. */
static void read_object(const char *path, const struct names *names, struct rf_cc_sites *sites)
{
    static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_build_id_find_elf,
                                              .find_debuginfo = dwfl_standard_find_debuginfo,
                                              .section_address = dwfl_offline_section_address };
    struct functions functions = { .names = names };
    Dwfl *dwfl = dwfl_begin(&callbacks);
    Dwfl_Module *module = dwfl ? dwfl_report_offline(dwfl, "object", path, -1) : NULL;
    if (module) {
        dwfl_report_end(dwfl, NULL, NULL);
        Dwarf_Addr bias;
        for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(module, unit, &bias));) {
            dwarf_getfuncs(unit, take_function, &functions, 0);
            take_lines(unit, &functions);
        }
        int to = memfd_create("ignore", 0); /* the compiler inherits it */
        if (functions.count && to >= 0)
            write_list(&functions, to, sites);
    }
    if (dwfl)
        dwfl_end(dwfl);
    free(functions.list);
}

static void find_functions(const struct names *names, char *const *compiler, char *const *arguments, struct rf_cc_sites *sites)
{
    char object[PATH_MAX];
    const char *directory = getenv("TMPDIR");
    snprintf(object, sizeof object, "%s/redflag-sites-XXXXXX", directory && *directory ? directory : "/tmp");
    int file = mkstemp(object);
    if (file < 0)
        return;
    close(file);
    struct command command = question(compiler, arguments);
    static const char *const more[] = { "-g", "-O0", "-c", "-o", NULL };
    for (const char *const *word = more; *word; word++)
        add(&command, *word);
    add(&command, object);
    if (rf_words_run(command.words, -1))
        read_object(object, names, sites);
    free(command.words);
    unlink(object);
}

/* -- the command ----------------------------------------------------------------------------------------------------------------- */

/* How many sources there are; more than 1 if that cannot be known. */
static unsigned sources(char *const *arguments)
{
    static const char *const plain[] = { ".c", ".cc", ".cp", ".cxx", ".cpp", ".c++", ".C", ".CPP", NULL };
    static const char *const unclear[] = { ".i", ".ii", ".m", ".mm", NULL };
    unsigned count = 0;
    for (; *arguments; arguments++) {
        const char *dot = strrchr(*arguments, '.');
        if (!strcmp(*arguments, "-") || (*arguments)[0] == '@' || (dot && (*arguments)[0] != '-' && is(dot, unclear)))
            return 1000;
        if ((*arguments)[0] != '-' && dot && is(dot, plain))
            count++;
        if (!strcmp(*arguments, "-o") && arguments[1])
            arguments++;
    }
    return count;
}

int rf_cc_sites(struct rf_cc_sites *sites, const char *file, char *const *compiler, char *const *arguments, bool clang,
                const char *who)
{
    struct names names = { .list = NULL };
    *sites = (struct rf_cc_sites){ .instrument = true };
    if (!*file) {
        fprintf(stderr, "%s: a file is missing after --sites\n", who);
        return RF_EXIT_USAGE;
    }
    if (!read_names(&names, file, who))
        return RF_EXIT_USAGE;
    unsigned count = sources(arguments);
    if (count > 0 && count < 1000)
        sites->instrument = needs_hooks(&names, compiler, arguments);
    if (count == 1 && clang && sites->instrument)
        find_functions(&names, compiler, arguments, sites);
    for (size_t i = 0; i < names.count; i++)
        free((char *)(uintptr_t)names.list[i].text);
    free(names.list);
    return RF_EXIT_OK;
}
