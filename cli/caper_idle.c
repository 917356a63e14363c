/* The list of what a run need not look at (core/caper.h). See cli/caper_state.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/caper_state.h"
#include "cli/cli.h"
#include "core/caper.h"
#include "trace/grow.h"

static int by_site_name(const void *a, const void *b)
{
    return strcmp(a, ((const struct rf_caper_site *)b)->name);
}

static void print_idle(FILE *out, const struct rf_caper *caper, const struct rf_site *site)
{
    char name[512], place[4352];
    if (!site->file || !rf_hook_removable(&site->hook) || site->hook.kind == RF_HOOK_FUNCTION)
        return;
    rf_site_name(site, name, sizeof name);
    rf_site_place(site, place, sizeof place);
    if (site->hook.write && rf_facts_publish(caper->facts, place) == RF_FACT_CANNOT)
        fprintf(out, "o %s\n", name);
    if (caper->steady && rf_facts_access(caper->facts, place, site->hook.write ? 'w' : 'r', false) == RF_FACT_CANNOT &&
        bsearch(name, caper->sites, caper->site_count, sizeof *caper->sites, by_site_name))
        fprintf(out, "~ %s\n", name);
}

/* Beside the state, whole or not at all: a run may read what another has written meanwhile. NULL: there is no list. */
char *rf_caper_write_idle(struct rf_caper *caper, const struct rf_site_list *list)
{
    char *path, *part;
    if (!caper->facts)
        return NULL;
    if (asprintf(&path, "%s.idle", caper->state) < 0 || asprintf(&part, "%s.%d", path, (int)getpid()) < 0)
        rf_check_memory(NULL, 64);
    FILE *out = fopen(part, "we");
    qsort(caper->sites, caper->site_count, sizeof *caper->sites, rf_caper_by_site);
    for (size_t i = 0; i < list->count && out; i++)
        for (size_t j = 0; j < list->modules[i]->count; j++)
            print_idle(out, caper, &list->modules[i]->sites[j]);
    for (size_t i = 0; i < caper->origin_count && out; i++)
        if (caper->origins[i].letter != 'p')
            fprintf(out, "a %s\n", caper->origins[i].name);
    bool good = out && !ferror(out);
    if ((out && fclose(out) != 0) || !good || rename(part, path) != 0) {
        fprintf(stderr, RF_CAPER_WHO ": %s: %s; everything is looked at\n", path, strerror(errno));
        unlink(part);
        free(path);
        path = NULL;
    }
    free(part);
    return path;
}
