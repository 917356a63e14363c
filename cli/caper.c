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
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/caper_state.h"
#include "cli/cli.h"
#include "cli/program.h"
#include "cli/program_sites.h"
#include "core/caper.h"
#include "fleet/spool.h"
#include "fleet/store.h"
#include "trace/grow.h"

static const char usage[] =
    "usage: redflag caper --pairs FILE [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
    "       redflag caper --pairs FILE --show\n\n"
    "Runs a program and finds out which sites of its static pairs access memory that several threads can reach; a pair both of\n"
    "whose sites do may race. Over many runs no race of these runs is missed, and the list is much shorter than the static one.\n\n"
    "      --pairs FILE     the static pairs: what `redflag static` prints\n"
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

/* ---- what may race ---- */

/* Each name is looked up once. What it says of a line without a hook, cli/caper_calls.c; as long as its calls are not known, it counts as
 * escaped, once the sites are known at all. In either case the facts may say that it cannot have: that none of its memory ever has, or
 * that no call there accesses any, since what is called is the program's own and has hooks. */
static uint64_t find_dynamic(struct rf_caper *caper)
{
    rf_caper_apply_origins(caper);
    free(caper->escaped);
    caper->escaped = rf_zeroed(caper->pairs.name_count, sizeof *caper->escaped);
    if (caper->site_count)
        qsort(caper->sites, caper->site_count, sizeof *caper->sites, rf_caper_by_end);
    for (size_t i = 0; i < caper->pairs.name_count && caper->site_count; i++) {
        char *name = caper->pairs.names[i];
        const struct rf_facts *facts = caper->facts;
        bool accesses = !facts || rf_facts_calls(facts, name), there = caper->calls_known && !accesses, calls = false,
             escaped = false, line = strchr(name, ':') != NULL;
        struct rf_caper_site key = { .place = name };
        size_t low = 0, high = caper->site_count;
        while (line && low < high) {
            size_t middle = (low + high) / 2;
            if (rf_caper_by_end(&caper->sites[middle], &key) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        for (size_t j = low; j < caper->site_count && !escaped; j++) {
            if (line && rf_caper_by_end(&caper->sites[j], &key) != 0)
                break;
            if (rf_caper_means(name, &caper->sites[j])) {
                there = true;
                calls |= caper->sites[j].call && (accesses || strcmp(caper->sites[j].name, "-") == 0);
                escaped = caper->sites[j].escaped;
            }
        }
        escaped |= (!there || calls) && (!facts || rf_facts_access(facts, name, 'b', false) != RF_FACT_CANNOT);
        escaped |= facts && rf_facts_access(facts, name, 'b', true) == RF_FACT_MAY;
        caper->escaped[i] = escaped;
    }
    return rf_pair_list_pairs(&caper->pairs, caper->escaped, NULL, NULL);
}

struct telling {
    struct rf_caper *caper;
    json_t *results;
    int status;
};

/* In portions, each of them one result. */
static void tell(struct telling *telling)
{
    const struct rf_caper *caper = telling->caper;
    if (json_array_size(telling->results) && rf_store_apply(caper->store, telling->results) != RF_STORE_DONE) {
        char error[512], *spool = rf_spool_place();
        size_t at;
        json_t *one;
        json_array_foreach(telling->results, at, one)
        {
            char *line = json_dumps(one, JSON_COMPACT);
            if (!line || !rf_spool_add(spool, line, error)) {
                fprintf(stderr, RF_CAPER_WHO ": the store is out of reach, and %s; %s has the sites\n", error, caper->state);
                telling->status = RF_EXIT_USAGE;
            }
            free(line);
        }
        free(spool);
    }
    json_array_clear(telling->results);
}

static bool tell_pair(void *context, const char *first, const char *second, long long priority)
{
    struct telling *telling = context;
    (void)priority;
    json_array_append_new(telling->results, json_pack("{s:s, s:s, s:s, s:s, s:s}", "redflag", "pair", "first", first,
                                                      "second", second, "origin", "caper", "stage", "dynamic"));
    if (json_array_size(telling->results) == 1000)
        tell(telling);
    return !telling->status;
}

static int tell_store(struct rf_caper *caper)
{
    struct telling telling = { caper, json_array(), 0 };
    rf_pair_list_pairs(&caper->pairs, caper->escaped, tell_pair, &telling);
    if (!telling.status)
        tell(&telling);
    json_decref(telling.results);
    return telling.status;
}

static bool show_pair(void *context, const char *first, const char *second, long long priority)
{
    (void)context, (void)priority;
    return printf("%s %s\n", first, second) > 0;
}

/* ---- the program ---- */

static volatile sig_atomic_t child_number;

static void pass_on(int number)
{
    if (child_number > 0)
        kill(child_number, number);
}

/* `looks`: otherwise all hooks are taken out of its code. `idle`: the list of what need not be looked at, NULL if there is none. */
static int run(const struct rf_caper *caper, bool looks, const char *idle)
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
        fprintf(stderr, RF_CAPER_WHO ": cannot start a process: %s\n", strerror(errno));
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
    char *directory = rf_caper_copy(path), *slash = strrchr(directory, '/');
    struct stat facts;
    if (slash)
        *slash = 0;
    bool there = !slash || slash == directory || stat(directory, &facts) == 0;
    free(directory);
    return there;
}

static size_t news(const struct rf_caper *caper)
{
    size_t found = 0;
    for (size_t i = 0; i < caper->site_count; i++)
        found += caper->sites[i].escaped;
    for (size_t i = 0; i < caper->origin_count; i++)
        found += caper->origins[i].letter != 'p';
    return found;
}

/* Adds the places of origins that the file does not have yet; and, `same`, that a run has found nothing new. */
static void add_places(struct rf_caper *caper, const struct rf_site_list *list, bool same)
{
    FILE *file = caper->facts ? fopen(caper->state, "ae") : NULL;
    if (!file)
        return;
    for (size_t i = 0; i < caper->origin_count; i++) {
        char place[4352];
        const char *name = caper->origins[i].name;
        if (strcmp(name, "stack") == 0 || rf_caper_place_of_origin(caper, name))
            continue;
        if (rf_site_list_line(list, name, place, sizeof place))
            fprintf(file, "p %s %s\n", name, place);
    }
    if (same && !caper->steady)
        fputs("z\n", file);
    if (fclose(file) != 0)
        rf_caper_failed(caper->state);
}

static int look(struct rf_caper *caper)
{
    struct rf_site_list list = { .modules = NULL };
    char path[PATH_MAX];
    if (!rf_program_find(caper->program[0], path, sizeof path)) {
        rf_caper_failed(caper->program[0]);
        return 127;
    }
    if (!rf_program_sites(&list, path, true, RF_CAPER_WHO))
        return RF_EXIT_USAGE;
    bool misspelled = access(caper->state, F_OK) != 0 && !directory_exists(caper->state);
    int status = rf_caper_add_sites(caper, &list);
    if (status)
        return misspelled ? status : run(caper, false, NULL);
    char *absolute = realpath(caper->state, NULL); /* wherever the program goes */
    if (absolute) {
        free(caper->state);
        caper->state = absolute;
    }
    uint64_t before = find_dynamic(caper);
    size_t known = news(caper);
    char *idle = rf_caper_write_idle(caper, &list);
    int code = run(caper, true, idle);
    if (rf_caper_read_state(caper) != 0)
        return code;
    add_places(caper, &list, news(caper) == known && code < 128);
    rf_site_list_free(&list);
    free(idle);
    if (rf_caper_read_state(caper) != 0)
        return code;
    uint64_t after = find_dynamic(caper);
    if (caper->store)
        tell_store(caper);
    if (!caper->quiet)
        fprintf(stderr,
                RF_CAPER_WHO ": %" PRIu64 " of %" PRIu64 " pairs may race in what was run, %" PRIu64 " of them new\n", after,
                rf_pair_list_pairs(&caper->pairs, NULL, NULL, NULL), after - before);
    return code;
}

/* The facts that were asked for, or that lie beside the pairs. */
static int read_facts(struct rf_caper *caper)
{
    char *beside = NULL;
    if (!caper->facts_path && caper->pairs_path && asprintf(&beside, "%s.facts", caper->pairs_path) < 0)
        rf_check_memory(NULL, 64);
    const char *path = caper->facts_path ? caper->facts_path : beside;
    errno = 0;
    if (path)
        caper->facts = rf_facts_read(path, RF_CAPER_WHO);
    int error = errno, status = 0;
    if (path && !caper->facts && !(beside && error == ENOENT)) {
        if (error)
            fprintf(stderr, RF_CAPER_WHO ": %s: %s\n", path, strerror(error));
        status = RF_EXIT_USAGE;
    }
    free(beside);
    return status;
}

int rf_cli_caper(int argc, char **argv)
{
    struct rf_caper caper = { .pairs_path = NULL };
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
            caper.state = realpath(optarg, NULL) ? realpath(optarg, NULL) : rf_caper_copy(optarg);
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
        fputs(RF_CAPER_WHO ": either --pairs FILE, or --store WHERE and --state FILE; try '" RF_CAPER_WHO " --help'\n",
              stderr);
        return RF_EXIT_USAGE;
    }
    if (optind == argc && !caper.show) {
        fputs(RF_CAPER_WHO ": no program; try '" RF_CAPER_WHO " --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (!caper.state) {
        char *absolute = realpath(caper.pairs_path, NULL);
        if (asprintf(&caper.state, "%s.sites", absolute ? absolute : caper.pairs_path) < 0)
            rf_check_memory(NULL, 64);
        free(absolute);
    }
    int status = store ? rf_caper_pairs_of_store(&caper) : rf_caper_read_pairs(&caper);
    if (!status)
        status = read_facts(&caper);
    if (status)
        return status;
    if (!caper.show) {
        status = look(&caper);
    } else {
        status = rf_caper_read_state(&caper);
        find_dynamic(&caper);
        if (!status)
            rf_pair_list_pairs(&caper.pairs, caper.escaped, show_pair, NULL);
    }
    free(caper.escaped);
    rf_pair_list_free(&caper.pairs);
    return status;
}
