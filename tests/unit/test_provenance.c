/* First accesses of races in traces whose numbers do not fit the 28 bits that fasttrack keeps, or 32. */
#include "tests/unit/trace_files.h"

#include "replay/analysis.h"

enum { X = 0x1000, Y = 0x2000 };

struct line {
    uint64_t number;
    uint32_t thread;
    enum rf_op op;
    uint64_t addr;
};

/* Writes the lines, each with its place as its site, and expects one race on X between two of them. */
static void expect_race(const struct line *lines, uint32_t count, uint32_t first, uint32_t second)
{
    char path[] = "/tmp/redflag-test-XXXXXX", name[16], *error = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct rf_writer *writer = rf_writer_open(path, RF_FORMAT_RFT, &error);
    assert_non_null(writer);
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "T%u", i);
        rf_writer_thread(writer, i, name);
    }
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "s%u", i);
        rf_writer_site(writer, i + 1, name);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct rf_event event = { .addr = lines[i].addr,
                                  .thread = lines[i].thread,
                                  .site = i + 1,
                                  .number = (uint32_t)lines[i].number,
                                  .size = RF_GRANULE,
                                  .op = lines[i].op & 0xff };
        rf_writer_event(writer, lines[i].number, &event);
    }
    assert_true(rf_writer_close(writer, &error));

    const struct rf_detector *detector = rf_detector_find("fasttrack", 9);
    struct rf_plan plan = { .detectors = &detector, .detector_count = 1, .jobs = 1, .options = { .rate = -1 } };
    struct rf_report report;
    assert_int_equal(rf_analyse(path, &plan, &report, &error), RF_TRACE_END);
    assert_null(error);
    assert_int_equal(report.results[0].races.count, 1);
    const struct rf_race *race = &report.results[0].races.list[0];
    assert_int_equal(race->addr, X);
    assert_int_equal(race->first.number, lines[first].number);
    assert_int_equal(race->first.site, first + 1);
    assert_int_equal(race->first.thread, lines[first].thread);
    assert_int_equal(race->first.op, lines[first].op);
    assert_int_equal(race->second.number, lines[second].number);
    assert_int_equal(race->second.site, second + 1);
    rf_analysis_end(&report);
    unlink(path);
}

/* Whatever later event has the same bits: another variable, another kind, another thread, or the second access itself. */
static void same_bits(const uint64_t step)
{
    const struct line variable[] = { { 5, 0, RF_WRITE, X }, { step + 5, 1, RF_WRITE, Y }, { step + 9, 2, RF_WRITE, X } };
    expect_race(variable, 3, 0, 2);
    const struct line kind[] = { { 5, 0, RF_WRITE, X }, { step + 5, 0, RF_READ, X }, { 3 * step + 9, 2, RF_READ, X } };
    expect_race(kind, 3, 0, 2);
    const struct line sync[] = { { 5, 0, RF_READ, X }, { step + 5, 0, RF_ACQUIRE, X }, { step + 9, 2, RF_WRITE, X } };
    expect_race(sync, 3, 0, 2);
    const struct line thread[] = {
        { 5, 0, RF_READ, X }, { 6, 0, RF_FORK, 1 }, { step + 5, 1, RF_READ, X }, { 2 * step + 4, 2, RF_WRITE, X }
    };
    expect_race(thread, 4, 2, 3);
    const struct line itself[] = { { 5, 0, RF_WRITE, X }, { step + 5, 2, RF_WRITE, X } };
    expect_race(itself, 2, 0, 1);
}

static void test_same_bits(void **state)
{
    (void)state;
    same_bits(UINT64_C(1) << 28);
    same_bits(UINT64_C(1) << 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_bits) };
    return cmocka_run_group_tests_name("provenance", tests, NULL, NULL);
}
