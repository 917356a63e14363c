/* Goldilocks: the paper's examples, its locksets step by step, and random traces against the oracle. */
#define GL_SEGMENT 4u
#define GL_NEAR 1u
#define GL_WORTH 2u
#include "detect/goldilocks.h"
#include "sample/always.h"
#include "tests/harness.h"
#include "tests/oracle.h"

/* The same text once more with tiny constants, so that short traces fill segments and keep what they computed. */
#define NAME goldilocks_tiny
#define SUMMARY "goldilocks with tiny constants"
#define SHARDED 1
#define X gl
#define S always
#include "replay/instance.inc"

static struct oracle oracle;
static struct trace trace;

static struct manner goldilocks(enum rf_transactions transactions, uint32_t event_list, bool eager)
{
    return (struct manner){ .detector = detector_named("goldilocks"),
                            .options = { .transactions = transactions, .event_list = event_list, .eager = eager } };
}

/* ---- the examples of section 2 ---- */

/* The races of a text, in all three evaluations; each must name the events `first` and `second`, 0 if there is none. */
static void expect(const char *text, uint64_t first, uint64_t second)
{
    trace_parse(&trace, text);
    for (int way = 0; way < 3; way++) {
        struct manner manner = goldilocks(RF_TXN_SHARED, way == 1 ? 1 : 0, way == 2);
        manner.one_a_variable = true;
        struct rf_races races = run_detector(&manner, &trace);
        assert_int_equal(races.count, second != 0);
        if (second) {
            assert_int_equal(races.list[0].first.number, first);
            assert_int_equal(races.list[0].second.number, second);
            assert_false(races.list[0].predictive);
        }
        rf_races_free(&races);
    }
}

static void test_example_1(void **state)
{
    (void)state;
    /* close() has set m_writer to null when run() comes to line 10 */
    expect("Main|w(m_writer)|\nMain|w(m_isConnectionClosed)|\nMain|fork(Run)|\nMain|fork(Close)|\n"
           "Close|acq(this)|\nClose|r(m_isConnectionClosed)|\nClose|w(m_isConnectionClosed)|\nClose|rel(this)|\n"
           "Close|w(m_request)|\nClose|w(m_writer)|\nClose|w(m_reader)|\nRun|r(m_writer)|\n",
           10, 12);
    /* joined before, all is well */
    expect("Main|w(m_writer)|\nMain|fork(Run)|\nRun|r(m_writer)|\nMain|join(Run)|\nMain|fork(Close)|\nClose|w(m_writer)|\n",
           0, 0);
}

static const char example_2[] = "T1|w(data)|\nT1|acq(ma)|\nT1|w(a)|\nT1|rel(ma)|\n"
                                "T2|acq(ma)|\nT2|r(a)|\nT2|rel(ma)|\nT2|acq(mb)|\nT2|w(b)|\nT2|rel(mb)|\n"
                                "T3|acq(mb)|\nT3|w(data)|\nT3|r(b)|\nT3|rel(mb)|\nT3|w(data)|\n";
static const char example_3[] = "T1|w(data)|\nT1|commit(r:head;w:nxt,head)|\nT2|commit(r:head,nxt;w:data)|\n"
                                "T3|commit(r:head,nxt;w:head)|\nT3|r(data)|\nT3|w(data)|\n";

static void test_example_2(void **state)
{
    (void)state;
    expect(example_2, 0, 0);
}

static void test_example_3(void **state)
{
    (void)state;
    expect(example_3, 0, 0);
}

static void test_example_4(void **state)
{
    (void)state;
    /* Thread 2's lock does not order it with the transaction */
    expect("T1|commit(r:savings,checking;w:savings,checking)|\nT2|acq(c)|\nT2|r(checking)|\nT2|w(checking)|\nT2|rel(c)|\n",
           1, 3);
}

/* A transactional read whose check was waived, since it met a transactional write from elsewhere, says nothing for later
 * reads. */
static void test_waived(void **state)
{
    (void)state;
    expect("A|commit(w:0x1000:8)|\nA|copy(0x1000,0x2000:8)|\nB|commit(r:0x2000:8)|\nB|r(0x2000:8)|\n", 1, 4);
}

