/* What each detector promises, against the oracle, on many random traces.
 *
 * 1. RF_TRACES says how many (200,000; a twentieth under sanitizers), RF_SEED where to begin. A failure names seed and shape,
 *    shrinks the trace and prints it as STD text, with what was expected and what was found.
 * 2. Every trace is given to every detector. Their options take turns, and so do the detectors where the check does not
 *    depend on them (batches, workers).
 * 3. A promise about first races holds up to the number oracle.clean of a byte; promises about single reports hold always.
 */
#include <malloc.h>

#include "tests/answers.h"
#include "tests/definitions.h"

static const char *const all_names[] = { "generic",  "djit",      "fasttrack", "goldilocks", "pacer",
                                         "literace", "acculock",  "multilock", "lockset",    "eraser",
                                         "hybrid",   "racetrack", "multirace", "litehb",     "alias" };

/* ---- what each detector promises ---- */

static const struct rf_detector *present(const char *name)
{
    return detector_named(name);
}

/* One that finds every first race of happens-before, and nothing that is none. */
static bool check_exact(const char *name, const char *how, struct rf_options options, enum oracle_order order)
{
    const struct rf_detector *detector = present(name);
    if (!detector)
        return true;
    struct answers got;
    char label[96];
    snprintf(label, sizeof label, "%s%s", name, how);
    answer(&got, label, &(struct manner){ .detector = detector, .options = options });
    bool good = first_races_equal(&got, order) && reports_hold(&got, order, RACING) && threads_hold(&got);
    answer_end(&got);
    return good;
}

static bool check_generic(enum rf_transactions transactions)
{
    static const char *const labels[] = { "generic", "generic, transactions all", "generic, transactions writes" };
    struct rf_options options = plain_options();
    options.transactions = transactions;
    struct answers got;
    if (!present("generic"))
        return true;
    enum oracle_order order = (enum oracle_order)transactions;
    answer(&got, labels[transactions], &(struct manner){ .detector = present("generic"), .options = options });
    bool good = reports_are(&got, order, says_race) && first_races_equal(&got, order) && reports_hold(&got, order, RACING) &&
                threads_hold(&got);
    answer_end(&got);
    return good;
}

static bool check_exact_family(enum rf_transactions transactions)
{
    static const char *const modes[] = { "", ", transactions all" };
    enum oracle_order order = (enum oracle_order)transactions;
    struct rf_options options = plain_options(), other = options;
    char how[64];
    options.transactions = transactions;
    snprintf(how, sizeof how, "%s", modes[transactions]);
    if (!check_exact("djit", how, options, order) || !check_exact("fasttrack", how, options, order) ||
        !check_exact("goldilocks", how, options, order) || !check_exact("pacer", how, options, order))
        return false;
    other.transactions = transactions;
    other.eager = true;
    snprintf(how, sizeof how, ", eager%s", modes[transactions]);
    if (!check_exact("goldilocks", how, other, order))
        return false;
    other.eager = false;
    other.event_list = 1 + subject.seed / TRACE_SHAPES % 16;
    snprintf(how, sizeof how, ", trimmed%s", modes[transactions]);
    if (other.event_list % 2 && !check_exact("goldilocks", how, other, order))
        return false;
    options.slot_limit = 2 + subject.seed % 3;
    options.time_limit = 3 + subject.seed / 3 % 5;
    snprintf(how, sizeof how, ", tiny epochs%s", modes[transactions]);
    return check_exact("fasttrack", how, options, order);
}

/* With commits that only W and R' order, the others may miss races, but say nothing that is not one. */
static bool check_writes_family(void)
{
    static const char *const names[] = { "djit", "fasttrack", "goldilocks", "pacer" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct rf_options options = plain_options();
        options.transactions = RF_TXN_WRITES;
        const struct rf_detector *detector = present(names[i]);
        if (!detector)
            continue;
        struct answers got;
        char label[96];
        snprintf(label, sizeof label, "%s, transactions writes", names[i]);
        answer(&got, label, &(struct manner){ .detector = detector, .options = options });
        bool good = reports_hold(&got, ORACLE_WRITES, RACING);
        answer_end(&got);
        if (!good)
            return false;
    }
    return true;
}

