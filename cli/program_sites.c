/* See cli/program_sites.h. */
#include "cli/program_sites.h"

#include <stdio.h>
#include <string.h>

#include "cli/program.h"

static void add_library(void *context, const char *name, const char *path)
{
    struct rf_site_list *list = context;
    char error[256];
    /* Of the vdso there is no file. A path need not begin at the root: so the program was linked, and so the loader finds it. */
    if (!strchr(path, '/') || !strcmp(name, RF_RT_NAME) || !strncmp(name, "libtsan.so.", 11))
        return;
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->modules[i]->path, path))
            return;
    rf_site_list_add(list, path, error); /* one that cannot be read is the loader's to complain of */
}

bool rf_program_sites(struct rf_site_list *list, const char *path, bool libraries, const char *who)
{
    struct rf_program program;
    struct rf_places places = { .tsan = "" };
    char error[256];
    size_t before = list->count;
    if (!rf_site_list_add(list, path, error)) {
        fprintf(stderr, "%s: %s\n", who, error);
        return false;
    }
    rf_program_read(&program, path);
    rf_cli_places(&places, NULL);
    if (libraries && program.kind == RF_PROGRAM_ELF && program.dynamic)
        rf_program_libraries(path, &places, add_library, list);
    for (size_t i = before; i < list->count; i++)
        if (list->modules[i]->inlined)
            fprintf(stderr, "%s: %s was compiled with --inline: accesses with inlined hooks are no sites, and stay in the code\n", who,
                    list->modules[i]->path);
    return true;
}
