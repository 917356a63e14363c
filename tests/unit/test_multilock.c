/* MultiLock-HB and Hybrid: the paper's examples, and the definition of ∅-races with every access kept. */
#include "detect/hybrid.h"
#include "tests/model.h"

/* ---- the values that section 3.5 quotes ---- */

/* An engine with one variable; locks are called 1 and 2, threads 1 and 2. */
struct bench {
    struct rf_memory memory;
    struct rf_options options;
    struct ml d;
    struct ml_cell x;
};

static struct bench *bench_begin(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof b);
    b.memory = (struct rf_memory){ .pieces = test_pieces, .give_back = test_give_back };
    b.d.engine.memory = &b.memory;
    b.d.engine.options = &b.options;
    ml_init(&b.d);
    return *state = &b;
}

static int bench_end(void **state)
{
    struct bench *b = *state;
    rf_memory_end(&b->memory);
    return 0;
}

static void sync_event(struct bench *b, uint32_t thread, enum rf_op op, uint64_t addr)
{
    struct rf_event event = { .addr = addr, .thread = thread, .op = op & 0xff };
    ml_sync(&b->d, ml_thread_at(&b->d, thread), &event);
}

static bool reads(struct bench *b, uint32_t thread)
{
    return ml_read(&b->d, ml_thread_at(&b->d, thread), &b->x, 0, 0);
}

static bool writes(struct bench *b, uint32_t thread)
{
    return ml_write(&b->d, ml_thread_at(&b->d, thread), &b->x, 0, 0);
}

/* Some pair has this thread, this time and exactly these locks; 0 ends the list. */
static bool has_pair(struct bench *b, struct rf_pairs *pairs, uint32_t thread, uint32_t time, uint64_t one, uint64_t two)
{
    struct rf_locksets *table = &b->d.rules.accu.locksets;
    rf_lockset wanted = RF_NO_LOCKS;
    if (one)
        wanted = rf_lockset_add(table, wanted, rf_lock_number(table, one));
    if (two)
        wanted = rf_lockset_add(table, wanted, rf_lock_number(table, two));
    for (uint32_t i = 0; i < pairs->count; i++) {
        struct rf_held_epoch pair = rf_pairs_list(pairs)[i];
        if (rf_order_owner(&b->d.rules.accu.order, pair.epoch) == thread && rf_epoch_time(pair.epoch) == time &&
            pair.locks == wanted)
            return true;
    }
    return false;
}

static void test_section_3_5_figure_2c(void **state)
{
    struct bench *b = bench_begin(state);
    for (uint64_t key = 2; key >= 1; key--) {
        sync_event(b, 1, RF_ACQUIRE, key);
        reads(b, 1);
        sync_event(b, 1, RF_RELEASE, key);
    }
    assert_int_equal(b->x.reads.count, 2);
    assert_true(has_pair(b, &b->x.reads, 1, 1, 2, 0));
    assert_true(has_pair(b, &b->x.reads, 1, 1, 1, 0));
    sync_event(b, 2, RF_ACQUIRE, 1);
    assert_true(writes(b, 2));
    assert_int_equal(b->d.engine.first.thread, 1);
}

static void test_section_3_5_figure_7(void **state)
{
    struct bench *b = bench_begin(state);
    sync_event(b, 1, RF_ACQUIRE, 2);
    writes(b, 1);
    sync_event(b, 1, RF_RELEASE, 2);
    sync_event(b, 2, RF_ACQUIRE, 1);
    sync_event(b, 2, RF_ACQUIRE, 2);
    assert_false(writes(b, 2));
    assert_int_equal(b->x.writes.count, 2);
    assert_true(has_pair(b, &b->x.writes, 1, 1, 2, 0));
    assert_true(has_pair(b, &b->x.writes, 2, 1, 1, 2));
    sync_event(b, 2, RF_RELEASE, 2);
    sync_event(b, 2, RF_RELEASE, 1);
    sync_event(b, 1, RF_ACQUIRE, 1);
    assert_false(reads(b, 1));
}

/* Figure 5: a message between a and b ends the epoch, so b is not redundant although its locks are a's. */
static void test_figure_5(void **state)
{
    (void)state;
    assert_int_equal(first_race("multilock", "A|w(x)|\nA|sig(c)|\nA|w(x)|\nB|wait(c)|\nB|w(x)|\n", 0, NULL), 5);
    assert_int_equal(first_race("multilock", "A|w(x)|\nA|sig(c)|\nB|wait(c)|\nB|w(x)|\n", 0, NULL), 0);
}

