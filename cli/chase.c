/* redflag chase: a program under the library that waits for one race (guest/chase/chase.h).
 *
 * 1. It becomes the program: no process stays between.
 * 2. Names become build ids and offsets here, where debug information can be read. The library compares numbers.
 * 3. What cannot work is said before the program starts: a site that is not there, a name that means places in several files.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/places.h"
#include "cli/program.h"
#include "cli/program_sites.h"
#include "cli/run_options.h"
#include "cli/watch.h"
#include "trace/grow.h"

#define WHO "redflag chase"
#define MOST_SITES 500u /* of each name: guest/chase/chase.h has room for them */

enum { CANNOT_EXECUTE = 126, NOT_FOUND = 127 }; /* as env, timeout and the shells */

static int help(void)
{
    puts("usage: redflag chase --pair SITE,SITE [OPTION...] [--] PROGRAM [ARGUMENT...]\n\n"
         "Runs a program that was built with `redflag cc`, or with `gcc -fsanitize=thread`, and waits for one race: a thread that is\n"
         "about to access memory at the first site sometimes waits a little; if another comes to the second site meanwhile and is\n"
         "about to access the same memory, that is reported. Nothing else is watched, so it costs little, and waiting is bounded.\n"
         "SITE is FILE:LINE, FILE:LINE:COLUMN or BUILD-ID+0xOFFSET, as `redflag sites` lists them; both may be the same.\n\n"
         "      --pair S1,S2           wait at S1 for S2; another run may wait at S2 for S1\n"
         "      --store WHERE          take the next pair from this store, as `redflag store` names it ('': the usual one), and bring\n"
         "                             back what is found; the report is there, too\n"
         "      --max-overhead P%      threads wait for no more than this part of the time (default: 5%)\n"
         "      --delay T              how long one waits: 10ms, 500us, 1s (default: 10ms)\n"
         "      --least T              the time that the program is sure to run: budget for its beginning (default: 1s)\n"
         "      --seed N               of the random choices (default: another one each time)\n"
         "      --keep-going           go on waiting after the race was found, for other stacks that lead to it\n"
         "  -d, --detector NAME        collision, which waits; litehb or fullhb: watch synchronisation instead, for comparison\n"
         "      --module FILE          look for the sites in this file too: a library that is loaded later, a script's program\n"
         "      --no-pair              wait for nothing: what the instrumentation costs when it is taken out");
    rf_run_options_help((const char *const[]){ "detector", "seed", "rate", "sample_by", "period", "pairs", "help", NULL });
    puts("\nExit status: 66 (or --exitcode) if the race was reported, that of the program otherwise; 2 if it cannot be chased,\n"
         "67 if the library fails, 126 and 127 if the program cannot be executed or found.");
    return RF_EXIT_OK;
}

struct wish {
    char *pair[2]; /* NULL: not given */
    bool no_pair, keep_going;
    const char *store; /* NULL: the pair is given */
    const char *detector; /* NULL: collisions; litehb or fullhb, which are the runtime's */
    double rate;
    uint64_t delay_us, least_ms, seed;
    const char **modules;
    size_t module_count, module_cap;
};

/* -- what is asked for ----------------------------------------------------------------------------------------------------------- */

/* S1,S2. A path may have commas too: the one that leaves two names is meant. */
static bool read_pair(struct wish *wish, const char *text)
{
    for (const char *comma = strchr(text, ','); comma; comma = strchr(comma + 1, ',')) {
        char *first = strndup(text, (size_t)(comma - text));
        if (first && rf_site_is_name(first) && rf_site_is_name(comma + 1)) {
            free(wish->pair[0]);
            free(wish->pair[1]);
            wish->pair[0] = first;
            wish->pair[1] = strdup(comma + 1);
            return wish->pair[1] != NULL;
        }
        free(first);
    }
    fprintf(stderr, WHO ": --pair takes two sites with a comma between them, as in queue.c:41,queue.c:57, not '%s'\n", text);
    return false;
}

