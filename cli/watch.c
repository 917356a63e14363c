/* redflag watch: one command for production. It asks the store what to look for, runs the program in that mode, within one budget, and
 * brings back what was found.
 *
 * 1. The program comes first: whatever goes wrong with the store, it runs, with its own arguments, streams, signals and exit status.
 *    Races do not change its status.
 * 2. What was found goes to the store; if that is out of reach, to the spool, which a later watch or `redflag store merge` brings in.
 * 3. A lease is renewed for as long as the program runs. A watch that is killed gives its pair back when the lease ends.
 * 4. A run counts from its beginning on, also if its watch is killed: it is told to the store before the program starts, and again as it goes
 *    on, after FIRST_SIGN seconds and a tenth of its time so far. So of one that never came back it is known how long it took, but for the
 *    time to the next sign (until_next_sign()); that part counts as if all of it had been lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/program.h"
#include "cli/program_sites.h"
#include "cli/watch.h"
#include "core/account.h"
#include "fleet/spool.h"
#include "fleet/store.h"
#include "trace/grow.h"

#define WHO "redflag watch"
#define FIRST_SIGN 10
#define TRIES 16 /* pairs that are leased in search of one that this program has */

static const char usage[] =
    "usage: redflag watch [OPTION...] [--] PROGRAM [ARGUMENT...]\n\n"
    "Runs a program of production and looks for races as the store says, within one budget: the next pair of sites is chased\n"
    "(redflag chase), sites that escape are looked for (redflag caper), or PACER samples (redflag run -d pacer), if a rate is\n"
    "given. What is found goes to the store. The program's own exit status is not changed.\n\n"
    "  -s, --store WHERE        as for `redflag store`\n"
    "      --modes LIST         which, in the order of preference: chase, caper, pacer, none (chase,caper,pacer,none)\n"
    "      --max-overhead P%    threads wait for no more than this part of the time (5%); caper and pacer have so few of the runs\n"
    "                           that, over all of them, they and waiting take no more than that either\n"
    "      --delay T            of chase: how long one waits (10ms)\n"
    "      --rate R             of pacer: the part of the time that is sampled (0.01 is 1%); without it, pacer is not used\n"
    "      --lease SECONDS      after which a watch that was killed loses its pair (600)\n"
    "      --patience SECONDS   how long a store that is out of reach is tried for, before and after (1)\n"
    "  -q, --quiet              do not say what was looked for\n"
    "  -h, --help               this text\n\n"
    "Exit status: that of the program, 128 and the signal's number if one ended it; 2 bad usage.";

enum { MODES = 256, OVERHEAD, DELAY, RATE, LEASE, PATIENCE };

