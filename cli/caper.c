/* redflag caper: which of the static pairs may race in what was run (Biswas et al., CC 2017, section 5).
 *
 * 1. spPairs are the lines of a file that `redflag static` made, or the pairs of the store. deSites are in a file of lines, one for each
 *    site of the program that is in a pair: "- SITE PLACE", or "+ SITE PLACE" once it was seen to access memory that several threads
 *    can reach. dpPairs are the pairs both of whose sites have a '+'.
 * 2. The runtime sets a '+' by writing one byte before the access happens, so that nothing is lost when the program is killed, and any
 *    number of processes can share it. Lines are only ever added, under a lock of the file.
 * 3. The program comes first: if its file cannot be written (a full disk, a directory that is read-only), that is said, and it runs
 *    without being looked at.
 * 4. The exit status is the program's.
 * 5. With the facts of the static analysis (cli/caper_facts.h) a list is made before each run of what need not be looked at (core/caper.h):
 *    stores that publish nothing; and, once a run has found nothing new, sites none of whose memory has ever escaped. Should some of it
 *    escape in such a run, the runtime says so, and all sites that may access that kind of memory count as escaped.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/caper_facts.h"
#include "cli/cli.h"
#include "cli/program.h"
#include "cli/program_sites.h"
#include "core/caper.h"
#include "fleet/spool.h"
#include "fleet/store.h"
#include "trace/grow.h"

#define WHO "redflag caper"

static const char usage[] =
    "usage: redflag caper --pairs FILE [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
    "       redflag caper --pairs FILE --show\n\n"
    "Runs a program and finds out which sites of its static pairs access memory that several threads can reach; a pair both of\n"
    "whose sites do may race. Over many runs no race of these runs is missed, and the list is much shorter than the static one.\n\n"
    "      --pairs FILE     the static pairs: lines 'SITE1 SITE2', as `redflag static` prints\n"
    "      --store WHERE    take the pairs from this store, and tell it of those that may race\n"
    "      --facts FILE     what `redflag static --facts` knows of each line (the pairs' file with .facts behind its name, if it\n"
    "                       is there): much less has to be looked at\n"
    "      --state FILE     where the escaped sites are kept (the pairs' file with .sites behind its name)\n"
    "      --show           only print the pairs that may race so far\n"
    "  -q, --quiet          do not say at the end what was found\n"
    "  -h, --help           this text\n\n"
    "Exit status: that of the program; 2 if it cannot be looked at.";

enum { PAIRS = 256, FACTS, STORE, STATE, SHOW };

static const struct option long_options[] = {
    { "pairs", required_argument, NULL, PAIRS }, { "facts", required_argument, NULL, FACTS },
    { "store", required_argument, NULL, STORE }, { "state", required_argument, NULL, STATE },
    { "show", no_argument, NULL, SHOW },         { "quiet", no_argument, NULL, 'q' },
    { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 },
};

struct pair {
    char *first, *second;
    bool dynamic;
};

struct site {
    char *name, *place;
    bool escaped;
};

/* A line "a SITE" or "! SITE", or "p SITE PLACE" of the state file. */
struct origin {
    char letter, *name, *place;
};

struct caper {
    const char *pairs_path, *where, *facts_path;
    char *state;
    bool show, quiet;
    char **program;
    struct pair *pairs;
    size_t pair_count, pair_capacity;
    struct site *sites; /* of the state file */
    size_t site_count, site_capacity;
    struct origin *origins; /* of the state file */
    size_t origin_count, origin_capacity;
    bool steady; /* a run has found nothing new */
    struct rf_facts *facts;
    struct rf_store *store;
};

static int failed(const char *path)
{
    fprintf(stderr, WHO ": %s: %s\n", path, strerror(errno));
    return RF_EXIT_USAGE;
}

static char *copy(const char *text)
{
    return rf_check_memory(strdup(text), strlen(text));
}

/* ---- pairs ---- */