/* The first access of each byte that a definition names is the first that the detector reports; below `clean` if the
 * detector may do what it likes after its first. */
static bool first_reports_are(const struct answers *got, says_fn *says, bool below_clean)
{
    const struct oracle *o = truth(ORACLE_ACCU);
    uint64_t expected[ORACLE_BYTES];
    for (uint32_t byte = 0; byte < o->granule_count * RF_GRANULE; byte++)
        expected[byte] = ORACLE_NEVER;
    for (uint32_t i = 0; i < o->access_count; i++) {
        const struct oracle_access *access = &o->accesses[i];
        if (expected[access->byte] == ORACLE_NEVER && !frees_nothing(o, access) && says(o, access))
            expected[access->byte] = o->nodes[access->node].event->number;
    }
    for (uint32_t byte = 0; byte < o->granule_count * RF_GRANULE; byte++) {
        uint64_t clean = below_clean ? o->clean[byte] : ORACLE_NEVER;
        if (up_to(expected[byte], clean) != up_to(got->first[byte], clean))
            return wrong(got->label, "first report on 0x%llx: expected at %lld, found at %lld (-1: none)",
                         (unsigned long long)oracle_addr(o, byte), (long long)expected[byte], (long long)got->first[byte]);
    }
    return true;
}

/* MultiRace reports races, where Eraser's lockset is empty; the first race of a byte for certain, if it is empty there. */
static bool multirace_holds(const struct answers *got)
{
    const struct oracle *o = truth(ORACLE_SHARED), *locks = truth(ORACLE_ACCU);
    for (size_t i = 0; i < got->races.count; i++) {
        const struct rf_race *race = &got->races.list[i];
        uint32_t byte = oracle_byte(o, race->addr);
        const struct oracle_access *access = oracle_find(locks, byte, race->second.number, NULL);
        bool empty = false;
        for (; access; access = oracle_find(locks, byte, race->second.number, access + 1))
            empty |= !eraser_after(locks, access).candidates;
        if (!empty)
            return wrong(got->label, "report at %llu: the lockset is not empty", (unsigned long long)race->second.number);
    }
    for (uint32_t byte = 0; byte < o->granule_count * RF_GRANULE; byte++) {
        uint64_t number = up_to(o->first[byte], o->clean[byte]);
        if (number == ORACLE_NEVER)
            continue;
        bool expected = false;
        const struct oracle_access *access = oracle_find(o, byte, number, NULL);
        for (; access; access = oracle_find(o, byte, number, access + 1)) /* both lists have the same accesses */
            expected |= says_race(o, access) && !eraser_after(locks, locks->accesses + (access - o->accesses)).candidates;
        if (expected && got->first[byte] != number)
            return wrong(got->label,
                         "first race on 0x%llx at %llu, with an empty lockset, reported at %lld (-1: not at all)",
                         (unsigned long long)oracle_addr(o, byte), (unsigned long long)number, (long long)got->first[byte]);
    }
    return true;
}