static const struct option long_options[] = {
    { "store", required_argument, NULL, 's' },
    { "modes", required_argument, NULL, MODES },
    { "max-overhead", required_argument, NULL, OVERHEAD },
    { "delay", required_argument, NULL, DELAY },
    { "rate", required_argument, NULL, RATE },
    { "lease", required_argument, NULL, LEASE },
    { "patience", required_argument, NULL, PATIENCE },
    { "quiet", no_argument, NULL, 'q' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

enum mode { CHASE, CAPER, PACER, NONE, MODE_COUNT };
static const char *const mode_names[] = { "chase", "caper", "pacer", "none" };

struct watch {
    const char *where, *overhead, *delay, *rate;
    enum mode modes[MODE_COUNT];
    unsigned mode_count;
    double lease, patience;
    bool quiet, instrumented;
    char **program;
    const char *who; /* begins what is said */
    bool tells;      /* by the exit status, that there was a race */
    char **words;    /* further options of chase */
    size_t word_count;

    char *place, *spool;
    struct rf_store *store; /* NULL: out of reach */
    char run[80], pair_run[96], host[64], build[65], reports[4096];
    enum mode mode;
    struct rf_leased pair;
    bool announced;        /* to the store, under the run's name, a run of a mode that it is not: that could not be taken back */
    double began, started; /* the first sign, by clocks of this machine: steadily, and since 1970 */
    struct rf_account *account; /* NULL: there is none */
    char account_place[96];
};

static double read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Never goes back. */
static double now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int wrong(const char *what, const char *value)
{
    fprintf(stderr, WHO ": %s '%s'; try '" WHO " --help'\n", what, value);
    return RF_EXIT_USAGE;
}

/* ---- the store ---- */

static void open_store(struct watch *watch)
{
    enum rf_store_answer answer;
    struct rf_spooled count;
    char error[512];
    watch->store = rf_store_open(watch->place, watch->patience, &answer, error);
    if (!watch->store && !watch->quiet)
        fprintf(stderr, "%s: %s; what is found is kept in %s\n", watch->who, error, watch->spool);
    if (watch->store && rf_spool_merge(watch->store, watch->spool, false, &count, error) != RF_STORE_DONE && !watch->quiet)
        fprintf(stderr, "%s: the spool stays: %s\n", watch->who, error);
}

static bool has_sites(const struct rf_site_list *sites, const struct rf_leased *pair)
{
    return rf_site_list_find(sites, pair->first, NULL, 0) && rf_site_list_find(sites, pair->second, NULL, 0);
}

/* A pair that this program has; a store of several programs has others, which are given back afterwards. */
static bool lease_pair(struct watch *watch, const struct rf_site_list *sites)
{
    char names[TRIES][sizeof watch->pair_run];
    unsigned tries = 0;
    bool found = false;
    while (watch->store && !found && tries < TRIES) {
        snprintf(names[tries], sizeof names[tries], "%s%s%.0u", watch->run, tries ? "." : "", tries);
        if (rf_store_lease(watch->store, names[tries], watch->build, watch->lease, &watch->pair) != RF_STORE_DONE)
            break;
        found = has_sites(sites, &watch->pair);
        tries++;
    }
    if (found)
        memcpy(watch->pair_run, names[tries - 1], sizeof watch->pair_run);
    for (unsigned i = 0; i + found < tries; i++)
        rf_store_give_back(watch->store, names[i]);
    return found;
}

/* Is there a pair of which it is not known yet whether its sites escape? */
static bool has_static_pairs(struct watch *watch)
{
    const char *values[] = { watch->build };
    json_t *rows;
    if (!watch->store)
        return false;
    bool any =
        rf_store_ask(watch->store, "SELECT id FROM pairs WHERE stage = 'static' AND (build = $1 OR build = '') LIMIT 1", 1,
                     values, &rows) == RF_STORE_DONE &&
        json_array_size(rows) > 0;
    json_decref(rows);
    return any;
}

/* ---- the run, as the store is told of it ---- */

static void deliver(struct watch *watch, json_t *result, bool last)
{
    char error[512] = "";
    enum rf_store_answer answer = watch->store ? rf_store_apply(watch->store, result) : RF_STORE_OUT_OF_REACH;
    if (answer == RF_STORE_DONE)
        return;
    char *line = json_dumps(result, JSON_COMPACT);
    if ((!line || !rf_spool_add(watch->spool, line, error)) && last)
        fprintf(stderr, "%s: what was found is lost: the store is out of reach, and %s\n", watch->who,
                line ? error : "out of memory");
    free(line);
}

static json_t *result_of(const struct watch *watch)
{
    json_t *result = json_pack("{s:s, s:s, s:s, s:s, s:s}", "redflag", "run", "id",
                               watch->mode == CHASE ? watch->pair_run : watch->run, "mode", mode_names[watch->mode], "host",
                               watch->host, "build", watch->build);
    if (watch->mode == CHASE)
        json_object_set_new(result, "pair", json_pack("[s, s]", watch->pair.first, watch->pair.second));
    if (watch->mode == PACER)
        json_object_set_new(result, "rate", json_real(strtod(watch->rate, NULL)));
    if (watch->mode == CHASE && watch->account && __atomic_load_n(&watch->account->processes, __ATOMIC_RELAXED))
        json_object_set_new(result, "waited", json_real((double)__atomic_load_n(&watch->account->waited, __ATOMIC_RELAXED) * 1e-9));
    return result;
}

/* Invariant 4. It says itself when it was given: the spool may bring it much later, and the store's clock be another. */
static json_t *sign_of(struct watch *watch)
{
    json_t *result = result_of(watch);
    if (watch->started == 0) {
        watch->started = read_clock(CLOCK_REALTIME);
        watch->began = now();
    }
    json_object_set_new(result, "unfinished", json_true());
    json_object_set_new(result, "started", json_integer((json_int_t)watch->started));
    json_object_set_new(result, "heard", json_integer((json_int_t)(watch->started + now() - watch->began)));
    return result;
}

static void give_sign(struct watch *watch)
{
    json_t *result = sign_of(watch);
    deliver(watch, result, false);
    json_decref(result);
}

/* It may become a run of this mode. False: the store does not know of it, nor will it, as nothing is left in the spool. */
static bool announce(struct watch *watch, enum mode mode)
{
    watch->mode = mode;
    json_t *result = sign_of(watch);
    watch->mode = NONE;
    bool done = rf_store_apply(watch->store, result) == RF_STORE_DONE;
    json_decref(result);
    return done;
}

/* The store did not take back what was announced. If the run itself has that name, what it says next takes its place. If not, a run that
 * took no time does, now or from the spool: it counts nowhere. */
static void take_back(struct watch *watch)
{
    if (!watch->announced || watch->mode != CHASE || !strcmp(watch->pair_run, watch->run))
        return;
    json_t *nothing = json_pack("{s:s, s:s, s:s, s:s, s:s}", "redflag", "run", "id", watch->run, "mode", mode_names[NONE], "host",
                                watch->host, "build", watch->build);
    deliver(watch, nothing, false);
    json_decref(nothing);
}

static double until_next_sign(double so_far)
{
    return FIRST_SIGN + so_far / 10;
}

/* ---- the budget ---- */

/* What the store knows of the build's runs of one mode. */
struct spent {
    double seconds, runs, waited;
    double unknown; /* seconds of those that have not said what they waited; less than t_min counts as t_min */
    double open, open_seconds; /* those that are not over, and what they took so far */
};

static bool ask_spent(struct watch *watch, struct spent spent[MODE_COUNT])
{
    const char *values[] = { watch->build, watch->run };
    json_t *rows, *row;
    size_t i;
    bool done = rf_store_ask(watch->store,
                             "SELECT mode, sum(coalesce(seconds, 0)), sum(CASE WHEN heard IS NULL THEN 1 ELSE 0 END), sum(coalesce(waited, 0)),"
                             " sum(CASE WHEN heard IS NULL AND waited IS NULL THEN CASE WHEN seconds > 1 THEN seconds ELSE 1 END ELSE 0 END),"
                             " count(heard), sum(coalesce(heard - started, 0)) FROM runs"
                             " WHERE build = $1 AND id <> $2 AND (seconds IS NOT NULL OR heard IS NOT NULL) GROUP BY mode",
                             2, values, &rows) == RF_STORE_DONE;
    json_array_foreach(rows, i, row) {
        double numbers[6] = { 0 };
        for (size_t column = 0; column < 6; column++) {
            const char *text = json_string_value(json_array_get(row, column + 1));
            numbers[column] = text ? strtod(text, NULL) : 0;
        }
        for (int mode = 0; done && mode < MODE_COUNT; mode++)
            if (!strcmp(mode_names[mode], json_string_value(json_array_get(row, 0))))
                spent[mode] = (struct spent){ numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5] };
    }
    json_decref(rows);
    return done;
}

/* What those that are not over may have taken since their last sign, all together. Times of signs are whole seconds. */
static double unheard(const struct spent *spent)
{
    return spent->open * (until_next_sign(0) + 1) + spent->open_seconds * (until_next_sign(10) - until_next_sign(0)) / 10;
}

/* Is there something left of the budget for this run to look for sites which escape, or to sample? Such a run cannot be bounded while it
 * goes on; so over all runs of the build, what threads have waited, and what earlier runs of these kinds took longer than the others in the
 * mean, is no more than its part of all the time. The first one of a kind shows what they take. Of one that is not over, or never came
 * back, all of its time counts as lost. The store knows of this run already, so that of two that ask at once neither is the first. */
static bool is_affordable(struct watch *watch, enum mode mode)
{
    struct spent spent[MODE_COUNT] = { { 0 } };
    double rate = strtod(watch->overhead, NULL) / 100;
    if (watch->mode_count == 1) /* nothing else is wanted */
        return true;
    if (!watch->store || !announce(watch, mode))
        return false;
    bool known = ask_spent(watch, spent);
    if (known && spent[mode].runs + spent[mode].open == 0)
        return true;
    double others = spent[CHASE].runs + spent[NONE].runs;
    double usual = others > 0 ? (spent[CHASE].seconds + spent[NONE].seconds) / others : 0;
    double longer = 0, all = 0, waited = 0;
    for (int i = 0; i < MODE_COUNT; i++) {
        double more = spent[i].seconds - spent[i].runs * usual;
        if (i == CAPER || i == PACER)
            longer += (more > 0 ? more : 0) + spent[i].open_seconds + unheard(&spent[i]);
        else if (i == CHASE)
            waited += spent[i].waited + rate * (spent[i].unknown + unheard(&spent[i]));
        all += spent[i].seconds + spent[i].open_seconds;
    }
    if (known && longer + waited <= rate * all)
        return true;
    watch->announced = rf_store_give_back(watch->store, watch->run) != RF_STORE_DONE;
    return false;
}

static void choose(struct watch *watch)
{
    struct rf_site_list sites = { .modules = NULL };
    char path[PATH_MAX];
    bool listed = false;
    struct rf_places places;
    struct rf_program program;
    char reason[2 * PATH_MAX];
    watch->mode = NONE;
    if (rf_program_find(watch->program[0], path, sizeof path) && rf_cli_places(&places, NULL)) {
        rf_program_read(&program, path);
        watch->instrumented = rf_program_watchable(&program, path, &places, reason, sizeof reason);
    }
    if (watch->instrumented) {
        int errors = dup(2),
            nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); /* what is wrong with it shows when it is run */
        dup2(nowhere, 2);
        listed = rf_program_sites(&sites, path, true, WHO);
        dup2(errors, 2);
        close(errors);
        close(nowhere);
    }
    if (listed && sites.count)
        snprintf(watch->build, sizeof watch->build, "%s", sites.modules[0]->build_id);
    for (unsigned i = 0; i < watch->mode_count && watch->mode == NONE; i++) {
        enum mode mode = watch->modes[i];
        if (mode == NONE || !watch->instrumented)
            break;
        bool chosen = (mode == CHASE && listed && lease_pair(watch, &sites)) ||
                      (mode == CAPER && listed && has_static_pairs(watch) && is_affordable(watch, CAPER)) ||
                      (mode == PACER && watch->rate && is_affordable(watch, PACER));
        watch->mode = chosen ? mode : NONE;
    }
    rf_site_list_free(&sites);
}