static void add_pair(struct caper *caper, const char *first, const char *second)
{
    caper->pairs = rf_reserve(caper->pairs, &caper->pair_capacity, caper->pair_count + 1, sizeof *caper->pairs);
    caper->pairs[caper->pair_count++] = (struct pair){ copy(first), copy(second), false };
}

static int read_pairs(struct caper *caper)
{
    char *line = NULL, first[4352], second[4352];
    size_t capacity = 0;
    unsigned number = 0;
    FILE *file = fopen(caper->pairs_path, "re");
    if (!file)
        return failed(caper->pairs_path);
    while (getline(&line, &capacity, file) > 0) {
        number++;
        line[strcspn(line, "#\n")] = 0;
        if (!line[strspn(line, " \t\r")])
            continue;
        if (sscanf(line, "%4351s %4351s", first, second) != 2) {
            fprintf(stderr, WHO ": %s:%u: not 'SITE1 SITE2'\n", caper->pairs_path, number);
            fclose(file);
            return RF_EXIT_USAGE;
        }
        add_pair(caper, first, second);
    }
    free(line);
    fclose(file);
    return 0;
}

static int pairs_of_store(struct caper *caper)
{
    char error[512];
    enum rf_store_answer answer;
    json_t *rows, *row;
    size_t i;
    char *place = rf_store_place(caper->where);
    caper->store = rf_store_open(place, 5, &answer, error);
    free(place);
    if (!caper->store) {
        fprintf(stderr, WHO ": %s\n", error);
        return RF_EXIT_USAGE;
    }
    if (rf_store_ask(caper->store, "SELECT first, second FROM pairs ORDER BY id", 0, NULL, &rows) != RF_STORE_DONE) {
        fprintf(stderr, WHO ": %s\n", rf_store_error(caper->store));
        return RF_EXIT_USAGE;
    }
    json_array_foreach(rows, i, row)
        add_pair(caper, json_string_value(json_array_get(row, 0)), json_string_value(json_array_get(row, 1)));
    json_decref(rows);
    return 0;
}

/* ---- sites ---- */

static void forget_origins(struct caper *caper)
{
    for (size_t i = 0; i < caper->origin_count; i++) {
        free(caper->origins[i].name);
        free(caper->origins[i].place);
    }
    caper->origin_count = 0;
}

/* Of an origin, as the file has it; NULL: it does not have it. */
static const char *place_of_origin(const struct caper *caper, const char *name)
{
    for (size_t i = 0; i < caper->origin_count; i++)
        if (caper->origins[i].letter == 'p' && strcmp(caper->origins[i].name, name) == 0)
            return caper->origins[i].place;
    return NULL;
}

/* What the file says of memory that has escaped. One whose place is not known may be of any kind; "-" is a library's. */
static void apply_origins(struct caper *caper)
{
    for (size_t i = 0; i < caper->origin_count && caper->facts; i++) {
        const struct origin *origin = &caper->origins[i];
        const char *place = place_of_origin(caper, origin->name);
        if (origin->letter == 'p' || (place && strcmp(place, "-") == 0))
            continue;
        rf_facts_escapes(caper->facts,
                         strcmp(origin->name, "stack") == 0 ? NULL
                         : place                            ? place
                                                            : "",
                         origin->letter == '!');
    }
}