/* The new pair goes into empty sets, once, and stays. */
static void test_algorithm_23_inserts_once(void **state)
{
    struct bench *b = bench_begin(state);
    writes(b, 1);
    writes(b, 1);
    reads(b, 1);
    assert_int_equal(b->x.writes.count, 1);
    assert_int_equal(b->x.reads.count, 0);
}

/* Rule 4: what an unprotected later access of the same thread stands for is given up, whatever the epoch. */
static void test_sets_stay_small(void **state)
{
    struct bench *b = bench_begin(state);
    for (uint64_t i = 0; i < 1000; i++) {
        sync_event(b, 1, RF_ACQUIRE, 100 + i);
        reads(b, 1);
        writes(b, 1);
        sync_event(b, 1, RF_RELEASE, 100 + i);
        sync_event(b, 1, RF_SIGNAL, i % 3);
    }
    assert_in_range(b->x.writes.count, ML_PETALS, 3 * ML_PETALS); /* rule 6: they have no lock in common, as nothing that they leave out has */
    assert_int_equal(b->x.reads.count, 0); /* each write stood for the read before it */
    writes(b, 1);
    assert_int_equal(b->x.writes.count, 1);
    sync_event(b, 1, RF_SIGNAL, 7);
    sync_event(b, 2, RF_WAIT, 7);
    writes(b, 2); /* of another thread, but after it */
    assert_int_equal(b->x.writes.count, 1);
    ml_clear(&b->d, &b->x);
    assert_false(writes(b, 1));
}

/* Rule 6 beside all accesses: one thread accesses under one lock of a few and one or two of many beneath it; what the other one knows of it,
 * and which locks that one has, is random. */
static void test_rule_6(void **state)
{
    struct {
        uint64_t locks;
        bool write;
    } past[600];
    uint64_t random = 1;
    uint32_t races = 0, longest = 0;
    for (unsigned turn = 0; turn < 40; turn++) {
        struct bench *b = bench_begin(state);
        uint32_t known = 0, sent = 0, few = 1 + turn % 3;
        for (uint32_t i = 0; i < 600; i++) {
            uint64_t locks = UINT64_C(1) << random_below(&random, few) | UINT64_C(1) << (4 + random_below(&random, 56));
            if (turn % 4 == 3)
                locks |= UINT64_C(1) << (4 + random_below(&random, 56));
            past[i].locks = locks;
            past[i].write = random_below(&random, 3);
            for (unsigned lock = 0; lock < 60; lock++)
                if (locks >> lock & 1)
                    sync_event(b, 1, RF_ACQUIRE, 100 + lock);
            past[i].write ? writes(b, 1) : reads(b, 1);
            for (unsigned lock = 0; lock < 60; lock++)
                if (locks >> lock & 1)
                    sync_event(b, 1, RF_RELEASE, 100 + lock);
            if (random_below(&random, 30) == 0) {
                sync_event(b, 1, RF_SIGNAL, 7);
                sent = i + 1;
            }
            if (random_below(&random, 60) == 0) {
                sync_event(b, 2, RF_WAIT, 7);
                known = sent;
            }
            uint64_t others = UINT64_C(1) << random_below(&random, 3) | UINT64_C(1) << random_below(&random, 60);
            bool write = random_below(&random, 2), expected = false;
            for (uint32_t j = known; j <= i; j++)
                expected |= (write || past[j].write) && !(past[j].locks & others);
            struct ml_cell x = b->x, copy = { 0 };
            ml_copy(&b->d, &copy, &x);
            for (unsigned lock = 0; lock < 60; lock++)
                if (others >> lock & 1)
                    sync_event(b, 2, RF_ACQUIRE, 100 + lock);
            b->x = copy;
            assert_int_equal(write ? writes(b, 2) : reads(b, 2), expected);
            ml_clear(&b->d, &b->x);
            b->x = x;
            for (unsigned lock = 0; lock < 60; lock++)
                if (others >> lock & 1)
                    sync_event(b, 2, RF_RELEASE, 100 + lock);
            races += expected;
            longest = b->x.writes.count > longest ? b->x.writes.count : longest;
        }
        bench_end(state);
    }
    print_message("rule 6: %u of 24000 race; the longest list had %u\n", races, longest);
    assert_true(races > 1000 && races < 23000 && longest < 300);
    bench_begin(state);
}