static bool check_lock_family(void)
{
    static const char *const names[] = { "lockset", "acculock", "eraser", "multilock", "hybrid", "racetrack", "multirace" };
    enum { LOCKSET, ACCULOCK, ERASER, MULTILOCK, HYBRID, RACETRACK, MULTIRACE, COUNT };
    static struct answers got[COUNT];
    for (int i = 0; i < COUNT; i++)
        if (present(names[i]))
            answer(&got[i], names[i], &(struct manner){ .detector = present(names[i]), .options = plain_options() });
    bool good = true;
    if (present("lockset"))
        good = good && first_reports_are(&got[LOCKSET], lockset_says, false) &&
               reports_hold(&got[LOCKSET], ORACLE_SHARED, EARLIER);
    if (present("eraser"))
        good = good && first_reports_are(&got[ERASER], eraser_says, false) && contained(&got[ERASER], &got[LOCKSET]) &&
               reports_hold(&got[ERASER], ORACLE_SHARED, EARLIER);
    if (present("multirace"))
        good = good && reports_hold(&got[MULTIRACE], ORACLE_SHARED, RACING) && threads_hold(&got[MULTIRACE]) &&
               multirace_holds(&got[MULTIRACE]);
    if (present("hybrid"))
        good = good && first_reports_are(&got[HYBRID], hybrid_says, true) && contained(&got[HYBRID], &got[LOCKSET]) &&
               reports_hold(&got[HYBRID], ORACLE_ACCU, RACING) && threads_hold(&got[HYBRID]);
    if (present("racetrack"))
        good = good && contained(&got[RACETRACK], &got[LOCKSET]) && reports_hold(&got[RACETRACK], ORACLE_ACCU, EARLIER) &&
               threads_hold(&got[RACETRACK]);
    if (present("multilock"))
        good = good && first_races_equal(&got[MULTILOCK], ORACLE_ACCU) &&
               reports_hold(&got[MULTILOCK], ORACLE_ACCU, RACING) && threads_hold(&got[MULTILOCK]);
    if (present("acculock")) {
        good = good && contained(&got[ACCULOCK], &got[LOCKSET]) && reports_hold(&got[ACCULOCK], ORACLE_SHARED, EARLIER) &&
               threads_hold(&got[ACCULOCK]);
        const struct oracle *hb = truth(ORACLE_SHARED), *accu = truth(ORACLE_ACCU);
        for (uint32_t byte = 0; good && byte < hb->granule_count * RF_GRANULE; byte++) {
            uint64_t race = up_to(up_to(hb->first[byte], hb->clean[byte]), accu->clean[byte]);
            if (race != ORACLE_NEVER && got[ACCULOCK].first[byte] > race)
                good =
                    wrong("acculock contains fasttrack", "race on 0x%llx at %lld, reported at %lld (-1: not at all)",
                          (unsigned long long)oracle_addr(hb, byte), (long long)race, (long long)got[ACCULOCK].first[byte]);
        }
    }
    if (good && present("acculock")) {
        struct rf_options tiny = plain_options();
        tiny.slot_limit = 2 + subject.seed % 3;
        tiny.time_limit = 3 + subject.seed / 3 % 5;
        struct answers narrow;
        answer(&narrow, "acculock, tiny epochs", &(struct manner){ .detector = present("acculock"), .options = tiny });
        good = same_first_races(&got[ACCULOCK], &narrow);
        answer_end(&narrow);
    }
    for (int i = 0; i < COUNT; i++)
        if (present(names[i]))
            answer_end(&got[i]);
    return good;
}

static bool check_volatile_as_lock(void)
{
    struct rf_options options = plain_options();
    options.volatile_as_lock = true;
    if (!present("multilock"))
        return true;
    struct answers got;
    answer(&got, "multilock, volatile lock", &(struct manner){ .detector = present("multilock"), .options = options });
    bool good = first_races_equal(&got, ORACLE_ACCU_VOLATILE) && reports_hold(&got, ORACLE_ACCU_VOLATILE, RACING);
    answer_end(&got);
    return good;
}

/* ---- sampling ---- */

/* Which nodes are sampled by the marks in the trace. Before the first mark all are, unless that mark begins sampling. */
static void sampled_nodes(const struct oracle *o, uint64_t *sampled)
{
    bool sampling = true;
    for (uint32_t node = o->node_count; node-- > 0;) {
        if (o->nodes[node].event->op == RF_SAMPLE_BEGIN)
            sampling = false;
        else if (o->nodes[node].event->op == RF_SAMPLE_END)
            sampling = true;
    }
    memset(sampled, 0, o->words * sizeof *sampled);
    for (uint32_t node = 0; node < o->node_count; node++) {
        if (o->nodes[node].event->op == RF_SAMPLE_BEGIN || o->nodes[node].event->op == RF_SAMPLE_END)
            sampling = o->nodes[node].event->op == RF_SAMPLE_BEGIN;
        else if (sampling)
            sampled[node / 64] |= UINT64_C(1) << node % 64;
    }
}

