/* Suppressions: patterns, types, frames, and slips of the pen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/suppress.h"
#include "report/symbols.h"

static void patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        { "foo", "foo", true },
        { "foo", "a foo b", true },
        { "foo", "fo", false },
        { "^foo", "foobar", true },
        { "^foo", "afoo", false },
        { "foo$", "barfoo", true },
        { "foo$", "foob", false },
        { "^foo$", "foo", true },
        { "^foo$", "foofoo", false },
        { "foo$", "foofoo", true },
        { "f*o", "xfyyoz", true },
        { "f*o$", "fo", true },
        { "^f*b*r$", "foobar", true },
        { "^f*b*r$", "foobaz", false },
        { "*", "", true },
        { "a*", "", false },
        { "^*x$", "yyx", true },
        { "ab*ab$", "abab", true },
        { "ab*ab$", "ab", false },
        { "^$", "", true },
        { "^$", "x", false },
        { "aab", "aaab", true },
        { "^a*a*a$", "aa", false },
        { "^a*a*a$", "aaa", true },
        { "a$b", "a$b", true },
        { "a^b", "xa^b", true },
        { "*foo*", "foo", true },
        { "^*", "", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (rf_pattern_matches(cases[i].pattern, cases[i].text) != cases[i].matches)
            fail_msg("'%s' and '%s': not %d", cases[i].pattern, cases[i].text, cases[i].matches);
    assert_false(rf_pattern_matches("*", NULL));
}

/* A race of read_it (called by worker) with memset, called by libfoo's clear; the thread was created in spawn. */
static struct rf_symbol reader[] = {
    { .function = "read_it", .file = "/src/reader.c", .line = 3, .module = "/bin/app" },
    { .function = "worker", .file = "/src/worker.c", .line = 9, .module = "/bin/app" },
};
static struct rf_symbol clearer[] = {
    { .function = "memset", .module = "/lib/libredflag-rt.so.0", .runtime = true },
    { .function = "clear", .file = "/src/foo/clear.c", .module = "/lib/libfoo.so.1" },
};
static struct rf_symbol creator[] = { { .function = "spawn", .file = "/src/main.c", .module = "/bin/app" } };

static struct rf_record race(enum rf_kind kind)
{
    static struct rf_rec_access accesses[2];
    static struct rf_rec_thread thread;
    accesses[0] = (struct rf_rec_access){ .stack = { .frames = reader, .frame_count = 2 } };
    accesses[1] = (struct rf_rec_access){ .stack = { .frames = clearer, .frame_count = 2 } };
    thread = (struct rf_rec_thread){ .stack = { .frames = creator, .frame_count = 1 } };
    return (struct rf_record){ .kind = kind,
                               .accesses = accesses,
                               .access_count = 2,
                               .threads = &thread,
                               .thread_count = 1,
                               .location = { .kind = RF_AT_GLOBAL, .name = "table", .module = "/bin/app" } };
}

static bool suppressed(const char *line, enum rf_kind kind)
{
    struct rf_suppressions all = { 0 };
    struct rf_record record = race(kind);
    char error[512] = "";
    if (!rf_suppressions_parse(&all, line, "test", error))
        fail_msg("%s", error);
    struct rf_suppression *found = rf_suppressions_match(&all, &record);
    bool result = found != NULL;
    assert_int_equal(all.list[0].hits, result);
    rf_suppressions_free(&all);
    return result;
}

static void types(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum rf_kind kind;
        bool matches;
    } cases[] = {
        { "race:read_it", RF_K_RACE, true },
        { "race:worker", RF_K_RACE, true },
        { "race:reader.c", RF_K_FREE_RACE, true },
        { "race:libfoo", RF_K_VPTR_RACE, true },
        { "race:memset", RF_K_RACE, true },
        { "race:spawn", RF_K_RACE, true },
        { "race:^table$", RF_K_RACE, true },
        { "race:other", RF_K_RACE, false },
        { "race:read_it", RF_K_THREAD_LEAK, false },
        { "thread:spawn", RF_K_THREAD_LEAK, true },
        { "thread:spawn", RF_K_RACE, false },
        { "mutex:read_it", RF_K_BAD_UNLOCK, true },
        { "mutex:read_it", RF_K_RACE, false },
        { "signal:worker", RF_K_SIGNAL_UNSAFE, true },
        { "signal:worker", RF_K_ERRNO, true },
        { "deadlock:worker", RF_K_LOCK_ORDER, true },
        { "deadlock:worker", RF_K_RACE, false },
        { "race_top:read_it", RF_K_RACE, true },
        { "race_top:memset", RF_K_RACE, true },
        { "race_top:worker", RF_K_RACE, false },
        { "called_from_lib:libfoo.so", RF_K_RACE, true },
        { "called_from_lib:app", RF_K_RACE, false },
        { "var:table", RF_K_RACE, true },
        { "var:^tab$", RF_K_RACE, false },
        { "var:read_it", RF_K_RACE, false },
        { "race:^read_it$;^worker$", RF_K_RACE, true },
        { "race:worker;read_it", RF_K_RACE, false }, /* inner ones first */
        { "race:read_it;clear", RF_K_RACE, false },  /* frames of one stack */
        { "race:memset;clear.c", RF_K_RACE, true },
        { "race:read_it;read_it", RF_K_RACE, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (suppressed(cases[i].line, cases[i].kind) != cases[i].matches)
            fail_msg("%s: not %d", cases[i].line, cases[i].matches);
}

static void slips_of_the_pen(void **state)
{
    (void)state;
    struct rf_suppressions all = { 0 };
    char error[512] = "";
    assert_true(rf_suppressions_parse(&all, "# a comment\n\n  race:a  \r\n\trace_top:b:c\nvar:x", "f", error));
    assert_int_equal(all.count, 3);
    assert_string_equal(all.list[0].pattern, "a");
    assert_string_equal(all.list[1].pattern, "b:c");
    assert_int_equal(all.list[1].line, 4);
    assert_string_equal(all.list[2].origin, "f");
    assert_false(rf_suppressions_parse(&all, "race:a\nracer:b\n", "my.supp", error));
    assert_non_null(strstr(error, "my.supp:2: unknown type 'racer'"));
    assert_false(rf_suppressions_parse(&all, "race:\n", "my.supp", error));
    assert_non_null(strstr(error, "my.supp:1: 'race:' is no suppression"));
    assert_false(rf_suppressions_parse(&all, "\nmain\n", "my.supp", error));
    assert_non_null(strstr(error, "my.supp:2: 'main' is no suppression"));
    assert_false(rf_suppressions_load(&all, "/nowhere/at.all", error));
    assert_non_null(strstr(error, "/nowhere/at.all: cannot read the suppressions"));
    assert_false(rf_suppressions_load(&all, "/", error));
    rf_suppressions_free(&all);
}

static void the_first_match_is_counted(void **state)
{
    (void)state;
    struct rf_suppressions all = { 0 };
    struct rf_record record = race(RF_K_RACE);
    char error[512] = "";
    assert_true(rf_suppressions_parse(&all, "race:nothing\nrace:worker\nrace:read_it\n", "f", error));
    assert_ptr_equal(rf_suppressions_match(&all, &record), &all.list[1]);
    assert_ptr_equal(rf_suppressions_match(&all, &record), &all.list[1]);
    assert_int_equal(all.list[0].hits, 0);
    assert_int_equal(all.list[1].hits, 2);
    assert_int_equal(all.list[2].hits, 0);
    rf_suppressions_free(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(types),
        cmocka_unit_test(slips_of_the_pen),
        cmocka_unit_test(the_first_match_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