/* ---- Figures 6 and 7 ---- */

static void *test_pieces(size_t bytes)
{
    void *piece = calloc(1, bytes);
    assert_non_null(piece);
    return piece;
}

static void test_give_back(void *piece, size_t bytes)
{
    (void)bytes;
    free(piece);
}

/* A detector without its driver, so that its locksets can be looked at. */
struct bare {
    struct rf_memory memory;
    struct rf_options options;
    struct gl detector;
    struct gl_cell cells[8];
    int races;
};

static void bare_begin(struct bare *bare, bool eager, uint32_t event_list)
{
    memset(bare, 0, sizeof *bare);
    bare->memory = (struct rf_memory){ .pieces = test_pieces, .give_back = test_give_back };
    bare->options = (struct rf_options){ .eager = eager, .event_list = event_list };
    bare->detector.engine.memory = &bare->memory;
    bare->detector.engine.options = &bare->options;
    gl_init(&bare->detector);
}

static void bare_access(struct bare *bare, const struct rf_event *event)
{
    struct gl_thread *t = gl_thread_at(&bare->detector, event->thread);
    struct gl_cell *cell = &bare->cells[(event->addr - RF_NAMED_BASE) / RF_GRANULE];
    bare->races += rf_op_writes((enum rf_op)event->op) ? gl_write(&bare->detector, t, cell, 0, event->number)
                                                       : gl_read(&bare->detector, t, cell, 0, event->number);
}

/* One event, with its parts; returns how many those are. */
static size_t bare_step(struct bare *bare, const struct rf_event *event)
{
    struct gl_thread *t = gl_thread_at(&bare->detector, event->thread);
    if (event->op == RF_READ || event->op == RF_WRITE)
        bare_access(bare, event);
    else
        gl_sync(&bare->detector, t, event);
    if (event->op != RF_COMMIT)
        return 1;
    for (uint32_t i = 1; i <= event->size; i++)
        bare_access(bare, &event[i]);
    gl_commit_end(&bare->detector, t, event);
    return 1 + event->size;
}

/* The write lockset of the first variable after each event is as the figure has it: "12ab" is {T1, T2, lock 0, lock 1}, X
 * to Z are the first variables of the trace, * is TL. */
static void expect_locksets(const char *text, const char *const *locksets)
{
    static struct bare bare;
    trace_parse(&trace, text);
    bare_begin(&bare, true, 0);
    for (size_t i = 0, line = 0; i < trace.count; line++) {
        i += bare_step(&bare, &trace.events[i]);
        const struct gle_set *set = &bare.detector.sets[bare.cells[0].write];
        uint32_t wanted = 0;
        for (const char *c = locksets[line]; *c; c++) {
            uint64_t variable = RF_NAMED_BASE + RF_GRANULE * (uint64_t)(*c - 'X');
            bool is_variable = *c >= 'X' && *c <= 'Z';
            for (uint32_t byte = 0; byte < (is_variable ? RF_GRANULE : 1); byte++, wanted++)
                assert_true(is_variable ? gle_has(set, GL_BYTE, variable + byte)
                            : *c == '*' ? gle_has(set, GL_TL, 0)
                            : *c >= 'a' ? gle_has(set, GL_LOCK, trace.events[*c == 'a' ? 1 : 7].addr)
                                        : gle_has(set, GL_THREAD, (uint64_t)(*c - '1')));
        }
        assert_int_equal(set->count, wanted);
    }
    assert_int_equal(bare.races, 0);
    rf_memory_end(&bare.memory);
}

static void test_figure_6(void **state)
{
    (void)state;
    static const char *const locksets[] = { "1",   "1",    "1",     "1a", "12a", "12a", "12a", "12a",
                                            "12a", "12ab", "123ab", "3",  "3",   "3b",  "3" };
    expect_locksets(example_2, locksets);
}

static void test_figure_7(void **state)
{
    (void)state;
    /* X is o.data, Y &head, Z o.nxt */
    static const char *const locksets[] = { "1", "1YZ", "2*XYZ", "23*XYZ", "23*XYZ", "3" };
    expect_locksets(example_3, locksets);
}

/* ---- random traces ---- */