/* Has FastTrack still got the access a when b comes, before any race on the byte? A write lasts until the next write; a read
 * also until the next read that happens after it. (In a read map it may last longer.) */
static bool certainly_kept(const struct oracle *o, const struct oracle_access *b, uint32_t a)
{
    for (uint32_t later = a + 1; later < b->node; later++)
        if (oracle_has(b->writers, later) ||
            (!oracle_has(b->writers, a) && oracle_has(b->reads, later) && oracle_has(o->nodes[later].before, a)))
            return false;
    return true;
}

/* PACER, section 3.3: a race whose first access is sampled, and the last to race, is reported; every report is a race, and
 * its first access is sampled. */
static bool check_pacer(void)
{
    struct rf_options options = plain_options();
    options.rate = -1;
    if (!present("pacer"))
        return true;
    const struct oracle *o = truth(ORACLE_SHARED);
    uint64_t sampled[ORACLE_WORDS];
    sampled_nodes(o, sampled);
    struct answers got;
    answer(&got, "pacer, periods of the trace", &(struct manner){ .detector = present("pacer"), .options = options });
    bool good = reports_hold(&got, ORACLE_SHARED, RACING) && threads_hold(&got);
    for (size_t i = 0; good && i < got.races.count; i++) {
        bool found = false;
        for (uint32_t node = 0; node < o->node_count; node++)
            found |= o->nodes[node].event->number == got.races.list[i].first.number && oracle_has(sampled, node);
        if (!found)
            good = wrong(got.label, "report of %llu and %llu: the first is not sampled",
                         (unsigned long long)got.races.list[i].first.number,
                         (unsigned long long)got.races.list[i].second.number);
    }
    for (uint32_t i = 0; good && i < o->access_count; i++) {
        const struct oracle_access *b = &o->accesses[i];
        uint64_t number = o->nodes[b->node].event->number;
        if (o->first[b->byte] != number || number >= o->clean[b->byte])
            continue;
        for (uint32_t a = 0; a < b->node; a++)
            if (oracle_has(b->races, a) && oracle_has(sampled, a) && certainly_kept(o, b, a) && got.first[b->byte] != number)
                good = wrong(got.label, "race of %u and %llu on 0x%llx: the first is sampled, and it is not reported",
                             o->nodes[a].event->number, (unsigned long long)number,
                             (unsigned long long)oracle_addr(o, b->byte));
    }
    answer_end(&got);
    return good;
}

static bool check_samplers(void)
{
    struct rf_options options = plain_options();
    struct answers got;
    bool good = true;
    if (present("literace")) {
        answer(&got, "literace", &(struct manner){ .detector = present("literace"), .options = options });
        good = reports_hold(&got, ORACLE_SHARED, RACING) && threads_hold(&got);
        answer_end(&got);
    }
    if (good && present("pacer")) {
        options.rate = 0.5;
        answer(&got, "pacer, half of the periods", &(struct manner){ .detector = present("pacer"), .options = options });
        good = reports_hold(&got, ORACLE_SHARED, RACING) && threads_hold(&got);
        answer_end(&got);
    }
    return good;
}

/* ---- pairs of sites ---- */

static uint32_t pair_sites[2]; /* what LiteHB is asked for */

static uint32_t pair_class(void *names, uint32_t site)
{
    (void)names;
    return (site == pair_sites[0]) | (uint32_t)(site == pair_sites[1]) << 1;
}

/* A race whose first access is at the first site and whose second is at the second. */
static bool says_pair(const struct oracle *o, const struct oracle_access *access)
{
    if (o->nodes[access->node].event->site != pair_sites[1])
        return false;
    for (uint32_t a = 0; a < access->node; a++)
        if (oracle_has(access->races, a) && o->nodes[a].event->site == pair_sites[0])
            return true;
    return false;
}

