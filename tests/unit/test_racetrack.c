/* RaceTrack: each transition of its states, and the rules of detect/racetrack.h without clocks. */
#include "tests/model.h"

#define FIRST(text) first_race("racetrack", text, 0, NULL)

static void test_exclusive(void **state)
{
    (void)state;
    assert_int_equal(FIRST("A|w(x)|\nA|w(x)|\nA|w(x)|\nA|r(x)|\n"), 0);
    /* initialised and handed over: the first thread's past is forgotten */
    assert_int_equal(FIRST("A|w(x)|\nB|w(x)|\nB|w(x)|\nB|r(x)|\n"), 0);
    /* one thread after the other */
    assert_int_equal(FIRST("A|w(x)|\nB|w(x)|\nB|sig(c)|\nC|wait(c)|\nC|w(x)|\nC|sig(d)|\nA|wait(d)|\nA|w(x)|\n"), 0);
}

static void test_first_report(void **state)
{
    (void)state;
    /* Exclusive0, Exclusive1, Shared-Modified2, race */
    assert_int_equal(FIRST("A|w(x)|\nB|w(x)|\nA|w(x)|\nB|w(x)|\n"), 4);
    /* the same with reads: Shared, until there is a write */
    assert_int_equal(FIRST("A|w(x)|\nB|r(x)|\nA|r(x)|\nB|r(x)|\nA|r(x)|\n"), 0);
    assert_int_equal(FIRST("A|w(x)|\nB|r(x)|\nA|r(x)|\nB|w(x)|\nA|r(x)|\n"), 5);
}

static void test_lockset(void **state)
{
    (void)state;
    static const char a[] = "A|acq(l)|\nA|w(x)|\nA|rel(l)|\n", b[] = "B|acq(l)|\nB|w(x)|\nB|rel(l)|\n";
    char text[400];
    snprintf(text, sizeof text, "%s%s%s%s%s%s", a, b, a, b, a, b);
    assert_int_equal(FIRST(text), 0);
    /* One access without the lock empties C, the next by another thread is the race. */
    snprintf(text, sizeof text, "%s%s%s%sA|w(x)|\n%s", a, b, a, b, b);
    assert_int_equal(FIRST(text), 15);
}

/* Once all others have ended, the variable is one thread's again, and a new lock may protect it. */
static void test_joined(void **state)
{
    (void)state;
    static const char racy[] = "A|w(x)|\nB|w(x)|\nA|w(x)|\n";
    char text[400];
    snprintf(text, sizeof text, "%sB|sig(c)|\nA|sig(c)|\nB|wait(c)|\nB|w(x)|\nA|wait(c)|\nA|w(x)|\nB|w(x)|\n", racy);
    assert_int_equal(FIRST(text), 10); /* B alone: Exclusive1; A: Shared-Modified2 again; B: race */
}

static void test_first_side(void **state)
{
    (void)state;
    struct rf_race race;
    assert_int_equal(first_race("racetrack", "A|w(x)|\nB|w(x)|\nA|w(x)|\nB|w(x)|\n", 0, &race), 4);
    assert_int_equal(race.first.number, 3);
    assert_int_equal(race.first.op, RF_WRITE);
    assert_int_equal(race.first.thread, 0);
    /* only the thread that wrote last has written: the other side is a read */
    assert_int_equal(first_race("racetrack", "A|r(x)|\nB|w(x)|\nA|r(x)|\nB|w(x)|\nA|r(x)|\nB|w(x)|\n", 0, &race), 5);
    assert_int_equal(race.first.number, 4);
    /* the thread that races wrote last itself: the other side is the last write of another */
    assert_int_equal(first_race("racetrack",
                                "A|w(x)|\nB|acq(l)|\nB|w(x)|\nB|rel(l)|\nA|acq(l)|\nA|w(x)|\nA|rel(l)|\n"
                                "B|acq(l)|\nB|w(x)|\nB|rel(l)|\nA|r(x)|\nB|w(x)|\n",
                                0, &race),
                     12);
    assert_int_equal(race.first.number, 6);
    assert_int_equal(race.first.op, RF_WRITE);
}

/* ---- the rules, with everything spelled out ---- */

enum track { VIRGIN, EXCLUSIVE0, EXCLUSIVE1, SHARED, MODIFIED };

struct track_byte {
    enum track state;
    uint32_t owner;
    bool tracking; /* MODIFIED: C is empty, S counts */
    uint64_t locks;
    uint32_t nodes[TRACE_THREADS + 1], threads[TRACE_THREADS + 1], count; /* S */
};

static void track_alone(struct track_byte *x, const struct now *now)
{
    x->nodes[0] = now->node;
    x->threads[0] = now->thread;
    x->count = 1;
}

/* How many others stay beside this thread; *gone: how many others do not. */
static uint32_t track_merge(struct track_byte *x, const struct now *now, uint32_t *gone)
{
    uint32_t stay = 0;
    *gone = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->threads[i] == now->thread)
            continue;
        if (ordered(now, x->nodes[i])) {
            ++*gone;
            continue;
        }
        x->nodes[stay] = x->nodes[i];
        x->threads[stay++] = x->threads[i];
    }
    x->nodes[stay] = now->node;
    x->threads[stay] = now->thread;
    x->count = stay + 1;
    return stay;
}

static void track_shared(struct track_byte *x, const struct now *now)
{
    if (now->write)
        x->state = MODIFIED;
    if (x->state == MODIFIED && !x->locks) {
        x->tracking = true;
        track_alone(x, now);
    }
}

static bool track_step(void *cell, const struct now *now)
{
    struct track_byte *x = cell;
    uint32_t gone, stay;
    if (x->state == VIRGIN) {
        x->state = EXCLUSIVE0;
        x->owner = now->thread;
        return false;
    }
    if (x->state == EXCLUSIVE0) {
        if (x->owner != now->thread) {
            x->state = EXCLUSIVE1;
            track_alone(x, now);
        }
        return false;
    }
    if (x->state == EXCLUSIVE1) {
        if (!track_merge(x, now, &gone))
            return false;
        x->state = SHARED;
        x->locks = now->locks;
        track_shared(x, now);
        return false;
    }
    if (!x->tracking) {
        x->locks &= now->locks;
        track_shared(x, now);
        return false;
    }
    stay = track_merge(x, now, &gone);
    if (!stay && gone) {
        x->state = EXCLUSIVE1;
        x->tracking = false;
    }
    return stay > 0;
}

static bool no_epochs(const struct rf_event *event)
{
    (void)event;
    return false;
}

static void test_rules(void **state)
{
    (void)state;
    static const struct model model = { "racetrack", sizeof(struct track_byte), track_step, no_epochs };
    static struct comparison comparison = { .model = &model };
    model_compare(&comparison, 24000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive), cmocka_unit_test(test_first_report), cmocka_unit_test(test_lockset),
        cmocka_unit_test(test_joined),    cmocka_unit_test(test_first_side),   cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
