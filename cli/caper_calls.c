/* Lines of pairs that have no hook. See cli/caper_state.h.
 *
 * 1. The access of such a line is made by a function that it calls, or the compiler has left it out, joined it with that of another line
 *    or proved it needless: then no code of the program makes it under the name of this line.
 * 2. So a call that the runtime hears (sites/heard.def) is a site like any other; a line with another call that leaves the program counts
 *    as escaped, and so does one in a file none of whose code has hooks. One without any call does only if the facts say, or there are
 *    none, that a function is called there: a compiler may put memset's work in the place of the call, without a hook.
 * 3. Lines with hooks are judged by these, by the calls that are heard, and count as escaped for any other call that leaves the program;
 *    if there are facts, only where they say that a function is called which accesses memory (cli/caper.c).
 */
#include <stdlib.h>
#include <string.h>

#include "cli/caper_state.h"
#include "sites/calls.h"
#include "trace/grow.h"

struct adding {
    struct rf_caper *caper;
    FILE *file;
    struct rf_caper_site *names; /* the names of pairs, as places, by their end; `escaped`: it has a hook */
    size_t known;                /* sites of the state, by name, which were there before */
};

/* Was it written before? */
static bool is_known(const struct adding *adding, const char *name, const char *place)
{
    struct rf_caper_site key = { .name = (char *)(uintptr_t)name };
    if (strcmp(name, "-") != 0)
        return bsearch(&key, adding->caper->sites, adding->known, sizeof key, rf_caper_by_site) != NULL;
    for (size_t i = 0; i < adding->known; i++)
        if (adding->caper->sites[i].call && strcmp(adding->caper->sites[i].place, place) == 0)
            return true;
    return false;
}

static void add(struct adding *adding, char letter, const char *name, const char *place)
{
    struct rf_caper *caper = adding->caper;
    if (is_known(adding, name, place))
        return;
    fprintf(adding->file, "%c %s %s\n", letter, name, place);
    caper->sites = rf_reserve(caper->sites, &caper->site_capacity, caper->site_count + 1, sizeof *caper->sites);
    caper->sites[caper->site_count++] =
        (struct rf_caper_site){ rf_caper_copy(name), rf_caper_copy(place), false, letter == 'c' };
}

static void found(void *context, const struct rf_site *site, enum rf_callee callee)
{
    struct adding *adding = context;
    char name[512], place[4352];
    rf_site_place(site, place, sizeof place);
    rf_site_name(site, name, sizeof name);
    struct rf_caper_site key = { .name = name, .place = place };
    size_t low = 0, high = adding->caper->pairs.name_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rf_caper_by_end(&adding->names[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < adding->caper->pairs.name_count && rf_caper_by_end(&adding->names[low], &key) == 0; low++)
        if (rf_caper_means(adding->names[low].place, &key)) {
            add(adding, callee == RF_CALLEE_HEARD ? '-' : 'c', name, place);
            return;
        }
}

/* Is there a hook in the file of a name FILE:LINE? */
static bool file_has_hooks(const struct rf_site_list *list, const char *name)
{
    struct rf_site_pattern pattern;
    if (!rf_site_pattern_read(name, &pattern) || pattern.kind != RF_SITE_BY_LINE)
        return false;
    for (size_t i = 0; i < list->count; i++) {
        const char *last = NULL;
        for (size_t j = 0; j < list->modules[i]->count; j++) {
            const char *file = list->modules[i]->sites[j].file;
            if (file && file != last && rf_site_path_fits(file, pattern.text, pattern.length))
                return true;
            last = file;
        }
    }
    return false;
}

void rf_caper_add_calls(struct rf_caper *caper, const struct rf_site_list *list, const bool *hooked, size_t known,
                        FILE *file)
{
    size_t count = caper->pairs.name_count;
    struct adding adding = { caper, file, rf_zeroed(count, sizeof *adding.names), known };
    bool all = true;
    for (size_t i = 0; i < count; i++)
        adding.names[i] = (struct rf_caper_site){ NULL, caper->pairs.names[i], hooked[i], false };
    for (size_t i = 0; i < count; i++)
        if (!hooked[i] && !file_has_hooks(list, caper->pairs.names[i]))
            add(&adding, 'c', "-", caper->pairs.names[i]);
    if (count)
        qsort(adding.names, count, sizeof *adding.names, rf_caper_by_end);
    for (size_t i = 0; i < list->count && all; i++)
        if (list->modules[i]->instrumented)
            all = rf_site_calls(list->modules[i], found, &adding);
    if (all && !caper->calls_known)
        fputs("k\n", file);
    caper->calls_known |= all;
    free(adding.names);
}
