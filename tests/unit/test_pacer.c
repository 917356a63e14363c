/* PACER and the samplers: the figures of the paper, the guarantee against the oracle, and the rates.
 *
 * 1. Which events are sampled is worked out here, from the marks in the trace by their definition, or by running the
 *    sampler alone.
 * 2. Every report must be a race whose first access was sampled. An access is never missed before the first report on its
 *    byte, if the last access that races with it was sampled.                              (Theorems 3 and 2)
 * 3. Seeds are fixed: what passes once passes always.
 */
#include <math.h>

#include "detect/pacer.h"
#include "sample/literace.h"
#include "sample/periods.h"
#include "tests/harness.h"
#include "tests/oracle.h"

#define TRACES 24000

static struct trace trace;
static struct oracle oracle;
static bool sampled[TRACE_EVENTS + 1]; /* by the place of an event in the trace */

/* ---- what is sampled ---- */

static void sampled_by_marks(void)
{
    bool sampling = true; /* no mark at all: everything */
    for (size_t i = trace.count; i-- > 0;)
        if (trace.events[i].op == RF_SAMPLE_BEGIN || trace.events[i].op == RF_SAMPLE_END)
            sampling = trace.events[i].op == RF_SAMPLE_END; /* at last, the first one: what came before it */
    for (size_t i = 0; i < trace.count; i++) {
        if (trace.events[i].op == RF_SAMPLE_BEGIN || trace.events[i].op == RF_SAMPLE_END)
            sampling = trace.events[i].op == RF_SAMPLE_BEGIN;
        sampled[i] = sampling;
    }
}

static void sampled_by_rate(const struct rf_options *options)
{
    struct periods sampler = { 0 };
    periods_init(&sampler, &(struct rf_engine){ .options = options });
    bool sampling = false;
    for (size_t i = 0, group; i < trace.count; i += group) {
        group = trace_group(&trace.events[i]);
        for (enum rf_op turn; (turn = periods_turn(&sampler, &trace.events[i])) != RF_OP_COUNT;)
            sampling = turn == RF_SAMPLE_BEGIN;
        for (size_t part = 0; part < group; part++)
            sampled[i + part] = sampling;
    }
}

/* ---- the guarantee ---- */

static void give_up(const char *who, uint64_t seed, const char *what, uint64_t addr, uint64_t number)
{
    trace_print(stderr, &trace);
    fail_msg("%s, seed %llu: %s: 0x%llx at %llu", who, (unsigned long long)seed, what, (unsigned long long)addr,
             (unsigned long long)number);
}

static bool was_sampled(uint64_t number)
{
    for (size_t i = 0; i < trace.count; i++)
        if (trace.events[i].number == number && sampled[i])
            return true;
    return false;
}

static bool last_racing_is_sampled(const struct oracle_access *access)
{
    for (uint32_t node = access->node; node-- > 0;)
        if (oracle_has(access->races, node))
            return sampled[oracle.nodes[node].event - trace.events];
    return false;
}

static void check_guarantee(const char *who, uint64_t seed, const struct rf_races *races)
{
    static uint64_t reported[ORACLE_BYTES];
    bool copies = trace_ops(trace.events, trace.count) >> RF_COPY & 1;
    for (uint32_t byte = 0; byte < oracle.granule_count * RF_GRANULE; byte++)
        reported[byte] = copies ? oracle.clean[byte] : ORACLE_NEVER; /* a copy brings a past that may have been reported */
    for (size_t i = 0; i < races->count; i++)
        for (uint64_t addr = races->list[i].addr; addr < races->list[i].addr + races->list[i].size; addr++) {
            const struct rf_race *race = &races->list[i];
            uint64_t *first = &reported[oracle_byte(&oracle, addr)];
            *first = race->second.number < *first ? race->second.number : *first;
            if (!oracle_races(&oracle, addr, race->first.number, race->second.number))
                give_up(who, seed, "what is reported is no race", addr, race->second.number);
            if (!was_sampled(race->first.number))
                give_up(who, seed, "the first access was not sampled", addr, race->second.number);
        }
    for (uint32_t i = 0; i < oracle.access_count; i++) {
        const struct oracle_access *access = &oracle.accesses[i];
        uint64_t number = oracle.nodes[access->node].event->number;
        if (number < reported[access->byte] && last_racing_is_sampled(access))
            give_up(who, seed, "a sampled race is missed", oracle_addr(&oracle, access->byte), number);
    }
}

