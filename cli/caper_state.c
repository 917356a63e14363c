/* See cli/caper_state.h. */
#include "cli/caper_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/cli.h"
#include "trace/grow.h"

int rf_caper_failed(const char *path)
{
    fprintf(stderr, RF_CAPER_WHO ": %s: %s\n", path, strerror(errno));
    return RF_EXIT_USAGE;
}

char *rf_caper_copy(const char *text)
{
    return rf_check_memory(strdup(text), strlen(text));
}

/* ---- pairs ---- */

int rf_caper_read_pairs(struct rf_caper *caper)
{
    char *line = NULL, error[160];
    size_t capacity = 0;
    unsigned number = 0;
    bool good = true;
    FILE *file = fopen(caper->pairs_path, "re");
    if (!file)
        return rf_caper_failed(caper->pairs_path);
    while (good && getline(&line, &capacity, file) > 0) {
        number++;
        good = rf_pair_list_line(&caper->pairs, line, error);
    }
    if (!good)
        fprintf(stderr, RF_CAPER_WHO ": %s:%u: %s\n", caper->pairs_path, number, error);
    free(line);
    fclose(file);
    return good ? 0 : RF_EXIT_USAGE;
}

int rf_caper_pairs_of_store(struct rf_caper *caper)
{
    char error[512];
    enum rf_store_answer answer;
    json_t *rows, *row;
    size_t i;
    char *place = rf_store_place(caper->where);
    caper->store = rf_store_open(place, 5, &answer, error);
    free(place);
    if (!caper->store) {
        fprintf(stderr, RF_CAPER_WHO ": %s\n", error);
        return RF_EXIT_USAGE;
    }
    if (rf_store_ask(caper->store, "SELECT first, second FROM pairs ORDER BY id", 0, NULL, &rows) != RF_STORE_DONE) {
        fprintf(stderr, RF_CAPER_WHO ": %s\n", rf_store_error(caper->store));
        return RF_EXIT_USAGE;
    }
    json_array_foreach(rows, i, row) rf_pair_list_add(&caper->pairs, json_string_value(json_array_get(row, 0)),
                                                      json_string_value(json_array_get(row, 1)), 0);
    json_decref(rows);
    return 0;
}

/* ---- sites ---- */

static void forget_origins(struct rf_caper *caper)
{
    for (size_t i = 0; i < caper->origin_count; i++) {
        free(caper->origins[i].name);
        free(caper->origins[i].place);
    }
    caper->origin_count = 0;
}

/* Of an origin, as the file has it; NULL: it does not have it. */
const char *rf_caper_place_of_origin(const struct rf_caper *caper, const char *name)
{
    for (size_t i = 0; i < caper->origin_count; i++)
        if (caper->origins[i].letter == 'p' && strcmp(caper->origins[i].name, name) == 0)
            return caper->origins[i].place;
    return NULL;
}

/* What the file says of memory that has escaped. One whose place is not known may be of any kind; "-" is a library's. */
void rf_caper_apply_origins(struct rf_caper *caper)
{
    for (size_t i = 0; i < caper->origin_count && caper->facts; i++) {
        const struct rf_caper_origin *origin = &caper->origins[i];
        const char *place = rf_caper_place_of_origin(caper, origin->name);
        if (origin->letter == 'p' || (place && strcmp(place, "-") == 0))
            continue;
        rf_facts_escapes(caper->facts,
                         strcmp(origin->name, "stack") == 0 ? NULL
                         : place                            ? place
                                                            : "",
                         origin->letter == '!');
    }
}

int rf_caper_read_state(struct rf_caper *caper)
{
    char *line = NULL, name[512], place[4352];
    size_t capacity = 0;
    FILE *file = fopen(caper->state, "re");
    if (!file)
        return errno == ENOENT ? 0 : rf_caper_failed(caper->state);
    for (size_t i = 0; i < caper->site_count; i++) {
        free(caper->sites[i].name);
        free(caper->sites[i].place);
    }
    caper->site_count = 0;
    forget_origins(caper);
    while (getline(&line, &capacity, file) > 0) {
        place[0] = 0;
        caper->steady |= strcmp(line, "z\n") == 0;
        caper->calls_known |= strcmp(line, "k\n") == 0;
        if (!strchr("-+ca!p", line[0]) || line[1] != ' ' || sscanf(line + 1, " %511s %4351[^\n]", name, place) < 1)
            continue;
        if (strchr("a!p", line[0])) {
            caper->origins =
                rf_reserve(caper->origins, &caper->origin_capacity, caper->origin_count + 1, sizeof *caper->origins);
            caper->origins[caper->origin_count++] =
                (struct rf_caper_origin){ line[0], rf_caper_copy(name), rf_caper_copy(place) };
            continue;
        }
        caper->sites = rf_reserve(caper->sites, &caper->site_capacity, caper->site_count + 1, sizeof *caper->sites);
        caper->sites[caper->site_count++] =
            (struct rf_caper_site){ rf_caper_copy(name), rf_caper_copy(place), line[0] == '+', line[0] == 'c' };
    }
    free(line);
    fclose(file);
    return 0;
}

