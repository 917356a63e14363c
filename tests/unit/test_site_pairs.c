/* litehb and alias, which answer for pairs of sites, against the oracle.
 *
 * 1. litehb keeps all that matters, so every access at the second site is checked, first race or not, for Lite and for Full.
 * 2. alias must find each pair exactly once, and both its accesses must have touched the location.
 */
#include "tests/harness.h"
#include "tests/oracle.h"

#define TRACES 24000

struct pair {
    uint32_t first, second;
};

static uint32_t class_of(void *names, uint32_t site)
{
    const struct pair *pair = names;
    return (site == pair->first ? 1u : 0) | (site == pair->second ? 2u : 0);
}

static struct trace trace;
static struct oracle oracle;

static void give_up(const char *who, uint64_t seed, const char *what, uint64_t addr, uint64_t number)
{
    trace_print(stderr, &trace);
    fail_msg("%s, seed %llu: %s: 0x%llx at %llu", who, (unsigned long long)seed, what, (unsigned long long)addr,
             (unsigned long long)number);
}

static uint32_t site_of(uint32_t node)
{
    return oracle.nodes[node].event->site;
}

/* ---- litehb ---- */

static bool races_with_first(const struct oracle_access *access, const struct pair *pair)
{
    if (site_of(access->node) != pair->second)
        return false;
    for (uint32_t node = 0; node < access->node; node++)
        if (oracle_has(access->races, node) && site_of(node) == pair->first)
            return true;
    return false;
}

static bool reported(const struct rf_races *races, uint64_t addr, uint64_t number)
{
    for (size_t i = 0; i < races->count; i++)
        if (races->list[i].second.number == number && addr - races->list[i].addr < races->list[i].size)
            return true;
    return false;
}

static void check_litehb(const char *who, uint64_t seed, const struct manner *manner, const struct pair *pair)
{
    struct rf_races races = run_detector(manner, &trace);
    static bool expected[ORACLE_BYTES][ORACLE_NODES];
    memset(expected, 0, oracle.granule_count * RF_GRANULE * sizeof expected[0]);
    for (uint32_t i = 0; i < oracle.access_count; i++)
        if (races_with_first(&oracle.accesses[i], pair))
            expected[oracle.accesses[i].byte][oracle.nodes[oracle.accesses[i].node].event->number] = true;
    for (uint32_t byte = 0; byte < oracle.granule_count * RF_GRANULE; byte++)
        for (uint64_t number = 1; number <= trace.lines; number++)
            if (expected[byte][number] && !reported(&races, oracle_addr(&oracle, byte), number))
                give_up(who, seed, "a race is missed", oracle_addr(&oracle, byte), number);
    for (size_t i = 0; i < races.count; i++)
        for (uint64_t addr = races.list[i].addr; addr < races.list[i].addr + races.list[i].size; addr++) {
            const struct rf_race *race = &races.list[i];
            if (!expected[oracle_byte(&oracle, addr)][race->second.number])
                give_up(who, seed, "what is reported is no race", addr, race->second.number);
            if (!oracle_races(&oracle, addr, race->first.number, race->second.number))
                give_up(who, seed, "the first access does not race", addr, race->first.number);
        }
    rf_races_free(&races);
}

static void test_litehb(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        const struct shape *shape = &trace_shapes[seed % TRACE_SHAPES];
        uint64_t random = seed * 31;
        struct pair pair = { 1 + random_below(&random, shape->sites), 1 + random_below(&random, shape->sites) };
        enum rf_transactions transactions = (enum rf_transactions)random_below(&random, 3);
        struct manner manner = { .detector = detector_named("litehb") };
        manner.options = (struct rf_options){ .transactions = transactions, .site_class = class_of, .names = &pair };
        trace_make(&trace, shape, seed);
        oracle_run(&oracle, trace.events, trace.count, (enum oracle_order)transactions);
        check_litehb("LiteHB", seed, &manner, &pair);
        manner.split = seed;
        manner.options.full = true;
        check_litehb("FullHB", seed, &manner, &pair);
        if (trace_ops(trace.events, trace.count) >> RF_COPY & 1)
            continue;
        manner.shards = 3;
        manner.options.full = false;
        check_litehb("LiteHB, three workers", seed, &manner, &pair);
    }
    oracle_end(&oracle);
}

struct counted {
    const char *name;
    uint64_t value;
};

static void take(void *context, const char *name, uint64_t value)
{
    struct counted *counted = context;
    if (!strcmp(counted->name, name))
        counted->value = value;
}

static uint64_t statistic(const struct rf_options *options, const char *name)
{
    struct rf_replay replay;
    struct counted counted = { name, UINT64_MAX };
    rf_replay_begin(&replay, detector_named("litehb"), options, true, 0, 1);
    run_batches(&replay, trace.events, trace.count, 0);
    replay.detector->statistics(&replay, take, &counted);
    rf_replay_end(&replay);
    return counted.value;
}