static bool same_races(const struct rf_races *a, const struct rf_races *b)
{
    size_t found = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            if (a->list[i].addr == b->list[j].addr && a->list[i].second.number == b->list[j].second.number &&
                a->list[i].second.op == b->list[j].second.op && a->list[i].first.number == b->list[j].first.number) {
                found++;
                break;
            }
    return found == a->count && a->count == b->count;
}

static void test_guarantee(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        uint64_t random = seed * 17;
        struct manner manner = { .detector = detector_named("pacer") };
        manner.options = (struct rf_options){ .rate = -1, .seed = seed };
        manner.options.transactions = seed % 2 ? RF_TXN_SHARED : RF_TXN_ALL;
        manner.options.time_limit = random_below(&random, 3) ? 0 : 4 + random_below(&random, 5);
        manner.split = random_below(&random, 2) * seed;
        trace_make(&trace, &trace_shapes[seed % TRACE_SHAPES], seed);
        oracle_run(&oracle, trace.events, trace.count, seed % 2 ? ORACLE_SHARED : ORACLE_ALL);
        sampled_by_marks();
        struct rf_races races = run_detector(&manner, &trace);
        check_guarantee("periods of the trace", seed, &races);
        rf_races_free(&races);
        manner.options.rate = random_below(&random, 5) / 4.0;
        manner.options.period = 1 + random_below(&random, 12);
        sampled_by_rate(&manner.options);
        races = run_detector(&manner, &trace);
        check_guarantee("periods of the sampler", seed, &races);
        if (!(trace_ops(trace.events, trace.count) >> RF_COPY & 1)) {
            manner.shards = 3;
            struct rf_races shared_out = run_detector(&manner, &trace);
            if (!same_races(&races, &shared_out))
                give_up("three workers", seed, "not the same races", 0, 0);
            rf_races_free(&shared_out);
        }
        rf_races_free(&races);
    }
    oracle_end(&oracle);
}

/* ---- figures ---- */

static struct rf_races races_of(const char *text, double rate)
{
    struct manner manner = { .detector = detector_named("pacer"), .options = { .rate = rate } };
    trace_parse(&trace, text);
    return run_detector(&manner, &trace);
}

/* x is read by T2 in the sampling period; the edge by m orders T1's write after it, so that T1's write ends the tracking
 * of x, and the race of the two writes of x is not sampled. y is written by T2 in the sampling period, and T3's read
 * races with that. */
static const char figure_1[] = "T2|sbegin()|0\n"
                               "T2|w(y)|1\n"
                               "T2|r(x)|2\n"
                               "T2|acq(m)|3\nT2|rel(m)|4\n"
                               "T2|send()|0\n"
                               "T1|acq(m)|5\nT1|w(x)|6\nT1|rel(m)|7\n"
                               "T3|r(y)|8\n"
                               "T3|w(x)|9\n";

static void test_figure_1(void **state)
{
    (void)state;
    struct rf_races races = races_of(figure_1, -1);
    assert_int_equal(races.count, 1);
    assert_int_equal(races.list[0].first.number, 2);
    assert_int_equal(races.list[0].first.op, RF_WRITE);
    assert_int_equal(races.list[0].second.number, 10);
    rf_races_free(&races);
    /* Sampled as a whole, it shows the race on x, too: of the two writes, as FastTrack has it. */
    races = races_of(figure_1, 1);
    assert_int_equal(races.count, 2);
    assert_int_equal(races.list[1].first.number, 8);
    assert_int_equal(races.list[1].second.number, 11);
    rf_races_free(&races);
    races = races_of(figure_1, 0);
    assert_int_equal(races.count, 0);
    rf_races_free(&races);
}

/* What is found before the first sbegin is taken back; without any, it stays. */
static void test_before_the_first_mark(void **state)
{
    (void)state;
    struct rf_races races = races_of("T1|w(x)|1\nT2|w(x)|2\n", -1);
    assert_int_equal(races.count, 1);
    rf_races_free(&races);
    races = races_of("T1|w(x)|1\nT2|w(x)|2\nT1|w(y)|3\nT1|sbegin()|0\nT2|w(y)|4\nT3|r(x)|5\nT3|r(y)|6\n", -1);
    assert_int_equal(races.count, 1);
    assert_int_equal(races.list[0].first.number, 5);
    assert_int_equal(races.list[0].second.number, 7);
    rf_races_free(&races);
}

/* Reads outside of sampling periods discard what FastTrack would have replaced (Table 4, rules 2 and 3): a write that
 * races with a sampled read is not reported if a later read, which was not sampled, races with it, too. */