/* The number of the first race at each byte, as reported. */
static void first_reports(uint64_t *first, const struct rf_races *races)
{
    for (uint32_t i = 0; i < ORACLE_BYTES; i++)
        first[i] = ORACLE_NEVER;
    for (size_t i = 0; i < races->count; i++)
        for (uint32_t k = 0; k < races->list[i].size; k++) {
            uint32_t byte = oracle_byte(&oracle, races->list[i].addr + k);
            if (byte != UINT32_MAX && first[byte] > races->list[i].second.number)
                first[byte] = races->list[i].second.number;
        }
}

/* A report that is not the first on its byte may name what it likes; the first names a race. */
static bool names_a_race(const struct rf_race *race, const uint64_t *first)
{
    for (uint32_t k = 0; k < race->size; k++) {
        uint32_t byte = oracle_byte(&oracle, race->addr + k);
        bool binding = first[byte] == race->second.number && race->second.number < oracle.clean[byte];
        if (binding && !oracle_races(&oracle, race->addr + k, race->first.number, race->second.number))
            return false;
    }
    return !race->predictive && race->first.thread != race->second.thread;
}

static bool wrong(void *context, const struct trace *candidate)
{
    const struct manner *manner = context;
    enum rf_transactions transactions = manner->options.transactions;
    oracle_run(&oracle, candidate->events, candidate->count,
               transactions == RF_TXN_SHARED ? ORACLE_SHARED
               : transactions == RF_TXN_ALL  ? ORACLE_ALL
                                             : ORACLE_WRITES);
    struct rf_races races = run_detector(manner, candidate);
    uint64_t first[ORACLE_BYTES];
    first_reports(first, &races);
    bool bad = false;
    for (uint32_t byte = 0; byte < ORACLE_BYTES && transactions != RF_TXN_WRITES; byte++) {
        uint64_t clean = oracle.clean[byte];
        bad |= (first[byte] < clean ? first[byte] : clean) != (oracle.first[byte] < clean ? oracle.first[byte] : clean);
    }
    for (size_t i = 0; i < races.count; i++)
        bad |= !names_a_race(&races.list[i], first);
    rf_races_free(&races);
    return bad;
}

static void check_shape(const struct shape *shape, uint64_t seeds)
{
    uint64_t raced = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        trace_make(&trace, shape, seed);
        for (int way = 0; way < 5; way++) {
            static const uint32_t lists[] = { 0, 4, 0, 1, 30 };
            enum rf_transactions transactions = (enum rf_transactions)((seed + (uint64_t)way) % 3);
            if (!shape->commit)
                transactions = RF_TXN_SHARED;
            struct manner manner = goldilocks(transactions, lists[way], way == 2);
            manner.split = way == 0 ? seed : 0;
            /* A copy may lead from one worker's share to another's: the driver gives such a trace to one. */
            bool moves = trace_ops(trace.events, trace.count) & 1u << RF_COPY;
            manner.shards = way == 4 && !moves ? 3 : 1;
            if ((seed + (uint64_t)way) % 2)
                manner.detector = &rf_detector_goldilocks_tiny;
            if (wrong(&manner, &trace)) {
                trace_shrink(&trace, wrong, &manner);
                trace_print(stderr, &trace);
                fail_msg("shape %s, seed %llu, transactions %d, event list %u, eager %d, shards %u", shape->name,
                         (unsigned long long)seed, transactions, lists[way], manner.options.eager, manner.shards);
            }
            for (uint32_t byte = 0; way == 0 && byte < ORACLE_BYTES; byte++)
                raced += oracle.first[byte] != ORACLE_NEVER;
        }
    }
    assert_true(raced > seeds / 8); /* or the traces would tell nothing */
}

static void test_random(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRACE_SHAPES; i++)
        check_shape(&trace_shapes[i], trace_shapes[i].lines > 100 ? 300 : 2000);
}