static bool check_litehb(bool full)
{
    struct rf_options options = plain_options();
    options.full = full;
    options.site_class = pair_class;
    pair_sites[0] = 1 + subject.seed % 3;
    pair_sites[1] = 1 + subject.seed / 3 % 3;
    if (!present("litehb"))
        return true;
    struct answers got;
    answer(&got, full ? "litehb, full" : "litehb", &(struct manner){ .detector = present("litehb"), .options = options });
    bool good =
        reports_are(&got, ORACLE_SHARED, says_pair) && reports_hold(&got, ORACLE_SHARED, RACING) && threads_hold(&got);
    answer_end(&got);
    return good;
}

/* Alias: the pairs of sites at which different threads touched a byte, one of them writing; each once, and at once. */
static bool check_alias(void)
{
    struct rf_options options = plain_options();
    if (!present("alias"))
        return true;
    const struct oracle *o = truth(ORACLE_SHARED);
    uint64_t shown[TRACE_SITES + 1][TRACE_SITES + 1] = { { 0 } }; /* by the smaller and the larger site: the first number */
    for (uint32_t i = 0; i < o->access_count; i++) {
        const struct oracle_access *b = &o->accesses[i];
        const struct rf_event *second = o->nodes[b->node].event;
        for (uint32_t a = 0; a < b->node; a++) {
            const struct rf_event *first = o->nodes[a].event;
            if (!(oracle_has(b->writers, a) || (b->writes && oracle_has(b->reads, a))) || first->thread == second->thread)
                continue;
            uint32_t low = first->site < second->site ? first->site : second->site, high = first->site + second->site - low;
            if (!shown[low][high])
                shown[low][high] = second->number;
        }
    }
    struct answers got;
    answer(&got, "alias", &(struct manner){ .detector = present("alias"), .options = options });
    bool good = reports_hold(&got, ORACLE_SHARED, EARLIER);
    for (size_t i = 0; good && i < got.races.count; i++) {
        const struct rf_race *race = &got.races.list[i];
        uint32_t site = RF_UNKNOWN, other = race->second.site;
        for (uint32_t node = 0; node < o->node_count; node++)
            if (o->nodes[node].event->number == race->first.number && o->nodes[node].event->thread == race->first.thread)
                site = o->nodes[node].event->site;
        if (site == RF_UNKNOWN)
            good = wrong(got.label, "report at %llu: no first access", (unsigned long long)race->second.number);
        else if (shown[site < other ? site : other][site < other ? other : site] != race->second.number)
            good = wrong(got.label, "sites %u and %u are reported at %llu instead of %llu (0: never, or once too often)",
                         site, other, (unsigned long long)race->second.number,
                         (unsigned long long)shown[site < other ? site : other][site < other ? other : site]);
        else
            shown[site < other ? site : other][site < other ? other : site] = 0;
    }
    for (uint32_t low = 0; good && low <= TRACE_SITES; low++)
        for (uint32_t high = low; good && high <= TRACE_SITES; high++)
            if (shown[low][high])
                good = wrong(got.label, "sites %u and %u should be reported at %llu", low, high,
                             (unsigned long long)shown[low][high]);
    answer_end(&got);
    return good;
}

/* ---- what must not matter ---- */

static int by_place(const void *a, const void *b)
{
    const struct rf_race *x = a, *y = b;
    if (x->second.number != y->second.number)
        return x->second.number < y->second.number ? -1 : 1;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return (int)x->second.op - (int)y->second.op;
}

static bool same_reports(struct answers *a, struct answers *b)
{
    if (a->races.count)
        qsort(a->races.list, a->races.count, sizeof *a->races.list, by_place);
    if (b->races.count)
        qsort(b->races.list, b->races.count, sizeof *b->races.list, by_place);
    for (size_t i = 0; i < a->races.count || i < b->races.count; i++) {
        bool in_both = i < a->races.count && i < b->races.count;
        if (!in_both || by_place(&a->races.list[i], &b->races.list[i]) ||
            a->races.list[i].first.number != b->races.list[i].first.number) {
            const struct rf_race *race = i < a->races.count ? &a->races.list[i] : &b->races.list[i];
            return wrong(b->label, "%zu reports instead of %zu; they differ from the one at %llu on", b->races.count,
                         a->races.count, (unsigned long long)race->second.number);
        }
    }
    return true;
}

