/* The oracle on traces whose answers can be read off: one edge, or one rule, at a time. */
#include "tests/harness.h"
#include "tests/oracle.h"

static struct oracle oracle;
static struct trace trace;

/* The number of the first race on a byte, 0 if there is none. */
static uint64_t first_race(enum oracle_order order, const char *text, uint64_t addr)
{
    trace_parse(&trace, text);
    oracle_run(&oracle, trace.events, trace.count, order);
    uint32_t byte = oracle_byte(&oracle, addr);
    return byte == UINT32_MAX || oracle.first[byte] == ORACLE_NEVER ? 0 : oracle.first[byte];
}

#define FIRST(text) first_race(ORACLE_SHARED, text, RF_NAMED_BASE)

static void test_conflicts(void **state)
{
    (void)state;
    assert_int_equal(FIRST("A|w(x)|\nB|w(x)|\n"), 2);
    assert_int_equal(FIRST("A|w(x)|\nB|r(x)|\n"), 2);
    assert_int_equal(FIRST("A|r(x)|\nB|w(x)|\n"), 2);
    assert_int_equal(FIRST("A|r(x)|\nB|r(x)|\n"), 0);
    assert_int_equal(FIRST("A|w(x)|\nA|w(x)|\nB|r(y)|\n"), 0);
    assert_int_equal(FIRST("A|r(x)|\nB|r(x)|\nA|w(y)|\nA|w(x)|\nB|w(x)|\n"), 4);
}

static void test_locks(void **state)
{
    (void)state;
    assert_int_equal(FIRST("A|acq(l)|\nA|w(x)|\nA|rel(l)|\nB|acq(l)|\nB|w(x)|\nB|rel(l)|\n"), 0);
    assert_int_equal(FIRST("A|acq(l)|\nA|w(x)|\nA|rel(l)|\nB|acq(m)|\nB|w(x)|\nB|rel(m)|\n"), 5);
    assert_int_equal(FIRST("A|acq(l)|\nA|rel(l)|\nA|w(x)|\nB|acq(l)|\nB|w(x)|\nB|rel(l)|\n"), 5);
    /* every later acquire, not only the next */
    assert_int_equal(FIRST("A|w(x)|\nA|acq(l)|\nA|rel(l)|\nC|acq(l)|\nC|rel(l)|\nB|acq(l)|\nB|w(x)|\n"), 0);
    /* a reader's release orders writers alone */
    assert_int_equal(FIRST("A|w(x)|\nA|racq(l)|\nA|rrel(l)|\nB|acq(l)|\nB|w(x)|\n"), 0);
    assert_int_equal(FIRST("A|w(x)|\nA|racq(l)|\nA|rrel(l)|\nB|racq(l)|\nB|w(x)|\n"), 5);
    assert_int_equal(FIRST("A|w(x)|\nA|acq(l)|\nA|rel(l)|\nB|racq(l)|\nB|w(x)|\n"), 0);
}

static void test_other_edges(void **state)
{
    (void)state;
    assert_int_equal(FIRST("A|w(x)|\nA|fork(B)|\nB|w(x)|\n"), 0);
    assert_int_equal(FIRST("A|fork(B)|\nA|w(x)|\nB|w(x)|\n"), 3);
    assert_int_equal(FIRST("B|w(x)|\nA|join(B)|\nA|w(x)|\n"), 0);
    /* a thread that does nothing begins and ends, too */
    assert_int_equal(FIRST("A|w(x)|\nA|fork(C)|\nB|join(C)|\nB|w(x)|\n"), 0);
    assert_int_equal(FIRST("A|w(x)|\nA|vw(v)|\nB|vr(v)|\nB|w(x)|\n"), 0);
    assert_int_equal(FIRST("A|w(x)|\nA|vw(v)|\nB|vw(v)|\nB|w(x)|\n"), 4);
    assert_int_equal(FIRST("A|w(x)|\nA|vr(v)|\nB|vw(v)|\nB|w(x)|\n"), 4);
    assert_int_equal(FIRST("A|w(x)|\nA|sig(c)|\nB|wait(c)|\nB|w(x)|\n"), 0);
    assert_int_equal(FIRST("A|w(x)|\nB|wait(c)|\nA|sig(c)|\nB|w(x)|\n"), 4);
    /* name spaces are separate */
    assert_int_equal(FIRST("A|w(x)|\nA|sig(c)|\nB|vr(c)|\nB|acq(c)|\nB|w(x)|\n"), 5);
    /* a path of several edges */
    assert_int_equal(FIRST("A|w(x)|\nA|vw(v)|\nC|vr(v)|\nC|acq(l)|\nC|rel(l)|\nB|acq(l)|\nB|w(x)|\n"), 0);
}