static bool read_rate(struct wish *wish, const char *text)
{
    char *end;
    errno = 0;
    double percent = strtod(text, &end);
    if (*end == '%')
        end++;
    if (end == text || *end || errno || !(percent >= 0 && percent <= 100)) {
        fprintf(stderr, WHO ": --max-overhead takes a percentage from 0%% to 100%%, not '%s'\n", text);
        return false;
    }
    wish->rate = percent / 100;
    return true;
}

/* A time in units of `unit_ns`. */
static bool read_time(const char *option, const char *text, uint64_t unit_ns, uint64_t least, uint64_t *to)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = { { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "min", 60e9 } };
    char *end;
    double number = strtod(text, &end), ns = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units && end != text; i++)
        if (!strcmp(end, units[i].name))
            ns = number * units[i].ns;
    if (!(ns >= (double)(least * unit_ns)) || ns > 3600e9) {
        fprintf(stderr, WHO ": %s takes a time as in 10ms, 500us or 1s, up to an hour, not '%s'\n", option, text);
        return false;
    }
    *to = (uint64_t)(ns / (double)unit_ns + 0.5);
    return true;
}

static bool read_seed(struct wish *wish, const char *text)
{
    char *end;
    errno = 0;
    wish->seed = strtoull(text, &end, 10);
    if (end != text && !*end && !errno && *text != '-')
        return true;
    fprintf(stderr, WHO ": --seed takes a number, not '%s'\n", text);
    return false;
}

static bool read_detector(struct wish *wish, const char *text)
{
    wish->detector = strcmp(text, "collision") ? text : NULL;
    if (!wish->detector || !strcmp(text, "litehb") || !strcmp(text, "fullhb"))
        return true;
    fprintf(stderr, WHO ": --detector takes one of collision, litehb and fullhb, not '%s'\n", text);
    return false;
}

/* How many arguments an option of ours took: 0 if it is none of ours, -1 if it is wrong, which was said. */
static int own_option(struct wish *wish, char **arguments, int count)
{
    static const char *const names[] = { "--pair", "--max-overhead", "--delay", "--least", "--seed", "--detector", "-d", "--module", "--store" };
    const char *argument = arguments[0], *value = NULL;
    int used = 1;
    size_t which = 0, length = strcspn(argument, "=");
    if (!strcmp(argument, "--no-pair") || !strcmp(argument, "--keep-going")) {
        *(argument[2] == 'n' ? &wish->no_pair : &wish->keep_going) = true;
        return 1;
    }
    while (which < sizeof names / sizeof *names && (strlen(names[which]) != length || strncmp(names[which], argument, length)))
        which++;
    if (which == sizeof names / sizeof *names)
        return 0;
    if (argument[length]) {
        value = argument + length + 1;
    } else if (count > 1) {
        value = arguments[1];
        used = 2;
    } else {
        fprintf(stderr, WHO ": a value is missing after %s\n", argument);
        return -1;
    }
    bool good = true;
    switch (which) {
    case 0: good = read_pair(wish, value); break;
    case 1: good = read_rate(wish, value); break;
    case 2: good = read_time("--delay", value, 1000, 1, &wish->delay_us); break;
    case 3: good = read_time("--least", value, 1000000, 0, &wish->least_ms); break;
    case 4: good = read_seed(wish, value); break;
    case 5:
    case 6: good = read_detector(wish, value); break;
    case 8: wish->store = value; break;
    default:
        wish->modules = rf_reserve(wish->modules, &wish->module_cap, wish->module_count + 1, sizeof *wish->modules);
        wish->modules[wish->module_count++] = value;
    }
    return good ? used : -1;
}

/* -- the sites ------------------------------------------------------------------------------------------------------------------- */

struct text {
    char *chars;
    size_t length, cap;
};

