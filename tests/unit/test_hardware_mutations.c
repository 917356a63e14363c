/* Each rule of RADISH matters (hardware/rules.def): without it some trace has a first race elsewhere, on some small machine, or the
 * example of Table 3.1 comes out differently.
 */
#include "tests/unit/hardware_runs.h"
#include "tests/unit/hardware_table.h"

#define TRIES 60000u

static const char *const names[] = {
#define RF_RULE(name, text) #name,
#include "hardware/rules.def"
#undef RF_RULE
};

static unsigned layers_of(uint64_t seed)
{
    static const unsigned some[] = { 0, EVICTIONS, EAGER, LAZY, EVICTIONS | LAZY, EVICTIONS | EAGER, COMPACT, ROLL_OVER,
                                     ROLL_OVER | LAZY, ALL_LAYERS };
    return some[seed % (sizeof some / sizeof *some)];
}

static bool done(const bool *caught)
{
    for (unsigned rule = 0; rule < RF_RULES; rule++)
        if (!caught[rule])
            return false;
    return true;
}

static void say(unsigned rule, const char *what, uint64_t seed, const char *how)
{
    if (getenv("HARDWARE_VERBOSE"))
        fprintf(stderr, "%-24s %s %llu: %s\n", names[rule], what, (unsigned long long)seed, how);
}

/* The first saves checks and makes none wrong. The second does, but only when a clock table is so full that a thread's write finds
 * no clock there while its older read does. */
static bool only_the_table_shows(enum rf_rule rule)
{
    return rule == RF_RULE_WRITE_SETS_STATUS || rule == RF_RULE_WRITE_CLEARS_OWN_READ;
}

/* The oracle is asked once for a trace; then every rule that is not caught yet is broken in turn. */
static void every_rule_matters(void **state)
{
    static struct oracle oracle;
    static struct trace trace;
    static bool caught[RF_RULES];
    (void)state;
    for (unsigned rule = 0; rule < RF_RULES; rule++) {
        const char *row, *column;
        caught[rule] = !table_holds(UINT64_C(1) << rule, &row, &column) && only_the_table_shows((enum rf_rule)rule);
        if (caught[rule])
            say(rule, row, 0, column);
    }
    for (uint64_t seed = 1; seed <= TRIES && !done(caught); seed++) {
        if (seed / 10 % 4)
            trace_disciplined(&trace, seed, seed % 2);
        else
            trace_make(&trace, &trace_shapes[seed % TRACE_SHAPES], seed);
        oracle_run(&oracle, trace.events, trace.count, ORACLE_SHARED);
        for (unsigned rule = 0; rule < RF_RULES; rule++) {
            struct run run = { .trace = &trace, .config = machine_of(layers_of(seed), seed), .broken = UINT64_C(1) << rule };
            if (caught[rule] || right(&run, &oracle))
                continue;
            caught[rule] = true;
            say(rule, "seed", seed, run.wrong);
        }
    }
    unsigned missed = 0;
    for (unsigned rule = 0; rule < RF_RULES; rule++)
        if (!caught[rule]) {
            print_error("nobody notices when %s is broken\n", names[rule]);
            missed++;
        }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_rule_matters) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