int rf_caper_by_site(const void *a, const void *b)
{
    return strcmp(((const struct rf_caper_site *)a)->name, ((const struct rf_caper_site *)b)->name);
}

/* Does a name of a pair mean this site? As sites/list.h has it: by the site's own name, or by the end of its file's path. */
bool rf_caper_means(const char *name, const struct rf_caper_site *site)
{
    size_t length = strlen(name), end = strlen(site->place);
    if (strcmp(name, site->name) == 0)
        return true;
    for (size_t cut = end; cut >= length && cut > 0; cut--)
        if ((cut == end || site->place[cut] == ':') && memcmp(site->place + cut - length, name, length) == 0 &&
            (cut == length || site->place[cut - length - 1] == '/'))
            return true;
    return false;
}

/* Where a place's or a name's file is named, without its directory, and its line: what is the same of both. */
int rf_caper_by_end(const void *a, const void *b)
{
    const char *one = ((const struct rf_caper_site *)a)->place, *other = ((const struct rf_caper_site *)b)->place;
    const char *x = strrchr(one, '/') ? strrchr(one, '/') + 1 : one,
               *y = strrchr(other, '/') ? strrchr(other, '/') + 1 : other;
    size_t here = strcspn(x, ":"), there = strcspn(y, ":");
    int order = strncmp(x, y, here < there ? here : there);
    if (order || here != there)
        return order ? order : here < there ? -1 : 1;
    unsigned long line = x[here] ? strtoul(x + here + 1, NULL, 10) : 0,
                  mark = y[there] ? strtoul(y + there + 1, NULL, 10) : 0;
    return line < mark ? -1 : line > mark;
}

static int by_place(const void *a, const void *b)
{
    const struct rf_site *one = *(const struct rf_site *const *)a, *other = *(const struct rf_site *const *)b;
    return one < other ? -1 : one > other;
}

/* The sites of the program that pairs name, each once; and which names have some. */
static const struct rf_site **named_sites(const struct rf_caper *caper, const struct rf_site_list *list, bool *hooked,
                                          size_t *count)
{
    size_t capacity = 0, all = 0;
    const struct rf_site **found = NULL;
    for (size_t i = 0; i < caper->pairs.name_count; i++) {
        const char *name = caper->pairs.names[i];
        size_t more = rf_site_list_find(list, name, NULL, 0);
        found = rf_reserve(found, &capacity, all + more + 1, sizeof *found);
        rf_site_list_find(list, name, found + all, more);
        all += more;
        hooked[i] = more > 0;
    }
    if (all)
        qsort(found, all, sizeof *found, by_place);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (!*count || found[i] != found[*count - 1])
            found[(*count)++] = found[i];
    return found;
}

/* All sites of the program that a pair names, and that the file does not have yet. What cannot be written whole is not there at all. */
int rf_caper_add_sites(struct rf_caper *caper, const struct rf_site_list *list)
{
    char name[512], place[4352], last = '\n';
    size_t count;
    int fd = open(caper->state, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        return rf_caper_failed(caper->state);
    int status = rf_caper_read_state(caper);
    off_t before = lseek(fd, 0, SEEK_END);
    if (before > 0 && pread(fd, &last, 1, before - 1) != 1)
        status = rf_caper_failed(caper->state);
    qsort(caper->sites, caper->site_count, sizeof *caper->sites, rf_caper_by_site);
    FILE *file = fdopen(fd, "a");
    rf_check_memory(file, 1);
    if (last != '\n')
        fputc('\n', file);
    bool *hooked = rf_zeroed(caper->pairs.name_count, sizeof *hooked);
    const struct rf_site **found = named_sites(caper, list, hooked, &count);
    size_t known = caper->site_count;
    for (size_t i = 0; i < count && !status; i++) {
        struct rf_caper_site key = { .name = name };
        rf_site_name(found[i], name, sizeof name);
        rf_site_place(found[i], place, sizeof place);
        if (bsearch(&key, caper->sites, known, sizeof key, rf_caper_by_site))
            continue;
        /* A jump to a hook does not say where it comes from: such a site is taken as escaped. */
        fprintf(file, "%c %s %s\n", found[i]->jump ? '+' : '-', name, place);
        caper->sites = rf_reserve(caper->sites, &caper->site_capacity, caper->site_count + 1, sizeof *caper->sites);
        caper->sites[caper->site_count++] =
            (struct rf_caper_site){ rf_caper_copy(name), rf_caper_copy(place), found[i]->jump, false };
    }
    if (!status)
        rf_caper_add_calls(caper, list, hooked, known, file);
    free(found);
    free(hooked);
    if (!status && (fflush(file) != 0 || (fsync(fd) != 0 && errno != EINVAL))) {
        status = rf_caper_failed(caper->state);
        if (before >= 0 && ftruncate(fd, before) != 0)
            fprintf(stderr, RF_CAPER_WHO ": %s: what was written of it cannot be taken back: %s\n", caper->state,
                    strerror(errno));
    }
    fclose(file);
    return status;
}