static void add(struct text *text, const char *chars)
{
    size_t length = strlen(chars);
    text->chars = rf_reserve(text->chars, &text->cap, text->length + length + 1, 1);
    memcpy(text->chars + text->length, chars, length + 1);
    text->length += length;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The sites that a name means. */
struct found {
    const struct rf_site **sites;
    size_t count;
};

static bool find(struct found *found, const struct rf_site_list *list, const char *name, const char *program)
{
    const struct rf_site *other;
    found->count = rf_site_list_find(list, name, NULL, 0);
    found->sites = rf_zeroed(found->count, sizeof *found->sites);
    rf_site_list_find(list, name, found->sites, found->count);
    if (!found->count)
        fprintf(stderr, WHO ": %s: no site is named %s; `redflag sites` lists them\n", program, name);
    else if (rf_site_list_ambiguous(found->sites, found->count, &other))
        fprintf(stderr, WHO ": %s is in %s and in %s; give more of the path\n", name, found->sites[0]->file, other->file);
    else if (found->count > MOST_SITES)
        fprintf(stderr, WHO ": %s means %zu sites, more than %u\n", name, found->count, MOST_SITES);
    else
        return true;
    return false;
}

static bool may_race(const struct rf_site *site, const struct found *others)
{
    for (size_t i = 0; i < others->count; i++) {
        const struct rf_hook *a = &site->hook, *b = &others->sites[i]->hook;
        if ((a->write || b->write) && !(a->kind == RF_HOOK_ATOMIC && b->kind == RF_HOOK_ATOMIC))
            return true;
    }
    return false;
}

/* Of a line with several sites, those that can be in a race with one of the others: no time is spent at the rest. */
static void keep_racing(struct found *found, const struct found *others)
{
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++)
        if (may_race(found->sites[i], others))
            found->sites[kept++] = found->sites[i];
    found->count = kept;
}

/* In the form that the library reads: guest/pair.h, 1. They come by module and offset. */
static void add_sites(struct text *text, const struct found *found)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct rf_site_module *module = found->sites[i]->module;
        if (!i || module != found->sites[i - 1]->module) {
            add(text, i ? " " : "");
            add(text, module->build_id[0] ? module->build_id : "/");
            add(text, module->build_id[0] ? "" : base_name(module->path));
        }
        char offset[24];
        snprintf(offset, sizeof offset, "+%" PRIx64, found->sites[i]->offset);
        add(text, offset);
    }
}

/* The program's path is where its libraries are asked for. */
static bool find_pair(const struct wish *wish, const char *path, struct text *text)
{
    struct rf_site_list list = { .modules = NULL };
    struct rf_program program;
    bool good = true;
    rf_program_read(&program, path);
    if (program.kind == RF_PROGRAM_ELF || !wish->module_count)
        good = rf_program_sites(&list, path, true, WHO);
    for (size_t i = 0; i < wish->module_count && good; i++)
        good = rf_program_sites(&list, wish->modules[i], true, WHO);
    struct found found[2] = { { .sites = NULL }, { .sites = NULL } };
    for (unsigned i = 0; i < 2 && good; i++)
        good = find(&found[i], &list, wish->pair[i], path);
    if (good) {
        keep_racing(&found[0], &found[1]);
        keep_racing(&found[1], &found[0]);
        good = found[0].count > 0;
        if (!good)
            fprintf(stderr, WHO ": %s and %s only read, or are atomic: there can be no race\n", wish->pair[0], wish->pair[1]);
    }
    for (unsigned i = 0; i < 2 && good; i++) {
        add(text, i ? ";second=" : ";first=");
        add_sites(text, &found[i]);
    }
    free(found[0].sites);
    free(found[1].sites);
    rf_site_list_free(&list);
    return good;
}

/* -- the command ----------------------------------------------------------------------------------------------------------------- */

