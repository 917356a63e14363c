/* Generic, DJIT+, LockSet, Eraser and MultiRace against their definitions, over random traces. */
#include "tests/unit/classic_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "replay/replay.h"

static const char *const names[DETECTORS] = { "generic", "djit", "lockset", "eraser", "multirace" };

static void show(const struct model *m)
{
    for (int i = 0; i < m->n; i++)
        fprintf(stderr, "%2d: T%u %s(%#llx) size %u op %u\n", i, m->e[i].thread, rf_op_text((enum rf_op)m->e[i].op),
                (unsigned long long)m->e[i].addr, m->e[i].size, m->e[i].op);
}

static void replay_trace(struct rf_replay *replay, const struct model *m, int detector, uint32_t time_limit, uint32_t shard,
                         uint32_t shards)
{
    struct rf_options options = { .transactions = m->mode, .time_limit = time_limit };
    const struct rf_detector *d = rf_detector_find(names[detector], strlen(names[detector]));
    assert_non_null(d);
    rf_replay_begin(replay, d, &options, true, shard, shards);
    struct rf_event events[MAX];
    struct rf_batch batch = { .events = events, .base = 1 };
    for (int i = 0; i < m->n; i++) {
        if (m->e[i].op <= RF_WRITE && rf_shard_of(m->e[i].addr, shards) != shard) /* the driver shares accesses out */
            continue;
        events[batch.count++] = m->e[i];
        batch.ops |= 1u << m->e[i].op;
    }
    d->run(replay, &batch);
}

/* The earlier side that a report names: it must be one that the definition allows, at every byte of the report. */
static bool names_rightly(const struct model *m, int detector, const struct rf_race *race)
{
    int i = (int)race->second.number - 1, a = (int)race->first.number - 1;
    bool clocks = detector != LOCKSET && detector != ERASER;
    if (race->predictive == clocks)
        return false;
    for (uint32_t k = 0; k < race->size; k++) {
        int b = byte_of(race->addr) + (int)k;
        uint64_t allowed = clocks ? m->racing[i][b] : m->conflicting[i][b];
        if (!allowed && a == -1 && race->first.thread == RF_UNKNOWN)
            continue;
        if (a < 0 || !(allowed >> a & 1) || race->first.thread != m->e[a].thread ||
            (race->first.op == RF_WRITE) != writes(m, a))
            return false;
    }
    return race->second.thread == m->e[i].thread;
}

static uint64_t reported[DETECTORS];

static void check_trace(const struct model *m, int detector, uint32_t time_limit, uint64_t seed)
{
    struct rf_replay replay;
    uint32_t got[MAX] = { 0 };
    replay_trace(&replay, m, detector, time_limit, 0, 1);
    bool right = true;
    for (size_t r = 0; r < replay.races.count; r++) {
        const struct rf_race *race = &replay.races.list[r];
        got[race->second.number - 1] |= ((1u << race->size) - 1) << byte_of(race->addr);
        if (!names_rightly(m, detector, race)) {
            fprintf(stderr, "%s: event %d names event %d\n", names[detector], (int)race->second.number - 1,
                    (int)race->first.number - 1);
            right = false;
        }
    }
    for (int i = 0; i < m->n; i++) {
        reported[detector] += got[i] != 0;
        if (got[i] != m->want[detector][i]) {
            fprintf(stderr, "%s: event %d reported at bytes %x, not %x\n", names[detector], i, got[i], m->want[detector][i]);
            right = false;
        }
    }
    if (!right) {
        show(m);
        fail_msg("seed %llu, transactions %d, time limit %u", (unsigned long long)seed, m->mode, time_limit);
    }
    rf_replay_end(&replay);
}

static void every_detector_says_what_its_definition_says(void **state)
{
    (void)state;
    static struct model m;
    const char *count = getenv("RF_TRACES"), *start = getenv("RF_SEED");
    uint64_t traces = count ? strtoull(count, NULL, 10) : 25000, first = start ? strtoull(start, NULL, 10) : 1;
    static const uint32_t time_limits[] = { 0, 0, 3, 7 };
    for (uint64_t seed = first; seed < first + traces; seed++) {
        random_trace(&m, seed);
        evaluate(&m);
        for (int detector = 0; detector < DETECTORS; detector++)
            check_trace(&m, detector, time_limits[seed % 4], seed);
    }
    for (int detector = 0; detector < DETECTORS && traces > 1000; detector++)
        assert_true(reported[detector] > traces / 10); /* not nothing compared with nothing */
}