static int read_state(struct caper *caper)
{
    char *line = NULL, name[512], place[4352];
    size_t capacity = 0;
    FILE *file = fopen(caper->state, "re");
    if (!file)
        return errno == ENOENT ? 0 : failed(caper->state);
    for (size_t i = 0; i < caper->site_count; i++) {
        free(caper->sites[i].name);
        free(caper->sites[i].place);
    }
    caper->site_count = 0;
    forget_origins(caper);
    while (getline(&line, &capacity, file) > 0) {
        place[0] = 0;
        caper->steady |= strcmp(line, "z\n") == 0;
        if (!strchr("-+a!p", line[0]) || line[1] != ' ' || sscanf(line + 1, " %511s %4351[^\n]", name, place) < 1)
            continue;
        if (strchr("a!p", line[0])) {
            caper->origins =
                rf_reserve(caper->origins, &caper->origin_capacity, caper->origin_count + 1, sizeof *caper->origins);
            caper->origins[caper->origin_count++] = (struct origin){ line[0], copy(name), copy(place) };
            continue;
        }
        caper->sites = rf_reserve(caper->sites, &caper->site_capacity, caper->site_count + 1, sizeof *caper->sites);
        caper->sites[caper->site_count++] = (struct site){ copy(name), copy(place), line[0] == '+' };
    }
    free(line);
    fclose(file);
    return 0;
}

static int by_site(const void *a, const void *b)
{
    return strcmp(((const struct site *)a)->name, ((const struct site *)b)->name);
}

struct name_state {
    const char *name;
    bool escaped;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct name_state *)a)->name, ((const struct name_state *)b)->name);
}

/* The names that pairs use, each once: most are in many of them. */
static struct name_state *names_of(const struct caper *caper, size_t *count)
{
    size_t all = 0;
    struct name_state *names = rf_zeroed(2 * caper->pair_count + 1, sizeof *names);
    for (size_t i = 0; i < caper->pair_count; i++) {
        names[all++].name = caper->pairs[i].first;
        names[all++].name = caper->pairs[i].second;
    }
    qsort(names, all, sizeof *names, by_name);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (!*count || strcmp(names[i].name, names[*count - 1].name) != 0)
            names[(*count)++] = names[i];
    return names;
}

static int by_place(const void *a, const void *b)
{
    const struct rf_site *one = *(const struct rf_site *const *)a, *other = *(const struct rf_site *const *)b;
    return one < other ? -1 : one > other;
}

/* The sites of the program that pairs name, each once. */
static const struct rf_site **named_sites(const struct caper *caper, const struct rf_site_list *list, size_t *count)
{
    size_t capacity = 0, name_count, all = 0;
    struct name_state *names = names_of(caper, &name_count);
    const struct rf_site **found = NULL;
    for (size_t i = 0; i < name_count; i++) {
        size_t more = rf_site_list_find(list, names[i].name, NULL, 0);
        found = rf_reserve(found, &capacity, all + more + 1, sizeof *found);
        rf_site_list_find(list, names[i].name, found + all, more);
        all += more;
    }
    free(names);
    if (all)
        qsort(found, all, sizeof *found, by_place);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (!*count || found[i] != found[*count - 1])
            found[(*count)++] = found[i];
    return found;
}

