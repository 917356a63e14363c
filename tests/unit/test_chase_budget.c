/* RaceChaser's accounting (guest/chase/budget.h) with a clock of our own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "guest/chase/budget.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static struct rf_budget five_percent(void)
{
    return (struct rf_budget){ .rate = 0.05, .delay = 10 * MS, .least = S, .started = 100 * S };
}

/* The formula of section 4.2, by hand. */
static void test_probability(void **state)
{
    (void)state;
    struct rf_budget budget = five_percent();
    uint64_t now = budget.started;
    assert_true(near(rf_budget_probability(&budget, now), 1 - 10.0 / (1010 * 0.05))); /* t_min counts at once */
    uint64_t until = rf_budget_begin(&budget, now, 0.5);
    assert_int_equal(until, now + 10 * MS);
    rf_budget_end(&budget, until, until);
    assert_int_equal(rf_budget_waited(&budget, until), 10 * MS);
    assert_true(near(rf_budget_probability(&budget, until), 1 - 20.0 / (1010 * 0.05)));
    now = budget.started + 20 * S;
    assert_true(near(rf_budget_probability(&budget, now), 1 - 20.0 / (20010 * 0.05)));
    budget.waited = 990 * MS; /* nearly all of 1000 */
    assert_true(near(rf_budget_probability(&budget, now), 1 - 1000.0 / (20010 * 0.05)));
    budget.waited = 991 * MS;
    assert_true(rf_budget_probability(&budget, now) == 0);
    budget.rate = 0;
    budget.waited = 0;
    assert_true(rf_budget_probability(&budget, now) == 0);
}

static void test_overlapped_waits_count_once(void **state)
{
    (void)state;
    struct rf_budget budget = five_percent();
    uint64_t t = budget.started;
    uint64_t first = rf_budget_begin(&budget, t, 0.5), second = rf_budget_begin(&budget, t + 4 * MS, 0.9);
    assert_int_equal(first, t + 10 * MS);
    assert_int_equal(second, t + 13 * MS); /* a part of it, as somebody waits */
    assert_int_equal(rf_budget_waited(&budget, t + 7 * MS), 7 * MS); /* one that is not over counts up to now */
    rf_budget_end(&budget, first, first);
    assert_int_equal(rf_budget_waited(&budget, t + 12 * MS), 12 * MS);
    rf_budget_end(&budget, second, second);
    assert_int_equal(rf_budget_waited(&budget, t + 500 * MS), 13 * MS);
    uint64_t third = rf_budget_begin(&budget, t + 500 * MS, 0.5);
    rf_budget_end(&budget, t + 503 * MS, third); /* woken early */
    assert_int_equal(rf_budget_waited(&budget, t + 600 * MS), 16 * MS);
    assert_int_equal(budget.waits, 3);
    assert_int_equal(budget.late, 0);
}

/* Many threads that would wait whenever they may, in every pattern: the budget holds at every instant. */
static void always_within(double rate, uint64_t delay, uint64_t least, uint64_t latest, uint64_t seed)
{
    enum { THREADS = 8 };
    struct rf_budget budget = { .rate = rate, .delay = delay, .least = least, .started = 7 * S, .late = latest };
    uint64_t now = budget.started, ends[THREADS] = { 0 }, planned[THREADS], random = seed, waits = 0;
    for (unsigned step = 0; step < 20000; step++) {
        uint64_t next = now + rf_chance_next(&random) % (rf_chance_next(&random) % 16 ? delay : 20 * delay);
        for (;;) { /* waits that end before */
            unsigned who = THREADS;
            for (unsigned i = 0; i < THREADS; i++)
                if (ends[i] && ends[i] <= next && (who == THREADS || ends[i] < ends[who]))
                    who = i;
            if (who == THREADS)
                break;
            rf_budget_end(&budget, ends[who], planned[who]);
            assert_true(rf_budget_holds(&budget, ends[who]));
            ends[who] = 0;
        }
        now = next;
        assert_true(rf_budget_holds(&budget, now));
        unsigned who = (unsigned)(rf_chance_next(&random) % THREADS);
        if (ends[who] || !(rf_chance_uniform(rf_chance_next(&random)) < rf_budget_probability(&budget, now)))
            continue;
        planned[who] = rf_budget_begin(&budget, now, rf_chance_uniform(rf_chance_next(&random)));
        ends[who] = planned[who] + (latest ? rf_chance_next(&random) % (latest + 1) : 0);
        if (rf_chance_next(&random) % 4 == 0)
            ends[who] = now + 1 + rf_chance_next(&random) % delay; /* a race was found: woken */
        waits++;
    }
    assert_true(rate == 0 ? waits == 0 : waits > 10);
}

static void test_never_more_than_the_budget(void **state)
{
    (void)state;
    static const double rates[] = { 0, 0.001, 0.01, 0.05, 0.1, 0.5, 1 };
    for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            always_within(rates[i], 10 * MS, S, 0, seed);
            always_within(rates[i], 10 * MS, S, 3 * MS, seed);
            always_within(rates[i], MS, 0, MS / 10, seed);
            always_within(rates[i], 100 * MS, 10 * S, 40 * MS, seed);
        }
}

/* One that sleeps longer than any before: no wait begins until the budget holds again, and the next leave room for it. */
static void test_late(void **state)
{
    (void)state;
    struct rf_budget budget = five_percent();
    uint64_t now = budget.started, until = rf_budget_begin(&budget, now, 0.5);
    rf_budget_end(&budget, until + 90 * MS, until); /* 100 ms of the 50 that are allowed */
    now = until + 90 * MS;
    assert_false(rf_budget_holds(&budget, now));
    assert_true(rf_budget_probability(&budget, now) == 0);
    assert_true(rf_budget_probability(&budget, budget.started + 2 * S) == 0);
    assert_true(rf_budget_holds(&budget, budget.started + 2 * S));
    assert_true(rf_budget_probability(&budget, budget.started + 3899 * MS) == 0); /* 100 + 10 + 90 ms need 4 s */
    assert_true(rf_budget_probability(&budget, budget.started + 3901 * MS) > 0);
}

/* The skip has the law of drawing at each instance: its mean and its zeros. */
static void test_skip(void **state)
{
    (void)state;
    uint64_t random = 42;
    assert_int_equal(rf_chance_skip(0, 0.7), 0);
    assert_int_equal(rf_chance_skip(0, 0), 0);
    assert_true(near(rf_chance_log2(8), 3));
    for (uint64_t samples = 1; samples < 200; samples *= 3) {
        double sum = 0, zeros = 0, count = 200000, n = (double)samples + 1;
        for (unsigned i = 0; i < 200000; i++) {
            uint32_t skip = rf_chance_skip(samples, rf_chance_uniform(rf_chance_next(&random)));
            sum += skip;
            zeros += !skip;
        }
        assert_true(fabs(sum / count - (n - 1)) < 6 * n / sqrt(count));
        assert_true(fabs(zeros / count - 1 / n) < 6 / sqrt(count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probability),
        cmocka_unit_test(test_overlapped_waits_count_once),
        cmocka_unit_test(test_never_more_than_the_budget),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_skip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