/* ---- the program ---- */

static volatile sig_atomic_t child_number;

static void pass_on(int number)
{
    if (child_number > 0)
        kill(child_number, number);
}

static int arguments_of(const struct watch *watch, const char **argv, char pair[600])
{
    int count = 0;
    argv[count++] = watch->mode == PACER ? "run" : "chase";
    for (size_t i = 0; i < watch->word_count; i++)
        argv[count++] = watch->words[i];
    argv[count++] = "--format=jsonl";
    argv[count++] = "--output";
    argv[count++] = watch->reports;
    argv[count++] = "--exitcode=0";
    if (watch->mode == CHASE) {
        /* Who waits for whom are two experiments (doc/chase.md): they take turns. */
        bool turned = watch->pair.runs % 2;
        snprintf(pair, 600, "%s,%s", turned ? watch->pair.second : watch->pair.first, turned ? watch->pair.first : watch->pair.second);
        argv[count++] = "--pair";
        argv[count++] = pair;
        if (watch->overhead) {
            argv[count++] = "--max-overhead";
            argv[count++] = watch->overhead;
            argv[count++] = "--delay";
            argv[count++] = watch->delay;
        }
    } else if (watch->mode == PACER) {
        argv[count++] = "--detector=pacer";
        argv[count++] = "--rate";
        argv[count++] = watch->rate;
    } else {
        argv[count++] = "--no-pair";
    }
    argv[count++] = "--";
    return count;
}