static void test_barrier(void **state)
{
    (void)state;
    assert_int_equal(FIRST("A|w(x)|\nA|bar(b)|\nB|bar(b)|\nB|w(x)|\n"), 0);
    assert_int_equal(FIRST("A|w(x)|\nA|bar(b)|\nB|bar(b)|\nA|r(y)|\nC|bar(b)|\nC|w(x)|\n"), 6);
    assert_int_equal(FIRST("A|bar(b)|\nB|bar(b)|\nA|w(x)|\nB|w(x)|\n"), 4);
}

static void test_transactions(void **state)
{
    (void)state;
    const char *disjoint = "A|w(x)|\nA|commit(w:y)|\nB|commit(w:z)|\nB|w(x)|\n";
    const char *both_write = "A|w(x)|\nA|commit(w:y)|\nB|commit(w:y)|\nB|w(x)|\n";
    const char *write_read = "A|w(x)|\nA|commit(w:y)|\nB|commit(r:y)|\nB|w(x)|\n";
    const char *read_write = "A|w(x)|\nA|commit(r:y)|\nB|commit(w:y)|\nB|w(x)|\n";
    static const uint64_t expected[4][3] = { { 4, 0, 4 }, { 0, 0, 4 }, { 0, 0, 0 }, { 0, 0, 4 } };
    const char *texts[] = { disjoint, both_write, write_read, read_write };
    for (int i = 0; i < 4; i++)
        for (int order = ORACLE_SHARED; order <= ORACLE_WRITES; order++)
            assert_int_equal(first_race((enum oracle_order)order, texts[i], RF_NAMED_BASE), expected[i][order]);
    /* two transactions never race, one with a plain access may */
    for (int order = ORACLE_SHARED; order <= ORACLE_WRITES; order++) {
        assert_int_equal(first_race((enum oracle_order)order, "A|commit(w:x)|\nB|commit(w:x)|\n", RF_NAMED_BASE), 0);
        assert_int_equal(first_race((enum oracle_order)order, "A|commit(w:x)|\nB|w(x)|\n", RF_NAMED_BASE), 2);
    }
    /* variables are bytes: these two commits share four of them */
    assert_int_equal(first_race(ORACLE_SHARED, "A|w(0x40)|\nA|commit(w:0x10:8)|\nB|commit(r:0x14:4)|\nB|w(0x40)|\n", 0x40),
                     0);
}

static void test_bytes(void **state)
{
    (void)state;
    const char *text = "A|w(0x10:4)|\nB|w(0x12:4)|\n";
    for (uint64_t addr = 0x10; addr < 0x16; addr++)
        assert_int_equal(first_race(ORACLE_SHARED, text, addr), addr == 0x12 || addr == 0x13 ? 2 : 0);
    const char *wide = "A|w(0x1c:8)|\nB|r(0x20:16)|\n";
    for (uint64_t addr = 0x1c; addr < 0x30; addr++)
        assert_int_equal(first_race(ORACLE_SHARED, wide, addr), addr >= 0x20 && addr < 0x24 ? 2 : 0);
}

static void test_lives(void **state)
{
    (void)state;
    assert_int_equal(first_race(ORACLE_SHARED, "A|w(0x10:8)|\nB|alloc(0x10:8)|\nB|w(0x10:8)|\n", 0x10), 0);
    assert_int_equal(first_race(ORACLE_SHARED, "A|w(0x10:8)|\nB|free(0x10:4)|\nB|w(0x10:8)|\n", 0x10), 2);
    assert_int_equal(first_race(ORACLE_SHARED, "A|w(0x10:8)|\nB|free(0x10:4)|\nB|w(0x10:8)|\n", 0x14), 3);
    assert_int_equal(first_race(ORACLE_SHARED, "A|w(0x10:8)|\nA|free(0x10:8)|\nB|w(0x10:8)|\n", 0x10), 0);
    const char *copied = "A|w(0x10:8)|\nA|w(0x20:8)|\nA|alloc(0x20:8)|\nA|copy(0x10,0x20:8)|\nB|w(0x20:8)|\nB|w(0x10:8)|\n";
    assert_int_equal(first_race(ORACLE_SHARED, copied, 0x20), 5);
    assert_int_equal(first_race(ORACLE_SHARED, copied, 0x10), 6);
    const char *overwritten = "A|w(0x20:8)|\nA|copy(0x10,0x20:8)|\nB|w(0x20:8)|\n";
    assert_int_equal(first_race(ORACLE_SHARED, overwritten, 0x20), 0);
    /* overlapping, in both directions: the third byte of the target is the third of the source as it was */
    const char *up = "A|w(0x12)|\nA|copy(0x10,0x11:4)|\nB|w(0x13)|\nB|w(0x14)|\nB|w(0x12)|\n";
    assert_int_equal(first_race(ORACLE_SHARED, up, 0x13), 3);
    assert_int_equal(first_race(ORACLE_SHARED, up, 0x14), 0);
    assert_int_equal(first_race(ORACLE_SHARED, up, 0x12), 0);
    /* a copy of what had a race binds nobody */
    const char *tainted = "A|w(0x10)|\nB|w(0x10)|\nB|copy(0x10,0x20:1)|\nC|w(0x20)|\n";
    assert_int_equal(first_race(ORACLE_SHARED, tainted, 0x20), 4);
    assert_int_equal(oracle.clean[oracle_byte(&oracle, 0x20)], 3);
    assert_int_equal(oracle.clean[oracle_byte(&oracle, 0x10)], ORACLE_NEVER);
}