static void test_reads_discard(void **state)
{
    (void)state;
    struct rf_races races = races_of("T1|sbegin()|0\nT1|r(x)|1\nT1|acq(m)|2\nT1|rel(m)|3\nT1|send()|0\n"
                                     "T2|acq(m)|4\nT2|r(x)|5\nT3|w(x)|6\n",
                                     -1);
    assert_int_equal(races.count, 0);
    rf_races_free(&races);
    static const char shared[] = "T1|sbegin()|0\nT1|r(x)|1\nT2|r(x)|2\nT1|vw(a)|3\nT2|vw(b)|4\nT1|send()|0\n"
                                 "T1|r(x)|5\n%sT3|w(x)|7\n";
    char text[256];
    snprintf(text, sizeof text, shared, "T2|r(x)|6\n");
    races = races_of(text, -1);
    assert_int_equal(races.count, 0);
    rf_races_free(&races);
    snprintf(text, sizeof text, shared, ""); /* T2's read is the last one of T2, and stays */
    races = races_of(text, -1);
    assert_int_equal(races.count, 1);
    assert_int_equal(races.list[0].first.number, 3);
    rf_races_free(&races);
}

static void *pieces(size_t bytes)
{
    void *piece = calloc(1, bytes);
    assert_non_null(piece);
    return piece;
}

static void give_back(void *piece, size_t bytes)
{
    (void)bytes;
    free(piece);
}

struct engine {
    struct rf_memory memory;
    struct rf_options options;
    struct pc pacer;
};

static void engine_begin(struct engine *e)
{
    *e = (struct engine){ .memory = { .pieces = pieces, .give_back = give_back } };
    e->pacer.engine.memory = &e->memory;
    e->pacer.engine.options = &e->options;
    pc_init(&e->pacer);
}

static void engine_do(struct engine *e, uint32_t thread, enum rf_op op, uint64_t addr)
{
    struct rf_event event = { .op = op & 0xff, .thread = thread, .addr = addr };
    pc_sync(&e->pacer, pc_thread_at(&e->pacer, thread), &event);
}

static struct pc_object *object(struct engine *e, int space, uint64_t key)
{
    return &pc_sync_at(&e->pacer.clocks, space, key)->released;
}

enum { M, L };

/* Outside of sampling periods: T3 releases m and l, which share its clock; T2's acquire of m is a join, that of l is not. */
static void test_figure_2(void **state)
{
    (void)state;
    struct engine e;
    engine_begin(&e);
    struct pc_thread *t2 = pc_thread_at(&e.pacer, 2), *t3 = pc_thread_at(&e.pacer, 3);
    const struct pc_clock_counts *counts = &e.pacer.clocks.counts[0];
    engine_do(&e, 3, RF_SAMPLE_BEGIN, RF_FROM_SAMPLER); /* so that there is something to know of T3 */
    engine_do(&e, 3, RF_SAMPLE_END, RF_FROM_SAMPLER);
    engine_do(&e, 3, RF_ACQUIRE, M);
    engine_do(&e, 3, RF_RELEASE, M);
    engine_do(&e, 3, RF_ACQUIRE, L);
    engine_do(&e, 3, RF_RELEASE, L);
    assert_ptr_equal(object(&e, RF_SPACE_LOCK, M)->clock, t3->clock);
    assert_ptr_equal(object(&e, RF_SPACE_LOCK, L)->clock, t3->clock);
    assert_int_equal(t3->clock->holders, 3);
    assert_int_equal(object(&e, RF_SPACE_LOCK, M)->version, pc_version(t3));
    assert_int_equal(object(&e, RF_SPACE_LOCK, L)->version, pc_version(t3));
    assert_int_equal(counts->shallow_copies, 2);
    assert_int_equal(counts->slow_joins, 0);
    uint32_t version = pc_version(t2);
    uint64_t fast = counts->fast_joins;
    engine_do(&e, 2, RF_ACQUIRE, M);
    assert_int_equal(counts->slow_joins, 1);
    assert_int_equal(pc_version(t2), version + 1);
    assert_int_equal(rf_clock_get(&t2->versions, t3->slot), pc_version(t3));
    assert_true(pc_leq(t2, t3->epoch));
    engine_do(&e, 2, RF_ACQUIRE, L);
    assert_int_equal(counts->slow_joins, 1);
    assert_int_equal(counts->fast_joins, fast + 1);
    assert_int_equal(pc_version(t2), version + 1);
    /* Time goes on: T3 takes a clone, the locks keep what they have. */
    rf_epoch before = t3->epoch;
    engine_do(&e, 3, RF_SAMPLE_BEGIN, RF_FROM_SAMPLER);
    assert_int_equal(t3->clock->holders, 1);
    assert_ptr_equal(object(&e, RF_SPACE_LOCK, M)->clock, object(&e, RF_SPACE_LOCK, L)->clock);
    assert_int_equal(rf_clock_get(&object(&e, RF_SPACE_LOCK, M)->clock->times, t3->slot), rf_epoch_time(before));
    assert_true(t3->epoch > before);
    engine_do(&e, 3, RF_RELEASE, L); /* a deep copy now */
    assert_int_equal(e.pacer.clocks.counts[1].deep_copies, 1);
    assert_int_equal(object(&e, RF_SPACE_LOCK, L)->clock->holders, 1);
    assert_false(pc_leq(t2, before + 2));
    rf_memory_end(&e.memory);
}