/* `redflag chase` and `redflag run` become the program. One that is not instrumented is run as it is. */
static int become(const struct watch *watch)
{
    if (!watch->instrumented) {
        execvp(watch->program[0], watch->program);
        fprintf(stderr, "%s: %s: %s\n", watch->who, watch->program[0], strerror(errno));
        return errno == ENOENT ? 127 : 126;
    }
    const char **argv = rf_zeroed(32 + watch->word_count, sizeof *argv);
    char pair[600], sites[PATH_MAX];
    int count = 0;
    if (watch->mode == CAPER) { /* the sites of a build are kept beside the spool */
        snprintf(sites, sizeof sites, "%.3900s.%s.sites", watch->spool, watch->build);
        const char *words[] = { "caper", "--store", watch->place, "--state", sites, "-q", "--" };
        count = sizeof words / sizeof *words;
        memcpy(argv, words, sizeof words);
    } else {
        count = arguments_of(watch, argv, pair);
    }
    size_t all = (size_t)count;
    char **words = rf_zeroed(all + 1, sizeof *words);
    memcpy(words, argv, all * sizeof *words);
    for (char **word = watch->program; *word; word++) {
        words = rf_resize(words, (all + 2) * sizeof *words);
        words[all++] = *word;
        words[all] = NULL;
    }
    optind = 0; /* getopt begins again */
    return watch->mode == CAPER   ? rf_cli_caper((int)all, words)
           : watch->mode == PACER ? rf_cli_run((int)all, words)
                                  : rf_cli_chase((int)all, words);
}