#define EMPTY(text) first_race(ORACLE_ACCU, text, RF_NAMED_BASE)

static void test_empty_set_races(void **state)
{
    (void)state;
    /* ordered only by a lock that protects neither: a race of another schedule */
    const char *lucky = "A|w(x)|\nA|acq(l)|\nA|rel(l)|\nB|acq(l)|\nB|rel(l)|\nB|w(x)|\n";
    assert_int_equal(FIRST(lucky), 0);
    assert_int_equal(EMPTY(lucky), 6);
    assert_int_equal(EMPTY("A|acq(l)|\nA|w(x)|\nA|rel(l)|\nB|acq(l)|\nB|w(x)|\n"), 0);
    assert_int_equal(EMPTY("A|acq(l)|\nA|w(x)|\nA|rel(l)|\nB|acq(m)|\nB|w(x)|\n"), 5);
    assert_int_equal(EMPTY("A|w(x)|\nA|fork(B)|\nB|w(x)|\n"), 0);
    /* held twice, released once: still held */
    assert_int_equal(EMPTY("A|acq(l)|\nA|acq(l)|\nA|rel(l)|\nA|w(x)|\nA|rel(l)|\nB|acq(l)|\nB|w(x)|\n"), 0);
    /* a read lock protects reads, not writes */
    assert_int_equal(EMPTY("A|acq(l)|\nA|w(x)|\nA|rel(l)|\nB|racq(l)|\nB|r(x)|\n"), 0);
    assert_int_equal(EMPTY("A|acq(l)|\nA|w(x)|\nA|rel(l)|\nB|racq(l)|\nB|w(x)|\n"), 5);
    assert_int_equal(EMPTY("A|racq(l)|\nA|r(x)|\nA|rrel(l)|\nB|acq(l)|\nB|w(x)|\n"), 0);
    /* transactions protect each other and nothing else */
    assert_int_equal(EMPTY("A|commit(w:x)|\nB|commit(w:x)|\n"), 0);
    assert_int_equal(EMPTY("A|commit(w:x)|\nB|acq(l)|\nB|w(x)|\n"), 3);
    assert_int_equal(EMPTY("A|w(x)|\nA|commit(w:y)|\nB|commit(w:y)|\nB|w(x)|\n"), 4);
    const char *volatiles = "A|w(x)|\nA|vw(v)|\nB|vr(v)|\nB|w(x)|\n";
    assert_int_equal(EMPTY(volatiles), 0);
    assert_int_equal(first_race(ORACLE_ACCU_VOLATILE, volatiles, RF_NAMED_BASE), 4);
    /* the three locks of a triangle protect each pair, though no lock protects all */
    assert_int_equal(
        EMPTY("A|acq(l)|\nA|acq(m)|\nA|w(x)|\nA|rel(l)|\nA|rel(m)|\nB|acq(m)|\nB|acq(n)|\nB|w(x)|\nB|rel(m)|\nB|rel(n)|\n"
              "C|acq(l)|\nC|acq(n)|\nC|w(x)|\n"),
        0);
}

struct count {
    uint32_t pairs, first_site, second_site;
};

static void count_pair(void *context, const struct oracle_access *second, const struct oracle_node *first)
{
    struct count *count = context;
    count->pairs++;
    count->first_site = first->event->site;
    count->second_site = oracle.nodes[second->node].event->site;
}

static void test_pairs(void **state)
{
    (void)state;
    struct count count = { 0 };
    assert_int_equal(FIRST("A|w(x)|one\nA|vw(v)|two\nB|w(x)|three\nC|vr(v)|two\nC|r(x)|four\n"), 3);
    oracle_pairs(&oracle, count_pair, &count);
    assert_int_equal(count.pairs, 16); /* lines 1 and 3, 3 and 5, on eight bytes */
    assert_true(oracle_races(&oracle, RF_NAMED_BASE, 1, 3));
    assert_true(oracle_races(&oracle, RF_NAMED_BASE, 3, 5));
    assert_false(oracle_races(&oracle, RF_NAMED_BASE, 1, 5));
    assert_true(oracle_met(&oracle, RF_NAMED_BASE, 1, 5));
    assert_false(oracle_met(&oracle, RF_NAMED_BASE, 2, 5));
    assert_int_equal(count.first_site, 3);
    assert_int_equal(count.second_site, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conflicts), cmocka_unit_test(test_locks),           cmocka_unit_test(test_other_edges),
        cmocka_unit_test(test_barrier),   cmocka_unit_test(test_transactions),    cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_lives),     cmocka_unit_test(test_empty_set_races), cmocka_unit_test(test_pairs),
    };
    int failed = cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
    oracle_end(&oracle);
    return failed;
}
