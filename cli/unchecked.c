/* See cli/unchecked.h.
 *
 * A line is a name of sites (sites/list.h), or FUNCTION alone; '#' begins a comment. The result goes to the program through memory that
 * has a descriptor and no name, which the runtime closes when it has read it.
 */
#include "cli/unchecked.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/program_sites.h"
#include "trace/grow.h"

struct chosen {
    const struct rf_site **sites;
    size_t count, cap;
};

static void choose(struct chosen *chosen, const struct rf_site_list *list, const char *name, size_t *unknown)
{
    char function[4096];
    if (!strpbrk(name, "@:+")) {
        snprintf(function, sizeof function, "@%s", name);
        name = function;
    }
    size_t count = rf_site_list_find(list, name, NULL, 0);
    *unknown += !count;
    chosen->sites = rf_reserve(chosen->sites, &chosen->cap, chosen->count + count + 1, sizeof *chosen->sites);
    chosen->count += rf_site_list_find(list, name, chosen->sites + chosen->count, count);
}

static int by_place(const void *a, const void *b)
{
    const struct rf_site *x = *(const struct rf_site *const *)a, *y = *(const struct rf_site *const *)b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void write_sites(FILE *to, const struct chosen *chosen)
{
    const struct rf_site *last = NULL;
    for (size_t i = 0; i < chosen->count; i++) {
        const struct rf_site *site = chosen->sites[i];
        if (site == last)
            continue;
        if (!last || last->module != site->module) {
            const char *slash = strrchr(site->module->path, '/');
            const char *name = slash ? slash + 1 : site->module->path;
            fprintf(to, "%s%s%s", last ? "\n" : "", site->module->build_id[0] ? site->module->build_id : "/",
                    site->module->build_id[0] ? "" : name);
        }
        fprintf(to, "+%" PRIx64, site->offset);
        last = site;
    }
    fputc('\n', to);
}

/* The word of a line, "" if there is none. */
static char *word_of(char *line)
{
    line[strcspn(line, "#\r\n")] = 0;
    while (isspace((unsigned char)*line))
        line++;
    size_t length = strlen(line);
    while (length && isspace((unsigned char)line[length - 1]))
        line[--length] = 0;
    return line;
}

bool rf_unchecked_sites(struct rf_run_text *text, const char *who, const char *list, const char *program)
{
    struct rf_site_list sites = { .modules = NULL };
    struct chosen chosen = { NULL, 0, 0 };
    FILE *file = fopen(list, "r");
    if (!file) {
        fprintf(stderr, "%s: --unchecked: %s: %s\n", who, list, strerror(errno));
        return false;
    }
    if (!rf_program_sites(&sites, program, true, who)) {
        fclose(file);
        return false;
    }
    char *line = NULL;
    size_t size = 0, names = 0, unknown = 0;
    while (getline(&line, &size, file) > 0) {
        char *name = word_of(line);
        if (!*name)
            continue;
        names++;
        choose(&chosen, &sites, name, &unknown);
    }
    free(line);
    fclose(file);
    if (unknown)
        fprintf(stderr, "%s: --unchecked: %zu of the %zu names in %s mean no site of %s\n", who, unknown, names, list, program);
    qsort(chosen.sites, chosen.count, sizeof(const struct rf_site *), by_place);
    int fd = memfd_create("redflag-unchecked", 0);
    FILE *to = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
    bool good = to != NULL;
    if (to) {
        write_sites(to, &chosen);
        good = fclose(to) == 0;
    }
    free(chosen.sites);
    rf_site_list_free(&sites);
    if (!good) {
        fprintf(stderr, "%s: --unchecked: %s\n", who, strerror(errno));
        return false;
    }
    char option[64];
    snprintf(option, sizeof option, "unchecked=/proc/self/fd/%d", fd);
    rf_run_text_add(text, option);
    return true;
}