/* A write under a read lock is not protected by it; a read under it is. */
static void test_read_write_locks(void **state)
{
    (void)state;
    assert_int_equal(first_race("multilock", "A|racq(l)|\nA|w(x)|\nA|rrel(l)|\nB|acq(l)|\nB|w(x)|\n", 0, NULL), 5);
    assert_int_equal(first_race("multilock", "A|racq(l)|\nA|r(x)|\nA|rrel(l)|\nB|acq(l)|\nB|w(x)|\n", 0, NULL), 0);
    assert_int_equal(first_race("multilock", "A|racq(l)|\nA|r(x)|\nA|rrel(l)|\nB|racq(l)|\nB|w(x)|\n", 0, NULL), 5);
}

/* ---- hybrid ---- */

static void test_hybrid_forgives_initialisation(void **state)
{
    (void)state;
    static const char text[] = "A|w(x)|\nA|w(x)|\nB|w(x)|\nC|r(x)|\n";
    struct rf_race race;
    assert_int_equal(first_race("multilock", text, 0, NULL), 3);
    assert_int_equal(first_race("hybrid", text, 0, &race), 4); /* A's writes were not recorded, B's was */
    assert_int_equal(race.first.number, 3);
    assert_int_equal(first_race("hybrid", "A|w(x)|\nB|r(x)|\nC|r(x)|\n", 0, NULL), 0);
    assert_int_equal(first_race("hybrid", "A|w(x)|\nB|w(x)|\nA|r(x)|\n", 0, NULL), 3);
}

/* ---- the definition: every access is kept ---- */

struct kept {
    uint32_t node;
    bool write;
    uint64_t locks;
};

struct kept_byte {
    uint32_t count, owner_plus_1;
    bool shared;
    struct kept past[250];
};

static bool kept_step(void *cell, const struct now *now)
{
    struct kept_byte *x = cell;
    bool race = false;
    for (uint32_t i = 0; i < x->count; i++)
        if ((now->write || x->past[i].write) && !ordered(now, x->past[i].node) && !(now->locks & x->past[i].locks))
            race = true;
    assert_true(x->count < sizeof x->past / sizeof x->past[0]);
    x->past[x->count++] = (struct kept){ now->node, now->write, now->locks };
    return race;
}

/* The same, but nothing is kept until a second thread comes. */
static bool hybrid_step(void *cell, const struct now *now)
{
    struct kept_byte *x = cell;
    if (!x->owner_plus_1)
        x->owner_plus_1 = now->thread + 1;
    if (x->owner_plus_1 != now->thread + 1)
        x->shared = true;
    return x->shared && kept_step(cell, now);
}

static bool no_epochs(const struct rf_event *event)
{
    (void)event;
    return false;
}

static void test_definition_1(void **state)
{
    (void)state;
    static const struct model model = { "multilock", sizeof(struct kept_byte), kept_step, no_epochs };
    static struct comparison comparison = { .model = &model, .first_only = true };
    model_compare(&comparison, 22000);
}

static void test_hybrid_is_the_definition_behind_eraser(void **state)
{
    (void)state;
    static const struct model model = { "hybrid", sizeof(struct kept_byte), hybrid_step, no_epochs };
    static struct comparison comparison = { .model = &model, .first_only = true };
    model_compare(&comparison, 22000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_section_3_5_figure_2c, bench_end),
        cmocka_unit_test_teardown(test_section_3_5_figure_7, bench_end),
        cmocka_unit_test(test_figure_5),
        cmocka_unit_test_teardown(test_algorithm_23_inserts_once, bench_end),
        cmocka_unit_test_teardown(test_sets_stay_small, bench_end),
        cmocka_unit_test_teardown(test_rule_6, bench_end),
        cmocka_unit_test(test_read_write_locks),
        cmocka_unit_test(test_hybrid_forgives_initialisation),
        cmocka_unit_test(test_definition_1),
        cmocka_unit_test(test_hybrid_is_the_definition_behind_eraser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