/* Invariants 3 and 4. */
static int wait_for(struct watch *watch, pid_t child, double began)
{
    int status = 0;
    struct rf_leased same;
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    double third = watch->lease / 3, leased = now(), sign = began;
    while (waitpid(child, &status, WNOHANG) != child) {
        if (!watch->store) { /* nobody to tell anything */
            sigwaitinfo(&ended, NULL);
            continue;
        }
        double until = sign + until_next_sign(sign - began);
        if (watch->mode == CHASE && leased + third < until) /* else there is no lease */
            until = leased + third;
        double left = until > now() ? until - now() : 0;
        struct timespec time = { (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };
        if (sigtimedwait(&ended, NULL, &time) >= 0 || errno != EAGAIN)
            continue;
        if (watch->mode == CHASE && now() >= leased + third) {
            rf_store_lease(watch->store, watch->pair_run, watch->build, watch->lease, &same);
            leased = now();
        }
        if (now() >= sign + until_next_sign(sign - began)) {
            give_sign(watch);
            sign = now();
        }
    }
    return status;
}

static json_t *found_reports(const struct watch *watch)
{
    json_t *reports = json_array();
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    FILE *file = fopen(watch->reports, "re");
    while (file && (length = getline(&line, &capacity, file)) > 0) {
        json_t *report = json_loadb(line, (size_t)length, 0, NULL);
        if (json_object_get(report, "fingerprint"))
            json_array_append(reports, report);
        json_decref(report);
    }
    if (file)
        fclose(file);
    free(line);
    unlink(watch->reports);
    return reports;
}

static void say(const struct watch *watch, size_t races)
{
    if (watch->quiet)
        return;
    if (watch->mode == CHASE)
        fprintf(stderr, "%s: chased %s and %s: %s\n", watch->who, watch->pair.first, watch->pair.second,
                races ? "they race" : "nothing seen");
    else if (watch->mode == PACER)
        fprintf(stderr, "%s: sampled at %s: %zu reports\n", watch->who, watch->rate, races);
    else if (watch->mode == CAPER)
        fprintf(stderr, "%s: looked for sites that escape\n", watch->who);
    else
        fprintf(stderr, "%s: there was nothing to look for\n", watch->who);
}

/* Without one nobody knows what is waited, and that counts as if it were all of what may be. */
static void make_account(struct watch *watch)
{
    char name[48];
    snprintf(name, sizeof name, RF_ACCOUNT_NAME "%s", strrchr(watch->run, '-') + 1);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof *watch->account) != 0)
        return;
    void *at = mmap(NULL, sizeof *watch->account, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    watch->account = at == MAP_FAILED ? NULL : at;
    snprintf(watch->account_place, sizeof watch->account_place, "%s /proc/%d/fd/%d", name, (int)getpid(), fd);
}