static bool check_ways_of_running(void)
{
    const struct rf_detector *detector = rf_detectors[subject.seed % rf_detector_count];
    struct manner manner = { .detector = detector, .options = plain_options() };
    manner.options.rate = subject.seed / rf_detector_count % 2 ? -1 : 0.5;
    manner.options.site_class = pair_class; /* of the pair that check_litehb() chose */
    struct answers whole, other;
    char label[96];
    answer(&whole, detector->name, &manner);
    snprintf(label, sizeof label, "%s, in batches", detector->name);
    manner.split = subject.seed + 1;
    answer(&other, label, &manner);
    bool good = same_reports(&whole, &other);
    answer_end(&other);
    if (good && detector->sharded && !has_op(RF_COPY)) { /* a copy may lead from one worker's share to another's */
        snprintf(label, sizeof label, "%s, three workers", detector->name);
        manner.shards = 3;
        answer(&other, label, &manner);
        good = same_reports(&whole, &other);
        answer_end(&other);
        manner.shards = 1;
    }
    if (good) {
        snprintf(label, sizeof label, "%s, one race a variable", detector->name);
        manner.one_a_variable = true;
        answer(&other, label, &manner);
        good = same_first_races(&whole, &other);
        answer_end(&other);
    }
    answer_end(&whole);
    return good;
}

/* ---- all of it ---- */

static bool check_trace(const struct trace *trace, uint64_t seed)
{
    subject.trace = trace;
    subject.seed = seed;
    subject.ops = trace_ops(trace->events, trace->count);
    subject.label[0] = 0;
    memset(subject.asked, 0, sizeof subject.asked);
    if (!check_generic(RF_TXN_SHARED) || !check_exact_family(RF_TXN_SHARED) || !check_lock_family() || !check_pacer() ||
        !check_samplers() || !check_litehb(seed / TRACE_SHAPES % 2) || !check_alias() || !check_ways_of_running())
        return false;
    bool all = seed / TRACE_SHAPES % 4 < 2;
    if (has_op(RF_COMMIT) && (all ? !check_generic(RF_TXN_ALL) || !check_exact_family(RF_TXN_ALL)
                                  : !check_generic(RF_TXN_WRITES) || !check_writes_family()))
        return false;
    return !(has_op(RF_VOLATILE_READ) && has_op(RF_VOLATILE_WRITE)) || check_volatile_as_lock();
}

struct failing {
    uint64_t seed;
    char label[96];
};

static bool still_fails(void *context, const struct trace *trace)
{
    const struct failing *failing = context;
    return !check_trace(trace, failing->seed) && !strcmp(subject.label, failing->label);
}