/* All sites of the program that a pair names, and that the file does not have yet. What cannot be written whole is not there at all. */
static int add_sites(struct caper *caper, const struct rf_site_list *list)
{
    char name[512], place[4352], last = '\n';
    size_t count;
    int fd = open(caper->state, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        return failed(caper->state);
    int status = read_state(caper);
    off_t before = lseek(fd, 0, SEEK_END);
    if (before > 0 && pread(fd, &last, 1, before - 1) != 1)
        status = failed(caper->state);
    qsort(caper->sites, caper->site_count, sizeof *caper->sites, by_site);
    FILE *file = fdopen(fd, "a");
    rf_check_memory(file, 1);
    if (last != '\n')
        fputc('\n', file);
    const struct rf_site **found = named_sites(caper, list, &count);
    size_t known = caper->site_count;
    for (size_t i = 0; i < count && !status; i++) {
        struct site key = { .name = name };
        rf_site_name(found[i], name, sizeof name);
        rf_site_place(found[i], place, sizeof place);
        if (bsearch(&key, caper->sites, known, sizeof key, by_site))
            continue;
        /* A jump to a hook does not say where it comes from: such a site is taken as escaped. */
        fprintf(file, "%c %s %s\n", found[i]->jump ? '+' : '-', name, place);
        caper->sites = rf_reserve(caper->sites, &caper->site_capacity, caper->site_count + 1, sizeof *caper->sites);
        caper->sites[caper->site_count++] = (struct site){ copy(name), copy(place), found[i]->jump };
    }
    free(found);
    if (!status && (fflush(file) != 0 || (fsync(fd) != 0 && errno != EINVAL))) {
        status = failed(caper->state);
        if (before >= 0 && ftruncate(fd, before) != 0)
            fprintf(stderr, WHO ": %s: what was written of it cannot be taken back: %s\n", caper->state, strerror(errno));
    }
    fclose(file);
    return status;
}

/* ---- what may race ---- */

/* Does a name of a pair mean this site? As sites/list.h has it: by the site's own name, or by the end of its file's path. */
static bool means(const char *name, const struct site *site)
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

/* Each name is looked up once. One that no site of the program has stands for accesses by functions of libc, which have no hook: it
 * counts as escaped (doc/caper.md), once the sites are known at all, unless the facts say that it cannot have. */
static size_t find_dynamic(struct caper *caper)
{
    size_t kept, dynamic = 0;
    apply_origins(caper);
    struct name_state *names = names_of(caper, &kept);
    for (size_t i = 0; i < kept && caper->site_count; i++) {
        bool there = false;
        for (size_t j = 0; j < caper->site_count && !names[i].escaped; j++)
            if ((caper->sites[j].escaped || !there) && means(names[i].name, &caper->sites[j])) {
                there = true;
                names[i].escaped = caper->sites[j].escaped;
            }
        const struct rf_facts *facts = caper->facts;
        names[i].escaped |= !there && (!facts || rf_facts_access(facts, names[i].name, 'b', false) != RF_FACT_CANNOT);
        names[i].escaped |= facts && rf_facts_access(facts, names[i].name, 'b', true) == RF_FACT_MAY;
    }
    for (size_t i = 0; i < caper->pair_count; i++) {
        struct name_state first = { caper->pairs[i].first, false }, second = { caper->pairs[i].second, false };
        caper->pairs[i].dynamic = ((struct name_state *)bsearch(&first, names, kept, sizeof *names, by_name))->escaped &&
                                  ((struct name_state *)bsearch(&second, names, kept, sizeof *names, by_name))->escaped;
        dynamic += caper->pairs[i].dynamic;
    }
    free(names);
    return dynamic;
}

/* In portions, each of them one result. */
static int tell_store(struct caper *caper)
{
    json_t *results = json_array();
    int status = 0;
    for (size_t i = 0; i <= caper->pair_count && !status; i++) {
        if (i < caper->pair_count && caper->pairs[i].dynamic)
            json_array_append_new(results,
                                  json_pack("{s:s, s:s, s:s, s:s, s:s}", "redflag", "pair", "first", caper->pairs[i].first,
                                            "second", caper->pairs[i].second, "origin", "caper", "stage", "dynamic"));
        if (!json_array_size(results) || (i < caper->pair_count && json_array_size(results) < 1000))
            continue;
        if (rf_store_apply(caper->store, results) != RF_STORE_DONE) {
            char error[512], *spool = rf_spool_place();
            size_t at;
            json_t *one;
            json_array_foreach(results, at, one)
            {
                char *line = json_dumps(one, JSON_COMPACT);
                if (!line || !rf_spool_add(spool, line, error)) {
                    fprintf(stderr, WHO ": the store is out of reach, and %s; %s has the sites\n", error, caper->state);
                    status = RF_EXIT_USAGE;
                }
                free(line);
            }
            free(spool);
        }
        json_array_clear(results);
    }
    json_decref(results);
    return status;
}

/* ---- the program ---- */

static volatile sig_atomic_t child_number;

static void pass_on(int number)
{
    if (child_number > 0)
        kill(child_number, number);
}

/* `looks`: otherwise all hooks are taken out of its code. `idle`: the list of what need not be looked at, NULL if there is none. */
static int run(const struct caper *caper, bool looks, const char *idle)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        size_t count = 0;
        char **words = rf_zeroed(16, sizeof *words);
        words[count++] = looks ? "run" : "chase";
        words[count++] = looks ? "--escape" : "--no-pair";
        words[count++] = "--exitcode=0";
        words[count++] = "--";
        for (char **word = caper->program; *word; word++) {
            words = rf_resize(words, (count + 2) * sizeof *words);
            words[count++] = *word;
            words[count] = NULL;
        }
        if (looks)
            setenv(RF_CAPER_VARIABLE, caper->state, 1);
        if (looks && idle)
            setenv(RF_CAPER_IDLE_VARIABLE, idle, 1);
        _exit(looks ? rf_cli_run((int)count, words) : rf_cli_chase((int)count, words));
    }
    if (child < 0) {
        fprintf(stderr, WHO ": cannot start a process: %s\n", strerror(errno));
        return RF_EXIT_USAGE;
    }
    child_number = child;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool directory_exists(const char *path)
{
    char *directory = copy(path), *slash = strrchr(directory, '/');
    struct stat facts;
    if (slash)
        *slash = 0;
    bool there = !slash || slash == directory || stat(directory, &facts) == 0;
    free(directory);
    return there;
}