static int run(struct watch *watch)
{
    sigset_t ended, before;
    const char *directory = getenv("TMPDIR");
    snprintf(watch->reports, sizeof watch->reports, "%.4000s/redflag-watch-XXXXXX",
             directory && *directory ? directory : "/tmp");
    int fd = mkstemp(watch->reports);
    if (fd < 0) {
        fprintf(stderr, "%s: %s: %s\n", watch->who, watch->reports, strerror(errno));
        return RF_EXIT_USAGE;
    }
    close(fd);
    if (watch->mode == CHASE)
        make_account(watch);
    take_back(watch);
    give_sign(watch);
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, &before);
    double began = now(), started = read_clock(CLOCK_REALTIME);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (watch->account)
            setenv(RF_ACCOUNT_VARIABLE, watch->account_place, 1);
        _exit(become(watch));
    }
    if (child < 0) {
        fprintf(stderr, "%s: cannot start a process: %s\n", watch->who, strerror(errno));
        return RF_EXIT_USAGE;
    }
    child_number = child;
    signal(SIGINT, SIG_IGN); /* the terminal sends them to the program too */
    signal(SIGQUIT, SIG_IGN);
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    int status = wait_for(watch, child, began);
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    json_t *reports = found_reports(watch);
    size_t races = json_array_size(reports);
    json_t *result = result_of(watch), *end = json_pack("{s:I, s:f, s:i, s:o}", "started", (json_int_t)started, "seconds",
                                                        now() - began, "status", code, "reports", reports);
    json_object_update(result, end);
    json_decref(end);
    deliver(watch, result, true);
    json_decref(result);
    say(watch, races);
    return races && watch->tells && !WIFSIGNALED(status) ? RF_EXIT_RACES : code;
}

/* ---- options ---- */

static bool take_modes(struct watch *watch, const char *text)
{
    watch->mode_count = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        unsigned mode = 0;
        while (mode < MODE_COUNT && (strlen(mode_names[mode]) != length || strncmp(mode_names[mode], text, length) != 0))
            mode++;
        if (mode == MODE_COUNT || watch->mode_count == MODE_COUNT)
            return false;
        watch->modes[watch->mode_count++] = (enum mode)mode;
        text += length + (text[length] == ',');
    }
    return watch->mode_count > 0;
}

static int start(struct watch *watch)
{
    uint64_t random = 0;
    if (gethostname(watch->host, sizeof watch->host - 1) != 0)
        strcpy(watch->host, "?");
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)(read_clock(CLOCK_REALTIME) * 1e6);
    snprintf(watch->run, sizeof watch->run, "%.40s-%d-%016" PRIx64, watch->host, (int)getpid(), random);
    watch->place = rf_store_place(watch->where);
    watch->spool = rf_spool_place();
    open_store(watch);
    choose(watch);
    int status = run(watch);
    rf_store_close(watch->store);
    free(watch->place);
    free(watch->spool);
    return status;
}

int rf_watch_chase(const char *store, char **options, size_t count, char **program)
{
    struct watch watch = { .who = "redflag chase",
                           .where = *store ? store : NULL,
                           .lease = 600,
                           .patience = 1,
                           .program = program,
                           .words = options,
                           .word_count = count,
                           .tells = true };
    take_modes(&watch, "chase,none");
    return start(&watch);
}

int rf_cli_watch(int argc, char **argv)
{
    struct watch watch = { .who = WHO, .overhead = "5%", .delay = "10ms", .lease = 600, .patience = 1 };
    double rate;
    take_modes(&watch, "chase,caper,pacer,none");
    for (int option; (option = getopt_long(argc, argv, "+s:qh", long_options, NULL)) != -1;) {
        switch (option) {
        case 's':
            watch.where = optarg;
            break;
        case 'q':
            watch.quiet = true;
            break;
        case OVERHEAD:
            watch.overhead = optarg;
            break;
        case DELAY:
            watch.delay = optarg;
            break;
        case RATE:
            watch.rate = optarg;
            if (!rf_cli_number(optarg, 0, 1, &rate))
                return wrong("not a rate from 0 to 1:", optarg);
            break;
        case MODES:
            if (!take_modes(&watch, optarg))
                return wrong("not a list of chase, caper, pacer, none:", optarg);
            break;
        case LEASE:
            if (!rf_cli_number(optarg, 3, 1e8, &watch.lease))
                return wrong("not a number of seconds, 3 or more:", optarg);
            break;
        case PATIENCE:
            if (!rf_cli_number(optarg, 0, 1e6, &watch.patience))
                return wrong("not a number of seconds:", optarg);
            break;
        case 'h':
            puts(usage);
            return RF_EXIT_OK;
        default:
            return RF_EXIT_USAGE;
        }
    }
    if (optind == argc) {
        fputs(WHO ": no program; try '" WHO " --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    watch.program = argv + optind;
    return start(&watch);
}