/* Tracking starts at s1 (the 4th synchronisation is the first one tracked) and ends when the other thread has caught up. */
static void test_litehb_is_light(void **state)
{
    (void)state;
    trace_parse(&trace, "T1|fork(T2)|a\nT1|acq(l)|a\nT1|rel(l)|a\n"
                        "T1|w(x)|s1\n"
                        "T1|acq(l)|a\nT1|rel(l)|a\nT2|acq(l)|a\n"
                        "T2|rel(l)|a\nT2|r(x)|s2\nT1|acq(l)|a\nT1|rel(l)|a\n");
    uint32_t first = trace.events[3].site, second = trace.events[8].site;
    struct pair pair = { first, second };
    struct rf_options options = { .site_class = class_of, .names = &pair };
    assert_int_equal(statistic(&options, "synchronisations tracked"), 3);
    assert_int_equal(statistic(&options, "synchronisations not tracked"), 6);
    assert_int_equal(statistic(&options, "tracking started"), 1);
    options.full = true;
    assert_int_equal(statistic(&options, "synchronisations tracked"), 9);
    options = (struct rf_options){ 0 }; /* no pair: nothing to do */
    assert_int_equal(statistic(&options, "synchronisations tracked"), 0);
}

/* The second time, too: who caught up with all of the first stretch need not do so again. */
static void test_litehb_is_light_again(void **state)
{
    (void)state;
    static const char stretch[] = "T1|w(x)|s1\nT1|acq(%s)|a\nT1|rel(%s)|a\nT2|acq(%s)|a\n"
                                  "T2|rel(%s)|a\nT2|r(x)|s2\nT1|acq(%s)|a\nT1|rel(%s)|a\n";
    char text[400] = "T1|fork(T2)|a\n"; /* another lock the second time: nobody learns of the past from it */
    for (const char *const *lock = (const char *const[]){ "l", "m", NULL }; *lock; lock++)
        snprintf(text + strlen(text), sizeof text - strlen(text), stretch, *lock, *lock, *lock, *lock, *lock, *lock);
    trace_parse(&trace, text);
    struct pair pair = { trace.events[1].site, trace.events[6].site };
    struct rf_options options = { .site_class = class_of, .names = &pair };
    assert_int_equal(statistic(&options, "tracking started"), 2);
    assert_int_equal(statistic(&options, "synchronisations tracked"), 6);
    assert_int_equal(statistic(&options, "synchronisations not tracked"), 7);
}

/* ---- alias ---- */

static void check_alias(uint64_t seed, const struct manner *manner)
{
    static bool expected[TRACE_SITES + 1][TRACE_SITES + 1];
    memset(expected, 0, sizeof expected);
    for (uint32_t i = 0; i < oracle.access_count; i++) {
        const struct oracle_access *access = &oracle.accesses[i];
        for (uint32_t node = 0; node < access->node; node++) {
            bool conflicts = oracle_has(access->writers, node) || (access->writes && oracle_has(access->reads, node));
            if (conflicts && oracle.nodes[node].event->thread != oracle.nodes[access->node].event->thread)
                expected[site_of(node)][site_of(access->node)] = expected[site_of(access->node)][site_of(node)] = true;
        }
    }
    struct rf_races races = run_detector(manner, &trace);
    for (size_t i = 0; i < races.count; i++) {
        const struct rf_race *race = &races.list[i];
        uint32_t first = 0;
        for (size_t at = 0; at < trace.count; at++)
            if (trace.events[at].number == race->first.number)
                first = trace.events[at].site;
        if (!expected[first][race->second.site])
            give_up("alias", seed, "a pair that is none, or was found before", race->addr, race->second.number);
        expected[first][race->second.site] = expected[race->second.site][first] = false;
        if (!oracle_met(&oracle, race->addr, race->first.number, race->second.number))
            give_up("alias", seed, "the first access was not there", race->addr, race->second.number);
        if (race->first.op != RF_WRITE && !rf_op_writes(race->second.op))
            give_up("alias", seed, "nobody writes", race->addr, race->second.number);
        assert_true(race->predictive);
    }
    rf_races_free(&races);
    for (uint32_t a = 0; a <= TRACE_SITES; a++)
        for (uint32_t b = 0; b <= TRACE_SITES; b++)
            if (expected[a][b])
                give_up("alias", seed, "a pair of sites is missed", a, b);
}

static void test_alias(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct manner manner = { .detector = detector_named("alias"), .split = seed % 3, .one_a_variable = seed % 2 };
        trace_make(&trace, &trace_shapes[seed % TRACE_SHAPES], seed);
        oracle_run(&oracle, trace.events, trace.count, ORACLE_SHARED);
        check_alias(seed, &manner);
    }
    oracle_end(&oracle);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_litehb), cmocka_unit_test(test_litehb_is_light),
                                        cmocka_unit_test(test_litehb_is_light_again), cmocka_unit_test(test_alias) };
    return cmocka_run_group_tests_name("pairs of sites", tests, NULL, NULL);
}
