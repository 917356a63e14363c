/* redflag sites: the accesses of a program that can be watched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/program.h"
#include "cli/program_sites.h"
#include "report/json.h"
#include "trace/grow.h"

#define WHO "redflag sites"

static int help(void)
{
    puts("usage: redflag sites [OPTION...] PROGRAM|LIBRARY...\n\n"
         "Lists the sites of a program and of the libraries that it is loaded with: every call of a hook, which stands before an\n"
         "access to memory. One line for each: where it is in the source, the function, the access, and the name by build id and\n"
         "offset, with a tab between them. `redflag chase --pair` and others take any of these names.\n\n"
         "  --at NAME         only those that the name means: FILE:LINE, FILE:LINE:COLUMN, BUILD-ID+0xOFFSET or @FUNCTION;\n"
         "                    of FILE and BUILD-ID the end and the beginning suffice; may be given several times\n"
         "  --no-libraries    only those of the files that are named\n"
         "  --format FORMAT   text or jsonl (default: text)\n"
         "  --count           only how many there are in each file\n\n"
         "Exit status: 1 if there are none, 2 if a file cannot be read.");
    return RF_EXIT_OK;
}

struct wish {
    const char **names;
    size_t count, cap;
    bool libraries, jsonl, counts;
};

static void print_text(const struct rf_site *site)
{
    char name[512], place[4352], words[64];
    rf_site_name(site, name, sizeof name);
    rf_site_place(site, place, sizeof place);
    rf_site_words(site, words, sizeof words);
    const char *function = rf_site_function(site);
    printf("%s\t%s\t%s\t%s\n", place, function ? function : "-", words, name);
}

static void print_json(const struct rf_site *site)
{
    char text[512];
    struct rf_json json = { .out = stdout, .first = true, .line = true };
    rf_json_open(&json, NULL, '{');
    rf_site_name(site, text, sizeof text);
    rf_json_string(&json, "site", text);
    rf_json_string(&json, "module", site->module->path);
    if (site->module->build_id[0])
        rf_json_string(&json, "build_id", site->module->build_id);
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)site->offset);
    rf_json_string(&json, "offset", text);
    rf_json_string(&json, "hook", site->hook_name);
    rf_json_string(&json, "op", site->hook.write ? "write" : "read");
    if (site->hook.size)
        rf_json_number(&json, "size", site->hook.size);
    if (site->hook.kind == RF_HOOK_ATOMIC)
        rf_json_bool(&json, "atomic", true);
    const char *function = rf_site_function(site);
    if (function)
        rf_json_string(&json, "function", function);
    if (site->file)
        rf_json_string(&json, "file", site->file);
    if (site->line)
        rf_json_number(&json, "line", site->line);
    if (site->column)
        rf_json_number(&json, "column", site->column);
    rf_json_close(&json, '}');
    putchar('\n');
}

static void print(const struct rf_site *site, const struct wish *wish)
{
    if (wish->jsonl)
        print_json(site);
    else
        print_text(site);
}

/* Those that a name means. */
static size_t print_named(const struct rf_site_list *list, const char *name, const struct wish *wish)
{
    size_t count = rf_site_list_find(list, name, NULL, 0);
    const struct rf_site **found = rf_zeroed(count, sizeof *found);
    rf_site_list_find(list, name, found, count);
    for (size_t i = 0; i < count; i++)
        print(found[i], wish);
    free(found);
    if (!count)
        fprintf(stderr, WHO ": no site is named %s\n", name);
    return count;
}

static size_t print_all(const struct rf_site_list *list, const struct wish *wish)
{
    size_t count = 0;
    for (size_t m = 0; m < list->count; m++) {
        const struct rf_site_module *module = list->modules[m];
        if (wish->counts && module->instrumented)
            printf("%zu\t%s\t%s\n", module->count, module->path, module->build_id[0] ? module->build_id : "-");
        for (size_t i = 0; i < module->count && !wish->counts; i++)
            print(&module->sites[i], wish);
        count += module->count;
    }
    return count;
}

/* How many arguments an option took; 0: it is none, or wrong, which was said. */
static int option(struct wish *wish, char **argv, int left)
{
    const char *name = argv[0], *value = left > 1 ? argv[1] : NULL;
    if (!strcmp(name, "--no-libraries")) {
        wish->libraries = false;
        return 1;
    }
    if (!strcmp(name, "--count")) {
        wish->counts = true;
        return 1;
    }
    if (!strcmp(name, "--at") && value && rf_site_is_name(value)) {
        wish->names = rf_reserve(wish->names, &wish->cap, wish->count + 1, sizeof *wish->names);
        wish->names[wish->count++] = value;
        return 2;
    }
    if (!strcmp(name, "--format") && value && (!strcmp(value, "text") || !strcmp(value, "jsonl"))) {
        wish->jsonl = !strcmp(value, "jsonl");
        return 2;
    }
    if (!strcmp(name, "--at") || !strcmp(name, "--format"))
        fprintf(stderr, WHO ": %s takes %s%s%s\n", name, name[2] == 'a' ? "FILE:LINE, BUILD-ID+0xOFFSET or @FUNCTION" : "text or jsonl",
                value ? ", not " : "", value ? value : "");
    else
        fprintf(stderr, WHO ": unknown option '%s'; try 'redflag sites --help'\n", name);
    return 0;
}

int rf_cli_sites(int argc, char **argv)
{
    struct wish wish = { .libraries = true };
    struct rf_site_list list = { .modules = NULL };
    int i = 1, status = RF_EXIT_OK;
    for (int used; i < argc && argv[i][0] == '-' && argv[i][1]; i += used) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help();
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        used = option(&wish, argv + i, argc - i);
        if (!used)
            return RF_EXIT_USAGE;
    }
    if (i >= argc) {
        fputs(WHO ": no program is named; try 'redflag sites --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    for (; i < argc && status == RF_EXIT_OK; i++) {
        char path[PATH_MAX];
        if (access(argv[i], F_OK) == 0)
            snprintf(path, sizeof path, "%s", argv[i]);
        else if (!rf_program_find(argv[i], path, sizeof path))
            path[0] = 0;
        if (!path[0]) {
            fprintf(stderr, WHO ": %s: no such program\n", argv[i]);
            status = RF_EXIT_USAGE;
        } else if (!rf_program_sites(&list, path, wish.libraries, WHO)) {
            status = RF_EXIT_USAGE;
        }
    }
    if (status == RF_EXIT_OK) {
        size_t count = wish.count ? 0 : print_all(&list, &wish);
        bool missing = false;
        for (size_t n = 0; n < wish.count; n++) {
            size_t some = print_named(&list, wish.names[n], &wish);
            missing |= !some;
            count += some;
        }
        if (!count && !wish.count)
            fprintf(stderr, WHO ": no calls of hooks: build it with `redflag cc`, or with `gcc -fsanitize=thread`\n");
        if (!count || missing)
            status = RF_EXIT_FOUND;
    }
    rf_site_list_free(&list);
    free(wish.names);
    return status;
}