static int start(const struct wish *wish, const char *options, char **argv)
{
    struct rf_places places;
    struct rf_program program;
    struct text text = { .chars = NULL };
    char path[PATH_MAX], reason[2 * PATH_MAX], number[160];
    if (!rf_cli_places(&places, WHO))
        return RF_EXIT_USAGE;
    if (!places.chase[0]) {
        fprintf(stderr, WHO ": the library libredflag-chase.so.0 is not beside the runtime in %s\n", places.lib);
        return RF_EXIT_USAGE;
    }
    if (!rf_program_find(argv[0], path, sizeof path)) {
        fprintf(stderr, WHO ": %s: %s\n", argv[0], strerror(errno));
        return NOT_FOUND;
    }
    rf_program_read(&program, path);
    if (!rf_program_watchable(&program, path, &places, reason, sizeof reason)) {
        fprintf(stderr, WHO ": %s: %s\n", path, reason);
        return RF_EXIT_USAGE;
    }
    snprintf(number, sizeof number, "rate_ppm=%.0f;delay_us=%" PRIu64 ";least_ms=%" PRIu64 ";seed=%" PRIu64 ";keep_going=%d",
             wish->rate * 1e6, wish->delay_us, wish->least_ms, wish->seed, wish->keep_going);
    add(&text, number);
    rf_put_first("LD_LIBRARY_PATH", wish->detector ? places.tsan : places.chase);
    if (!wish->no_pair && !find_pair(wish, path, &text))
        return RF_EXIT_USAGE;
    setenv("REDFLAG_CHASE", text.chars, 1);
    if (options)
        setenv("REDFLAG_OPTIONS", options, 1);
    execvp(argv[0], argv);
    fprintf(stderr, WHO ": %s: %s\n", path, strerror(errno));
    return errno == ENOENT ? NOT_FOUND : CANNOT_EXECUTE;
}

int rf_cli_chase(int argc, char **argv)
{
    struct wish wish = { .rate = 0.05, .delay_us = 10000, .least_ms = 1000 };
    struct rf_run_text options = { NULL, 0 };
    char **others = rf_zeroed((size_t)argc + 1, sizeof *others); /* than --store */
    size_t other_count = 0;
    int i = 1;
    if (getenv("REDFLAG_OPTIONS") && *getenv("REDFLAG_OPTIONS"))
        rf_run_text_add(&options, getenv("REDFLAG_OPTIONS"));
    for (int used; i < argc && argv[i][0] == '-' && argv[i][1]; i += used) {
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help();
        used = own_option(&wish, argv + i, argc - i);
        if (used < 0)
            return RF_EXIT_USAGE;
        bool is_store = !strncmp(argv[i], "--store", 7);
        for (int word = 0; word < used && !is_store; word++)
            others[other_count++] = argv[i + word];
        if (used)
            continue;
        if (!rf_run_option(&options, WHO, argv + i, argc - i, &used)) {
            fprintf(stderr, WHO ": unknown option '%s'; try 'redflag chase --help'\n", argv[i]);
            return RF_EXIT_USAGE;
        }
        if (!used)
            return RF_EXIT_USAGE;
        for (int word = 0; word < used; word++)
            others[other_count++] = argv[i + word];
    }
    if (i >= argc) {
        fputs(WHO ": no program is named; try 'redflag chase --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (wish.store && (wish.pair[0] || wish.no_pair || wish.detector)) {
        fputs(WHO ": --store brings the pair: not with --pair, --no-pair or --detector\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (wish.store)
        return rf_watch_chase(wish.store, others, other_count, argv + i);
    if (!wish.pair[0] == !wish.no_pair || (wish.no_pair && wish.detector)) {
        fputs(WHO ": one of --pair S1,S2, --store WHERE and --no-pair is needed; `redflag sites` lists the sites of a program\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (wish.detector) {
        char setting[32];
        snprintf(setting, sizeof setting, "detector=%s", wish.detector);
        rf_run_text_add(&options, setting);
    }
    return start(&wish, options.text, argv + i);
}