/* ---- what need not be looked at ---- */

static int by_site_name(const void *a, const void *b)
{
    return strcmp(a, ((const struct site *)b)->name);
}

static void print_idle(FILE *out, const struct caper *caper, const struct rf_site *site)
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
static char *write_idle(struct caper *caper, const struct rf_site_list *list)
{
    char *path, *part;
    if (!caper->facts)
        return NULL;
    if (asprintf(&path, "%s.idle", caper->state) < 0 || asprintf(&part, "%s.%d", path, (int)getpid()) < 0)
        rf_check_memory(NULL, 64);
    FILE *out = fopen(part, "we");
    qsort(caper->sites, caper->site_count, sizeof *caper->sites, by_site);
    for (size_t i = 0; i < list->count && out; i++)
        for (size_t j = 0; j < list->modules[i]->count; j++)
            print_idle(out, caper, &list->modules[i]->sites[j]);
    for (size_t i = 0; i < caper->origin_count && out; i++)
        if (caper->origins[i].letter != 'p')
            fprintf(out, "a %s\n", caper->origins[i].name);
    bool good = out && !ferror(out);
    if ((out && fclose(out) != 0) || !good || rename(part, path) != 0) {
        fprintf(stderr, WHO ": %s: %s; everything is looked at\n", path, strerror(errno));
        unlink(part);
        free(path);
        path = NULL;
    }
    free(part);
    return path;
}

static size_t news(const struct caper *caper)
{
    size_t found = 0;
    for (size_t i = 0; i < caper->site_count; i++)
        found += caper->sites[i].escaped;
    for (size_t i = 0; i < caper->origin_count; i++)
        found += caper->origins[i].letter != 'p';
    return found;
}

/* Adds the places of origins that the file does not have yet; and, `same`, that a run has found nothing new. */
static void add_places(struct caper *caper, const struct rf_site_list *list, bool same)
{
    FILE *file = caper->facts ? fopen(caper->state, "ae") : NULL;
    if (!file)
        return;
    for (size_t i = 0; i < caper->origin_count; i++) {
        char place[4352];
        const char *name = caper->origins[i].name;
        if (strcmp(name, "stack") == 0 || place_of_origin(caper, name))
            continue;
        if (rf_site_list_line(list, name, place, sizeof place))
            fprintf(file, "p %s %s\n", name, place);
    }
    if (same && !caper->steady)
        fputs("z\n", file);
    if (fclose(file) != 0)
        failed(caper->state);
}