/* What the detectors promise of each other, on what the test above has tied them to. */
static void the_detectors_contain_each_other(void **state)
{
    (void)state;
    static struct model m;
    for (uint64_t seed = 1; seed < 20000; seed++) {
        random_trace(&m, seed);
        evaluate(&m);
        uint32_t generic = 0, djit = 0;
        for (int i = 0; i < m.n; i++) {
            assert_int_equal(m.want[GENERIC][i] & ~m.want[LOCKSET][i], 0);
            assert_int_equal(m.want[ERASER][i] & ~m.want[LOCKSET][i], 0);
            assert_int_equal(m.want[MULTIRACE][i] & ~m.want[DJIT][i], 0);
            assert_int_equal(m.want[DJIT][i] & ~m.want[GENERIC][i], 0);
            if (m.copies) /* a copy brings races of another variable along: its first race is not the target's */
                continue;
            assert_int_equal(m.want[GENERIC][i] & ~generic, m.want[DJIT][i] & ~djit & ~generic);
            generic |= m.want[GENERIC][i];
            djit |= m.want[DJIT][i];
        }
    }
}

static void workers_find_what_one_finds(void **state)
{
    (void)state;
    static struct model m;
    for (uint64_t seed = 1; seed < 400; seed++) {
        random_trace(&m, seed);
        if (m.copies)
            continue;
        for (int detector = 0; detector < DETECTORS; detector++) {
            size_t together = 0;
            struct rf_replay replay;
            for (uint32_t shard = 0; shard < 3; shard++) {
                replay_trace(&replay, &m, detector, 0, shard, 3);
                together += replay.races.count;
                rf_replay_end(&replay);
            }
            replay_trace(&replay, &m, detector, 0, 0, 1);
            assert_int_equal(together, replay.races.count);
            rf_replay_end(&replay);
        }
    }
}

/* A variable that begins a new life gives its records back: memory does not grow with the number of lives. */
static void cleared_cells_give_their_memory_back(void **state)
{
    (void)state;
    static struct model m;
    for (int detector = 0; detector < DETECTORS; detector++) {
        size_t bytes[2];
        for (int round = 0; round < 2; round++) {
            struct rf_replay replay;
            memset(&m, 0, sizeof m);
            for (uint32_t t = 0; t < 3; t++) {
                event_add(&m, RF_WRITE, t, address_of(0), 8);
                event_add(&m, RF_READ, t, address_of(4), 4);
                event_add(&m, RF_READ, t, address_of(17), 1);
            }
            event_add(&m, RF_COPY, 0, address_of(0), 8);
            event_add(&m, RF_COPY_TO, 0, address_of(8), 8);
            event_add(&m, RF_ALLOC, 0, address_of(0), 16);
            event_add(&m, RF_FREE, 0, address_of(16), 8);
            replay_trace(&replay, &m, detector, 0, 0, 1);
            struct rf_batch batch = { .events = m.e, .count = (size_t)m.n, .base = 1 };
            for (int again = 0; again < 100 * round; again++)
                replay.detector->run(&replay, &batch);
            bytes[round] = replay.memory.bytes;
            rf_replay_end(&replay);
        }
        assert_int_equal(bytes[0], bytes[1]);
    }
}

static void count_statistic(void *context, const char *name, uint64_t value)
{
    assert_true(name[0] && value < 1000);
    *(int *)context += 1;
}

static void statistics_are_small_numbers_after_a_small_trace(void **state)
{
    (void)state;
    static struct model m;
    random_trace(&m, 3);
    for (int detector = 0; detector < DETECTORS; detector++) {
        struct rf_replay replay;
        int count = 0;
        replay_trace(&replay, &m, detector, 0, 0, 1);
        replay.detector->statistics(&replay, count_statistic, &count);
        assert_true(count >= 3);
        rf_replay_end(&replay);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_detector_says_what_its_definition_says),
        cmocka_unit_test(the_detectors_contain_each_other),
        cmocka_unit_test(workers_find_what_one_finds),
        cmocka_unit_test(cleared_cells_give_their_memory_back),
        cmocka_unit_test(statistics_are_small_numbers_after_a_small_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