/* So much synchronisation that locksets are computed in several goes, and kept in between. */
static void test_random_long(void **state)
{
    (void)state;
    static const struct shape shape = { .name = "long",
                                        .roots = 4,
                                        .threads = 9,
                                        .lines = 700,
                                        .locks = 8,
                                        .lines_of_memory = 3,
                                        .sites = 8,
                                        .partial = 5,
                                        .named = 10,
                                        .writes = 20,
                                        .lock = 150,
                                        .read_lock = 80,
                                        .release = 330,
                                        .fork = 10,
                                        .join = 3,
                                        .vol = 120,
                                        .signal = 60,
                                        .barrier = 20,
                                        .alloc = 3,
                                        .free = 3,
                                        .copy = 4,
                                        .commit = 20 };
    check_shape(&shape, 150);
}

static void statistic(void *context, const char *name, uint64_t value)
{
    uint64_t *values = context;
    static const char *const names[] = { "short circuit: same thread",
                                         "short circuit: lock",
                                         "short circuit: transaction",
                                         "short circuit: two threads",
                                         "lockset already computed",
                                         "full traversals",
                                         "events enqueued",
                                         "events discarded",
                                         "longest list",
                                         "partially eager evaluations" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            values[i] = value;
}

/* Each short circuit, where it is the one that applies. */
static void test_short_circuits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int statistic;
    } cases[] = {
        { "A|w(x)|\nA|w(x)|\n", 0 },
        { "A|acq(l)|\nA|w(x)|\nA|rel(l)|\nB|acq(l)|\nB|w(x)|\nB|rel(l)|\n", 1 },
        { "A|r(y)|\nA|acq(l)|\nA|w(x)|\nA|rel(l)|\nB|acq(l)|\nB|w(x)|\nB|rel(l)|\n", 1 },
        { "A|racq(l)|\nA|r(x)|\nA|rrel(l)|\nB|acq(l)|\nB|w(x)|\nB|rel(l)|\n", 1 },
        { "A|commit(w:x)|\nB|commit(w:x)|\n", 2 },
        { "A|w(x)|\nA|vw(v)|\nB|vr(v)|\nB|w(x)|\n", 3 },
        { "A|w(x)|\nA|vw(v)|\nC|vr(v)|\nC|vw(u)|\nB|vr(u)|\nB|w(x)|\n", 5 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct rf_replay replay;
        uint64_t values[10] = { 0 };
        struct manner manner = goldilocks(RF_TXN_SHARED, 0, false);
        trace_parse(&trace, cases[i].text);
        rf_replay_begin(&replay, manner.detector, &manner.options, true, 0, 1);
        run_batches(&replay, trace.events, trace.count, 0);
        assert_int_equal(replay.races.count, 0);
        manner.detector->statistics(&replay, statistic, values);
        for (int s = 0; s < 6; s++)
            assert_int_equal(values[s], s == cases[i].statistic);
        rf_replay_end(&replay);
    }
}

/* ---- memory ---- */

static struct rf_event event_of(enum rf_op op, uint32_t thread, uint64_t addr)
{
    return (struct rf_event){ .op = op & 0xff, .thread = thread, .addr = addr, .size = RF_GRANULE };
}

/* What is forgotten orders nothing, and its element is used again. */
static void test_forget(void **state)
{
    (void)state;
    static struct bare bare;
    bare_begin(&bare, false, 100);
    struct rf_event write = event_of(RF_WRITE, 0, RF_NAMED_BASE);
    bare_step(&bare, &write);
    for (uint64_t round = 0; round < 10000; round++) {
        struct rf_event events[] = { event_of(RF_SIGNAL, 0, round), event_of(RF_FORGET, 0, round),
                                     event_of(RF_WAIT, 1, round) };
        for (int i = 0; i < 3; i++)
            bare_step(&bare, &events[i]);
    }
    assert_true(bare.detector.element_count < 300);
    write.thread = 1;
    bare_step(&bare, &write);
    assert_int_equal(bare.races, 1);
    rf_memory_end(&bare.memory);
}