/* Algorithm 16: a writer that knows what the volatile hands on replaces it, another joins it, and leaves it without a
 * version. */
static void test_volatiles(void **state)
{
    (void)state;
    struct engine e;
    engine_begin(&e);
    struct pc_thread *t1 = pc_thread_at(&e.pacer, 1), *t2 = pc_thread_at(&e.pacer, 2), *t3 = pc_thread_at(&e.pacer, 3);
    struct pc_object *v = object(&e, RF_SPACE_VOLATILE, 7);
    engine_do(&e, 1, RF_SAMPLE_BEGIN, RF_FROM_SAMPLER);
    engine_do(&e, 1, RF_SAMPLE_END, RF_FROM_SAMPLER);
    engine_do(&e, 1, RF_VOLATILE_WRITE, 7);
    assert_ptr_equal(v->clock, t1->clock);
    assert_int_equal(v->version, pc_version(t1));
    engine_do(&e, 2, RF_VOLATILE_WRITE, 7); /* T2 knows nothing of T1 */
    assert_int_equal(v->version, PC_NO_VERSION);
    assert_ptr_not_equal(v->clock, t1->clock);
    assert_false(pc_leq(t2, t1->epoch));
    engine_do(&e, 3, RF_VOLATILE_READ, 7);
    assert_true(pc_leq(t3, t1->epoch) && pc_leq(t3, t2->epoch));
    engine_do(&e, 3, RF_VOLATILE_WRITE, 7); /* T3 knows all of it */
    assert_ptr_equal(v->clock, t3->clock);
    assert_int_equal(v->version, pc_version(t3));
    rf_memory_end(&e.memory);
}

/* ---- rates ---- */

#define LONG 2000u
#define PERIOD 40u

static struct rf_event access_at(uint32_t number, uint32_t thread, uint64_t addr, enum rf_op op)
{
    return (struct rf_event){ .number = number, .thread = thread, .addr = addr, .size = 8, .op = op & 0xff };
}

/* T1 and T2 take turns with a lock, more often in some places than in others; at `at` T1 writes x, at the end T2 does. */
static size_t planted(struct rf_event *events, uint32_t at)
{
    uint64_t random = 99;
    size_t count = 0;
    for (uint32_t number = 1; number <= LONG; number++) {
        uint32_t thread = 1 + number / 2 % 2; /* acquire and release stay together */
        enum rf_op op = number % 2 ? RF_RELEASE : RF_ACQUIRE;
        struct rf_event event = { .number = number, .thread = thread, .addr = 5, .op = op & 0xff };
        bool quiet = random_below(&random, 100) < 50;
        if (number == at || number == LONG)
            event = access_at(number, number == at ? 1 : 2, 0x1000, RF_WRITE);
        else if (quiet || number > at - 4) /* no edge leads from the one to the other */
            event = access_at(number, thread, 0x2000 + 64 * thread, RF_READ);
        events[count++] = event;
    }
    return count;
}

static uint64_t detections(const struct rf_event *events, size_t count, double rate, uint32_t runs, double *work)
{
    uint64_t found = 0;
    const struct rf_batch batch = { .events = events, .count = count, .base = 1, .ops = trace_ops(events, count) };
    *work = 0;
    for (uint64_t seed = 1; seed <= runs; seed++) {
        struct rf_options options = { .rate = rate, .period = PERIOD, .seed = seed };
        struct rf_replay replay;
        rf_replay_begin(&replay, detector_named("pacer"), &options, true, 0, 1);
        replay.detector->run(&replay, &batch);
        found += replay.races.count;
        assert_true(replay.races.count <= 1);
        rf_replay_end(&replay);
        struct periods sampler = { 0 };
        periods_init(&sampler, &(struct rf_engine){ .options = &options });
        for (size_t i = 0; i < count; i++)
            while (periods_turn(&sampler, &events[i]) != RF_OP_COUNT)
                ;
        *work += (double)sampler.work[1] / (double)(sampler.work[0] + sampler.work[1]) / runs;
    }
    return found;
}

