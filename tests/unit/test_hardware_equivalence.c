/* RADISH is equivalent to the canonical detector (Wood, 3.3): the first race of each byte is the same event, on random traces and
 * random small machines, for each layer of the design alone and for all together.
 *
 * HARDWARE_RUNS sets how many traces each layer gets.
 */
#include "tests/unit/hardware_runs.h"

static struct oracle oracle;
static struct trace trace;

static uint64_t runs(void)
{
    const char *text = getenv("HARDWARE_RUNS");
    return text ? strtoull(text, NULL, 10) : 2500;
}

/* Random shapes in turn, with a disciplined trace at every second place. */
static const char *make_trace(uint64_t seed)
{
    if (seed % 2) {
        trace_disciplined(&trace, seed, seed % 4 == 1);
        return "disciplined";
    }
    const struct shape *shape = &trace_shapes[seed / 2 % TRACE_SHAPES];
    trace_make(&trace, shape, seed);
    return shape->name;
}

static void equivalent(unsigned layers)
{
    struct rf_radish_counts sum = { 0 };
    for (uint64_t seed = 1; seed <= runs(); seed++) {
        const char *name = make_trace(seed);
        oracle_run(&oracle, trace.events, trace.count, ORACLE_SHARED);
        struct run run = { .trace = &trace, .config = machine_of(layers, seed), .time_limit = seed % 5 ? 0 : 12 };
        if (!right(&run, &oracle)) {
            trace_shrink(&trace, run_fails, &run);
            run_fails(&run, &trace);
            trace_print(stderr, &trace);
            rf_config_print(&run.config, stderr);
            fail_msg("layers %u, seed %llu, %s: %s", layers, (unsigned long long)seed, name, run.wrong);
        }
        sum.checks.permission += run.counts.checks.permission;
        sum.checks.hardware += run.counts.checks.hardware;
        sum.checks.software += run.counts.checks.software;
        sum.roll_overs += run.counts.roll_overs;
        sum.flushed_lines += run.counts.flushed_lines;
        sum.splits += run.counts.splits;
    }
    /* A layer that does nothing would be tested by nothing. */
    assert_true(sum.checks.permission && sum.checks.hardware && sum.checks.software);
    assert_true(sum.flushed_lines || !(layers & (EAGER | LAZY | ROLL_OVER)));
    assert_int_equal(sum.splits != 0, (layers & COMPACT) != 0);
    assert_int_equal(sum.roll_overs != 0, (layers & ROLL_OVER) != 0);
}

static void no_evictions(void **state)
{
    (void)state;
    equivalent(0);
}

static void evictions(void **state)
{
    (void)state;
    equivalent(EVICTIONS);
}

static void eager_switches(void **state)
{
    (void)state;
    equivalent(EAGER);
}

static void lazy_switches(void **state)
{
    (void)state;
    equivalent(LAZY);
}

static void compact(void **state)
{
    (void)state;
    equivalent(COMPACT);
}

static void roll_over(void **state)
{
    (void)state;
    equivalent(ROLL_OVER);
}

static void evictions_and_eager(void **state)
{
    (void)state;
    equivalent(EVICTIONS | EAGER);
}

static void evictions_and_lazy(void **state)
{
    (void)state;
    equivalent(EVICTIONS | LAZY);
}

static void everything(void **state)
{
    (void)state;
    equivalent(ALL_LAYERS);
}

static void usual_form(void **state)
{
    (void)state;
    struct rf_config config = machine_of(USUAL_FORM, 1);
    assert_true(rf_is_usual(&config));
    config.line_bytes = 32;
    assert_false(rf_is_usual(&config));
    rf_config_defaults(&config);
    assert_true(rf_is_usual(&config));
    equivalent(EAGER | LAZY | ROLL_OVER | ELSEWHERE | USUAL_FORM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_evictions),       cmocka_unit_test(evictions),  cmocka_unit_test(eager_switches),
        cmocka_unit_test(lazy_switches),      cmocka_unit_test(compact),    cmocka_unit_test(roll_over),
        cmocka_unit_test(evictions_and_eager), cmocka_unit_test(evictions_and_lazy),
        cmocka_unit_test(everything),         cmocka_unit_test(usual_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
