/* The options of a run as the runtime reads them from its environment (guest/options.c, taken in whole: it needs nothing of the guest
 * but the few functions below). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/options.c"

static char said[1024];
static jmp_buf death;
static void *pages[256];
static size_t page_count;

long rf_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long result = syscall(number, a, b, c, d, e, f);
    return result < 0 ? -errno : result;
}

void rf_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said + strlen(said), sizeof said - strlen(said), format, arguments);
    va_end(arguments);
}

void rf_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    longjmp(death, 1);
}

size_t rf_format(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, size, format, arguments);
    va_end(arguments);
    return (size_t)length;
}

void *rf_pages(size_t bytes)
{
    assert_true(page_count < COUNT(pages));
    return pages[page_count++] = calloc(1, bytes);
}

void rf_pages_back(void *memory, size_t bytes)
{
    (void)bytes;
    for (size_t i = 0; i < page_count; i++)
        if (pages[i] == memory)
            pages[i] = NULL;
    free(memory);
}

/* Reads the variables as a fresh process would; false if that ended the program. */
static bool read_options(const char *tsan, const char *redflag)
{
    static struct rf_run_options defaults;
    static bool kept;
    if (!kept)
        defaults = rf_options;
    kept = true;
    rf_options = defaults;
    for (size_t i = 0; i < page_count; i++)
        free(pages[i]);
    page_count = 0;
    said[0] = 0;
    static char variables[3][4096];
    snprintf(variables[0], sizeof variables[0], "OTHER=verbosity=9");
    snprintf(variables[1], sizeof variables[1], "TSAN_OPTIONS%s%s", tsan ? "=" : "X=", tsan ? tsan : "");
    snprintf(variables[2], sizeof variables[2], "REDFLAG_OPTIONS%s%s", redflag ? "=" : "X=", redflag ? redflag : "");
    char *environment[] = { variables[0], variables[1], variables[2], NULL };
    if (setjmp(death))
        return false;
    rf_options_read(environment);
    return true;
}

static void test_defaults(void **state)
{
    (void)state;
    assert_true(read_options(NULL, NULL));
    assert_int_equal(rf_options.exitcode, 66);
    assert_string_equal(rf_options.detector, "fasttrack");
    assert_true(rf_options.report_bugs);
    assert_int_equal(rf_options.verbosity, 0);
    assert_true(read_options("", ":: ,"));
    assert_string_equal(said, "");
}

static void test_separators_and_quotes(void **state)
{
    (void)state;
    assert_true(read_options(NULL, "exitcode=3:verbosity=1 halt_on_error=1,io-sync=2\n\tstats=yes"));
    assert_int_equal(rf_options.exitcode, 3);
    assert_int_equal(rf_options.verbosity, 1);
    assert_true(rf_options.halt_on_error);
    assert_int_equal(rf_options.io_sync, 2);
    assert_true(rf_options.stats);
    assert_true(read_options(NULL, "log_path='/a b:c,d':suppressions=\"it's\":strip-path-prefix="));
    assert_string_equal(rf_options.log_path, "/a b:c,d");
    assert_string_equal(rf_options.suppressions, "it's");
    assert_string_equal(rf_options.strip_path_prefix, "");
    assert_true(read_options(NULL, "report_bugs=0:report_bugs=true:report-bugs=no"));
    assert_false(rf_options.report_bugs);
}

static void test_the_last_variable_counts(void **state)
{
    (void)state;
    assert_true(read_options("exitcode=5:verbosity=2", "exitcode=6"));
    assert_int_equal(rf_options.exitcode, 6);
    assert_int_equal(rf_options.verbosity, 2);
}

static void test_what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *part;
    } wrong[] = {
        { "nonsense=1", "unknown option 'nonsense'" },
        { "handle_segv=1", "unknown option 'handle_segv'" },
        { "exitcode", "'exitcode' has no value" },
        { "exitcode=x", "not a number" },
        { "exitcode=", "not a number" },
        { "exitcode=256", "not between 0 and 255" },
        { "exitcode=-1", "not between 0 and 255" },
        { "verbosity=99999999999999999999", "not a number" },
        { "halt_on_error=2", "neither 0 nor 1" },
        { "format=xml", "none of text|jsonl|sarif|junit" },
        { "format=tex", "none of" },
        { "format=", "none of" },
        { "format=text|jsonl", "none of" },
        { "log_path='a", "has no second '" },
        { "log_path='a'b", "a separator is missing" },
        { "include=/does/not/exist", "cannot be read" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_false(read_options(NULL, wrong[i].text));
        assert_non_null(strstr(said, wrong[i].part));
        assert_non_null(strstr(said, "REDFLAG_OPTIONS"));
    }
    assert_false(read_options("exitcode=x", NULL));
    assert_non_null(strstr(said, "TSAN_OPTIONS"));
}

static void test_what_only_tsan_knows(void **state)
{
    (void)state;
    assert_true(read_options("handle_segv=0:symbolize=1 exitcode=7:external_symbolizer_path=/usr/bin/llvm-symbolizer", NULL));
    assert_string_equal(said, "");
    assert_int_equal(rf_options.exitcode, 7);
    assert_string_equal(rf_options.external_symbolizer_path, "");
    assert_true(read_options("nonsense=1:exitcode=8", NULL));
    assert_string_equal(said, "TSAN_OPTIONS: unknown option 'nonsense' is ignored");
    assert_int_equal(rf_options.exitcode, 8);
    for (size_t i = 0; i < COUNT(tsan_only); i++)
        assert_null(find(tsan_only[i])); /* what we have ourselves has no business in that list */
}

static void test_files(void **state)
{
    char name[] = "/tmp/redflag-options-XXXXXX", text[256];
    (void)state;
    int file = mkstemp(name);
    assert_true(file >= 0);
    static const char content[] = "exitcode=9\nlog_path='x y'\nverbosity=1";
    assert_int_equal(write(file, content, sizeof content - 1), sizeof content - 1);
    close(file);
    snprintf(text, sizeof text, "verbosity=5:include=%s:include_if_exists=/does/not/exist:halt_on_error=1", name);
    assert_true(read_options(NULL, text));
    assert_int_equal(rf_options.exitcode, 9);
    assert_int_equal(rf_options.verbosity, 1);
    assert_string_equal(rf_options.log_path, "x y");
    assert_true(rf_options.halt_on_error);
    file = open(name, O_WRONLY | O_TRUNC);
    dprintf(file, "include=%s", name);
    close(file);
    snprintf(text, sizeof text, "include=%s", name);
    assert_false(read_options(NULL, text));
    assert_non_null(strstr(said, "too deeply"));
    unlink(name);
}

static void test_names_of_files(void **state)
{
    char full[256], expected[64];
    (void)state;
    fill_in("a%%p%p", full, sizeof full);
    snprintf(expected, sizeof expected, "a%%%d%d", (int)getpid(), (int)getpid());
    assert_string_equal(full, expected);
    fill_in("%d/%b", full, sizeof full);
    assert_int_equal(access(full, X_OK), 0);
    fill_in("%", full, sizeof full);
    assert_string_equal(full, "%");
    fill_in("abcdef", full, 4);
    assert_string_equal(full, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_separators_and_quotes),
        cmocka_unit_test(test_the_last_variable_counts),
        cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_what_only_tsan_knows),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_names_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