/* Two accesses that differ only in the locks that were held become one info when the list is trimmed: it names no locks. */
static void test_blurred(void **state)
{
    (void)state;
    static struct bare bare;
    static struct gl_cell x, y;
    bare_begin(&bare, false, 4);
    struct gl_thread *a = gl_thread_at(&bare.detector, 0);
    struct rf_event locks[] = { event_of(RF_ACQUIRE, 0, 1), event_of(RF_ACQUIRE, 0, 2), event_of(RF_RELEASE, 0, 2),
                                event_of(RF_RELEASE, 0, 1) };
    gl_sync(&bare.detector, a, &locks[0]);
    gl_write(&bare.detector, a, &x, 0, 1);
    gl_sync(&bare.detector, a, &locks[1]);
    gl_write(&bare.detector, a, &y, 0, 2);
    gl_sync(&bare.detector, a, &locks[2]);
    gl_sync(&bare.detector, a, &locks[3]);
    for (uint64_t i = 0; i < 10; i++) {
        struct rf_event signal = event_of(RF_SIGNAL, 2, i);
        gl_sync(&bare.detector, gl_thread_at(&bare.detector, 2), &signal);
    }
    assert_true(gl_read(&bare.detector, gl_thread_at(&bare.detector, 1), &x, 0, 3));
    assert_int_equal(bare.detector.engine.first.locks, RF_ALL_LOCKS);
    assert_true(gl_read(&bare.detector, gl_thread_at(&bare.detector, 1), &y, 0, 4));
    assert_int_equal(bare.detector.engine.first.locks, RF_ALL_LOCKS);
    rf_memory_end(&bare.memory);
}

/* Old variables, some with several readers, hold on to nothing, however long the trace gets. */
static void test_bounded_memory(void **state)
{
    (void)state;
    static struct bare bare;
    bare_begin(&bare, false, 1000);
    static struct gl_cell old[4000], hot[16];
    size_t bytes = 0;
    uint64_t random = 1;
    for (uint32_t round = 0; round < 200000; round++) {
        uint32_t thread = random_below(&random, 4);
        struct gl_thread *t = gl_thread_at(&bare.detector, thread);
        struct rf_event acquire = event_of(RF_ACQUIRE, thread, random_below(&random, 8)), release = acquire;
        release.op = RF_RELEASE;
        if (random_below(&random, 8) == 0) {
            acquire = event_of(RF_VOLATILE_READ, thread, acquire.addr);
            release.op = RF_VOLATILE_WRITE;
        }
        gl_sync(&bare.detector, t, &acquire);
        if (round < 4000)
            gl_write(&bare.detector, t, &old[round], 0, round);
        else if (round < 8000)
            gl_read(&bare.detector, t, &old[round - 4000], 0, round);
        gl_write(&bare.detector, t, &hot[acquire.addr], 0, round);
        gl_sync(&bare.detector, t, &release);
        assert_true(bare.detector.tail - bare.detector.head <= 1000);
        if (round == 20000)
            bytes = bare.memory.bytes;
    }
    assert_true(bytes > 0 && bare.memory.bytes <= bytes + bytes / 8);
    const struct gl_counts *counts = &bare.detector.counts;
    assert_int_equal(counts->enqueued - counts->discarded, bare.detector.tail - bare.detector.head);
    assert_int_equal(counts->longest, 1000);
    for (uint32_t i = 0; i < 4000; i++)
        gl_clear(&bare.detector, &old[i]);
    for (uint32_t i = 0; i < 16; i++)
        gl_clear(&bare.detector, &hot[i]);
    for (uint32_t i = 0; i < 4; i++)
        gl_info_end(&bare.detector, gl_thread_at(&bare.detector, i));
    uint32_t unused = 0; /* every info was given back */
    for (uint32_t i = bare.detector.unused_infos; i; i = bare.detector.infos[i].next)
        unused++;
    assert_int_equal(unused, bare.detector.info_count - 1);
    rf_memory_end(&bare.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example_1),      cmocka_unit_test(test_example_2),      cmocka_unit_test(test_example_3),
        cmocka_unit_test(test_example_4),      cmocka_unit_test(test_figure_6),       cmocka_unit_test(test_figure_7),
        cmocka_unit_test(test_waived),         cmocka_unit_test(test_short_circuits), cmocka_unit_test(test_random),
        cmocka_unit_test(test_random_long),    cmocka_unit_test(test_forget),         cmocka_unit_test(test_blurred),
        cmocka_unit_test(test_bounded_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_end(&oracle);
    return failed;
}
