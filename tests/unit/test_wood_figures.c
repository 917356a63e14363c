/* Figures of Wood's thesis: 4.1, what a detector below a managed runtime must be told, and 5.1, why its steps must be atomic. Figure
 * 2.3 is in test_classic_figures.c.
 */
#include "tests/harness.h"

#include "detect/fasttrack.h"
#include "tests/memory.h"

/* How many races fasttrack and generic, which must agree, find in a trace. */
static size_t races_in(const char *text)
{
    static struct trace trace;
    size_t counts[2];
    trace_parse(&trace, text);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "generic" : "fasttrack";
        struct rf_replay replay;
        rf_replay_begin(&replay, rf_detector_find(name, strlen(name)), &(struct rf_options){ .rate = -1 }, false, 0, 1);
        run_batches(&replay, trace.events, trace.count, 0);
        counts[i] = replay.races.count;
        rf_replay_end(&replay);
    }
    assert_int_equal(counts[0], counts[1]);
    return counts[0];
}

/* Section 4.2.1: a collector traverses the heap while threads go on. Its reads are not the program's. */
static void figure_4_1_access(void **state)
{
    (void)state;
    const char *seen = "GC|r(0x90:4)|A\n"
                       "1|w(0x90:4)|B\n";
    const char *tracked = "1|w(0x90:4)|B\n";
    assert_int_equal(races_in(seen), 1); /* a false race */
    assert_int_equal(races_in(tracked), 0);
}

/* Section 4.2.2: the collector stops the world. That orders C and D only for whoever sees it. */
static void figure_4_1_synchronisation(void **state)
{
    (void)state;
    const char *seen = "1|r(0x8c:4)|C\n1|w(0x8c:4)|C\n"
                       "1|bar(gc)\n2|bar(gc)\n"
                       "2|r(0x8c:4)|D\n2|w(0x8c:4)|D\n";
    const char *tracked = "1|r(0x8c:4)|C\n1|w(0x8c:4)|C\n"
                          "2|r(0x8c:4)|D\n2|w(0x8c:4)|D\n";
    assert_int_equal(races_in(seen), 0); /* missed */
    assert_int_equal(races_in(tracked), 1);
}

/* Section 4.2.3: E and F write to different objects that had one address. */
static void figure_4_1_allocation(void **state)
{
    (void)state;
    const char *naive = "1|w(0xd4:4)|E\n"
                        "2|w(0xd4:4)|F\n";
    const char *cleared = "1|alloc(0xd0:8)\n1|w(0xd4:4)|E\n"
                          "2|alloc(0xd0:8)\n2|w(0xd4:4)|F\n";
    assert_int_equal(races_in(naive), 1); /* a false race */
    assert_int_equal(races_in(cleared), 0);
}

/* Section 4.2.4: between G and H the collector has moved the object from 0x8c to 0xbc; its old place is cleared. */
static void figure_4_1_movement(void **state)
{
    (void)state;
    const char *naive = "1|r(0x90:4)|G\n1|w(0x90:4)|G\n"
                        "2|r(0xc0:4)|H\n2|w(0xc0:4)|H\n";
    const char *moved = "1|r(0x90:4)|G\n1|w(0x90:4)|G\n"
                        "GC|copy(0x8c,0xbc:16)\nGC|alloc(0x8c:16)\n"
                        "2|r(0xc0:4)|H\n2|w(0xc0:4)|H\n";
    assert_int_equal(races_in(naive), 0); /* missed */
    assert_int_equal(races_in(moved), 1);
}

/* The clocks and the history with which Figure 5.1 begins: C_t1 = {5, 3, 1}, C_t2 = {2, 7, 1}, W_x = R_x = 1@t3. */
static void begin_5_1(struct ft *d, struct rf_thread *threads[3], struct ft_cell *cell)
{
    static const struct rf_options options = { .rate = -1 };
    static const uint32_t times[3][3] = { { 5, 3, 1 }, { 2, 7, 1 }, { 0, 0, 1 } };
    *d = (struct ft){ .engine = { .memory = &test_memory, .options = &options } };
    *cell = (struct ft_cell){ 0 };
    ft_init(d);
    for (uint32_t t = 0; t < 3; t++)
        threads[t] = ft_thread_at(d, t);
    for (uint32_t t = 0; t < 3; t++) {
        for (uint32_t s = 0; s < 3; s++)
            rf_clock_set(&threads[t]->clock, &test_memory, s, times[t][s]);
        rf_thread_refresh(&d->order, threads[t]);
    }
    assert_false(ft_write(d, threads[2], cell, 0, 1));
}

static void figure_5_1(void **state)
{
    (void)state;
    struct ft d;
    struct rf_thread *t[3];
    struct ft_cell cell;

    /* One step after the other: the second finds the race, whichever it is. */
    begin_5_1(&d, t, &cell);
    assert_false(ft_write(&d, t[0], &cell, 0, 2));
    assert_true(ft_read(&d, t[1], &cell, 0, 3));
    assert_int_equal(d.engine.first.thread, 0);
    begin_5_1(&d, t, &cell);
    assert_false(ft_read(&d, t[1], &cell, 0, 2));
    assert_true(ft_write(&d, t[0], &cell, 0, 3));
    assert_int_equal(d.engine.first.thread, 1);

    /* As in the figure: both load the history before either stores. No step reports, and t2's read is lost. */
    begin_5_1(&d, t, &cell);
    struct ft_cell of_t1 = cell, of_t2 = cell;
    assert_false(ft_read(&d, t[1], &of_t2, 0, 2));
    cell = of_t2;
    assert_false(ft_write(&d, t[0], &of_t1, 0, 3));
    cell = of_t1;
    assert_true(cell.word == ((uint64_t)t[0]->narrow << 32 | t[0]->narrow));
    rf_memory_end(&test_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figure_4_1_access),
        cmocka_unit_test(figure_4_1_synchronisation),
        cmocka_unit_test(figure_4_1_allocation),
        cmocka_unit_test(figure_4_1_movement),
        cmocka_unit_test(figure_5_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