/* A race is found with the probability that its first access is sampled, which is the rate. */
static void test_rate(void **state)
{
    (void)state;
    static const double rates[] = { 0.01, 0.1, 0.5 };
    static struct rf_event events[LONG];
    static const uint32_t places[] = { 700, 1900 };
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        for (size_t j = 0; j < sizeof places / sizeof places[0]; j++) {
            uint32_t runs = 8000;
            double work, r = rates[i], error = sqrt(r * (1 - r) / runs);
            size_t count = planted(events, places[j]);
            double rate = (double)detections(events, count, r, runs, &work) / runs;
            if (fabs(rate - r) > 4 * error)
                fail_msg("rate %g: a race was found in %g of the runs, %g standard errors off", r, rate, (rate - r) / error);
            if (fabs(work - r) > 0.05 * r + 4 * error)
                fail_msg("rate %g: %g of the synchronisation was sampled", r, work);
        }
}

/* ---- LiteRace ---- */

static uint32_t function_of(void *names, uint32_t site)
{
    (void)names;
    return site / 10;
}

static uint64_t run_of(struct literace *sampler, struct rf_event *event, bool looked)
{
    uint64_t length = 0;
    while (literace_look(sampler, event) == looked)
        length++;
    return length + 1; /* the one that ended it belongs to the next run, whose first it is */
}

static void test_literace(void **state)
{
    (void)state;
    struct rf_memory memory = { .pieces = pieces, .give_back = give_back };
    struct rf_options options = { .burst = 10, .seed = 3, .function_of = function_of };
    struct rf_engine engine = { .memory = &memory, .options = &options };
    struct literace sampler = { 0 };
    literace_init(&sampler, &engine);
    struct rf_event hot = { .thread = 1, .site = 11 }, twin = { .thread = 1, .site = 19 };
    struct rf_event other = { .thread = 2, .site = 11 };
    assert_int_equal(run_of(&sampler, &hot, true), 11); /* ten are looked at, the next one is not */
    assert_false(literace_look(&sampler, &twin));       /* the same function */
    uint64_t skipped = 1;
    static const uint64_t means[] = { 90, 990, 9990, 9990, 9990 };
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++) {
        skipped += run_of(&sampler, &hot, false);
        assert_in_range(skipped, means[i] / 2, means[i] + means[i] / 2 + 1);
        for (int left = 9; left; left--) /* with the one that ended the run, ten */
            assert_true(literace_look(&sampler, &hot));
        skipped = 0;
    }
    for (int i = 0; i < 10; i++) /* another thread is cold */
        assert_true(literace_look(&sampler, &other));
    assert_false(literace_look(&sampler, &other));
    rf_memory_end(&memory);
}

/* Whatever is looked at, only races are reported; and with bursts that never end, all first ones. */
static void test_literace_is_precise(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TRACES / 4; seed++) {
        struct manner manner = { .detector = detector_named("literace") };
        manner.options = (struct rf_options){ .seed = seed, .burst = 1 + seed % 4 };
        trace_make(&trace, &trace_shapes[seed % TRACE_SHAPES], seed);
        oracle_run(&oracle, trace.events, trace.count, ORACLE_SHARED);
        struct rf_races races = run_detector(&manner, &trace);
        for (size_t i = 0; i < races.count; i++)
            if (!oracle_races(&oracle, races.list[i].addr, races.list[i].first.number, races.list[i].second.number))
                give_up("literace", seed, "what is reported is no race", races.list[i].addr, races.list[i].second.number);
        rf_races_free(&races);
        manner.options.burst = 1000000;
        races = run_detector(&manner, &trace);
        manner.detector = detector_named("fasttrack");
        struct rf_races all = run_detector(&manner, &trace);
        if (!same_races(&all, &races))
            give_up("literace", seed, "with endless bursts it is not fasttrack", 0, 0);
        rf_races_free(&races);
        rf_races_free(&all);
    }
    oracle_end(&oracle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guarantee),     cmocka_unit_test(test_figure_1), cmocka_unit_test(test_before_the_first_mark),
        cmocka_unit_test(test_reads_discard), cmocka_unit_test(test_figure_2), cmocka_unit_test(test_volatiles),
        cmocka_unit_test(test_rate),          cmocka_unit_test(test_literace), cmocka_unit_test(test_literace_is_precise)
    };
    return cmocka_run_group_tests_name("pacer and samplers", tests, NULL, NULL);
}