static int look(struct caper *caper)
{
    struct rf_site_list list = { .modules = NULL };
    char path[PATH_MAX];
    if (!rf_program_find(caper->program[0], path, sizeof path)) {
        failed(caper->program[0]);
        return 127;
    }
    if (!rf_program_sites(&list, path, true, WHO))
        return RF_EXIT_USAGE;
    bool misspelled = access(caper->state, F_OK) != 0 && !directory_exists(caper->state);
    int status = add_sites(caper, &list);
    if (status)
        return misspelled ? status : run(caper, false, NULL);
    char *absolute = realpath(caper->state, NULL); /* wherever the program goes */
    if (absolute) {
        free(caper->state);
        caper->state = absolute;
    }
    size_t before = find_dynamic(caper), known = news(caper);
    char *idle = write_idle(caper, &list);
    int code = run(caper, true, idle);
    if (read_state(caper) != 0)
        return code;
    add_places(caper, &list, news(caper) == known && code < 128);
    rf_site_list_free(&list);
    free(idle);
    if (read_state(caper) != 0)
        return code;
    size_t after = find_dynamic(caper);
    if (caper->store)
        tell_store(caper);
    if (!caper->quiet)
        fprintf(stderr, WHO ": %zu of %zu pairs may race in what was run, %zu of them new\n", after, caper->pair_count,
                after - before);
    return code;
}

/* The facts that were asked for, or that lie beside the pairs. */
static int read_facts(struct caper *caper)
{
    char *beside = NULL;
    if (!caper->facts_path && caper->pairs_path && asprintf(&beside, "%s.facts", caper->pairs_path) < 0)
        rf_check_memory(NULL, 64);
    const char *path = caper->facts_path ? caper->facts_path : beside;
    errno = 0;
    if (path)
        caper->facts = rf_facts_read(path, WHO);
    int error = errno, status = 0;
    if (path && !caper->facts && !(beside && error == ENOENT)) {
        if (error)
            fprintf(stderr, WHO ": %s: %s\n", path, strerror(error));
        status = RF_EXIT_USAGE;
    }
    free(beside);
    return status;
}

int rf_cli_caper(int argc, char **argv)
{
    struct caper caper = { .pairs_path = NULL };
    bool store = false;
    for (int option; (option = getopt_long(argc, argv, "+qh", long_options, NULL)) != -1;) {
        switch (option) {
        case PAIRS:
            caper.pairs_path = optarg;
            break;
        case FACTS:
            caper.facts_path = optarg;
            break;
        case STORE:
            caper.where = *optarg ? optarg : NULL;
            store = true;
            break;
        case STATE:
            caper.state = realpath(optarg, NULL) ? realpath(optarg, NULL) : copy(optarg);
            break;
        case SHOW:
            caper.show = true;
            break;
        case 'q':
            caper.quiet = true;
            break;
        case 'h':
            puts(usage);
            return RF_EXIT_OK;
        default:
            return RF_EXIT_USAGE;
        }
    }
    caper.program = argv + optind;
    if (store == (caper.pairs_path != NULL) || (store && !caper.state)) {
        fputs(WHO ": either --pairs FILE, or --store WHERE and --state FILE; try '" WHO " --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (optind == argc && !caper.show) {
        fputs(WHO ": no program; try '" WHO " --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (!caper.state) {
        char *absolute = realpath(caper.pairs_path, NULL);
        if (asprintf(&caper.state, "%s.sites", absolute ? absolute : caper.pairs_path) < 0)
            rf_check_memory(NULL, 64);
        free(absolute);
    }
    int status = store ? pairs_of_store(&caper) : read_pairs(&caper);
    if (!status)
        status = read_facts(&caper);
    if (status)
        return status;
    if (!caper.show)
        return look(&caper);
    status = read_state(&caper);
    find_dynamic(&caper);
    for (size_t i = 0; !status && i < caper.pair_count; i++)
        if (caper.pairs[i].dynamic)
            printf("%s %s\n", caper.pairs[i].first, caper.pairs[i].second);
    return status;
}