static void report_failure(struct trace *trace, const struct shape *shape, uint64_t seed)
{
    struct failing failing = { .seed = seed };
    snprintf(failing.label, sizeof failing.label, "%s", subject.label);
    fprintf(stderr, "seed %llu, shape \"%s\", %s: %s\nthe trace:\n", (unsigned long long)seed, shape->name, subject.label,
            subject.details);
    trace_print(stderr, trace);
    trace_shrink(trace, still_fails, &failing);
    check_trace(trace, seed);
    fprintf(stderr, "made smaller, %s: %s\n", subject.label, subject.details);
    trace_print(stderr, trace);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

#if defined(__SANITIZE_ADDRESS__)
#define TRACES 10000
#else
#define TRACES 100000
#endif

static void test_random_traces(void **state)
{
    (void)state;
    static struct trace trace;
    uint64_t traces = from_environment("RF_TRACES", TRACES), start = from_environment("RF_SEED", 1), failures = 0;
    for (uint64_t seed = start; seed < start + traces && failures < 5; seed++) {
        const struct shape *shape = &trace_shapes[seed % TRACE_SHAPES];
        trace_make(&trace, shape, seed);
        if (!check_trace(&trace, seed)) {
            report_failure(&trace, shape, seed);
            failures++;
        }
    }
    assert_int_equal(failures, 0);
}

/* Small traces that once showed a fault, each with all the turns that options take. */
static void test_found_before(void **state)
{
    (void)state;
    static const char *const texts[] = {
        /* commits share bytes, not whole accesses */
        "T1|commit(w:0x1046:2,0x1048:2)|s\nT0|commit(r:0x1089;w:0x1000:8,0x1044:3)|s\n",
        "T3|w(0x1000:8)|s\nT3|commit(r:0x1048:8)|s\nT1|commit(r:0x1000:8;w:0x1049:13)|s\n",
        /* a commit of nothing, where all commits are ordered */
        "T1|w(0x1008:8)|s\nT1|commit()|s\nT2|commit(w:0x1008:8)|s\n",
        /* the ranges of a copy overlap */
        "T2|w(0x1048:8)|s\nT0|copy(0x104d,0x1008:9)|s\nT1|copy(0x1005,0x1008:11)|s\nT0|r(0x100d:3)|s\n",
        /* a race on a part, and in a later life one on the whole */
        "T0|r(0x1048:8)|s\nT1|free(0x1048:4)|s\nT0|alloc(0x1043:16)|s\nT0|r(0x1048:8)|s\nT2|w(0x1048:8)|s\n",
        /* wide cells take over while a granule is split */
        "T5|r(0x1003:4)|s\nT1|fork(T6)|s\nT4|acq(l)|s\nT2|w(0x1000:8)|s\n",
        /* two transactions on one object, which was copied between them */
        "T2|commit(w:0x1040:8)|s\nT3|copy(0x1040,0x1008:8)|s\nT3|commit(r:0x1081:7;w:0x1008:8)|s\n",
        /* a thread that does nothing between its fork and its join */
        "T3|r(0x1008:8)|s\nT3|fork(T4)|s\nT2|join(T4)|s\nT2|w(0x1008:8)|s\n",
        /* LiteHB stops tracking inside a commit */
        ("T2|w(0x1008:8)|s1\nT1|commit(w:0x1008:8)|s1\nT2|commit(w:0x1003:13)|s3\nT1|commit(r:0x1000:8;w:0x1000:8)|s2\n"
         "T0|commit(w:0x1008:8,0x1008:8)|s1\nT0|r(0x1008:8)|s2\n"),
        /* a thread that was joined acts, after its slot was handed on; or is forked again */
        "T0|fork(T1)|s\nT0|join(T1)|s\nT0|fork(T2)|s\nT1|w(0x1008:8)|s\nT2|w(0x1008:8)|s\n",
        ("T0|fork(T1)|s\nT1|r(0x1008:8)|s\nT0|join(T1)|s\nT0|fork(T2)|s\nT2|r(0x1008:8)|s\nT0|fork(T1)|s\nT1|w(0x1000:8)|s\n"
         "T2|w(0x1000:8)|s\nT1|r(0x1008:8)|s\nT3|w(0x1008:8)|s\n"),
    };
    static struct trace trace;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        trace_parse(&trace, texts[i]);
        for (uint64_t seed = 0; seed < 64 * TRACE_SHAPES; seed++)
            if (!check_trace(&trace, seed))
                fail_msg("seed %llu, %s: %s, in\n%s", (unsigned long long)seed, subject.label, subject.details, texts[i]);
    }
}

/* A detector that is missing from the list would be promised nothing. */
static void test_all_are_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_names / sizeof all_names[0]; i++)
        if (!detector_named(all_names[i]))
            fail_msg("there is no detector named %s", all_names[i]);
    assert_int_equal(rf_detector_count, sizeof all_names / sizeof all_names[0]);
}

int main(void)
{
    /* Millions of replays ask for a piece of memory and give it back: keep it, the kernel takes longer than clearing it. */
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_there),
        cmocka_unit_test(test_found_before),
        cmocka_unit_test(test_random_traces),
    };
    int failed = cmocka_run_group_tests_name("properties", tests, NULL, NULL);
    for (size_t i = 0; i < ORDERS; i++)
        oracle_end(&subject.oracles[i]);
    return failed;
}
