/* The store in a file: leases, results that come twice, versions, export, spool. tests/cli/fleet.sh does the same with PostgreSQL and many
 * processes. With FLEET_STORE=postgresql://... these tests use that, a database that they may empty. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fleet/chance.h"
#include "fleet/results.h"
#include "fleet/schema.h"
#include "fleet/spool.h"
#include "fleet/store.h"

static char directory[] = "/tmp/redflag-fleet-XXXXXX";
static unsigned stores;

static const char *server(void)
{
    const char *set = getenv("FLEET_STORE");
    return set && *set ? set : NULL;
}

/* A store with nothing in it. */
static struct rf_store *fresh(char path[256])
{
    char error[512];
    enum rf_store_answer answer;
    if (server()) {
        struct rf_sql sql;
        snprintf(path, 256, "%s", server());
        assert_int_equal(rf_sql_open(&sql, path), RF_SQL_OK);
        assert_int_equal(
            rf_sql_run(&sql,
                       "DROP TABLE IF EXISTS redflag_schema; DROP TABLE IF EXISTS builds; DROP TABLE IF EXISTS sites;"
                       "DROP TABLE IF EXISTS pairs; DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS races;"
                       "DROP TABLE IF EXISTS sightings",
                       0, NULL, NULL, NULL),
            RF_SQL_OK);
        rf_sql_close(&sql);
    } else {
        snprintf(path, 256, "%s/%u.db", directory, stores++);
    }
    struct rf_store *store = rf_store_open(path, 0, &answer, error);
    if (!store)
        fail_msg("%s", error);
    return store;
}

static void give(struct rf_store *store, const char *text)
{
    json_error_t error;
    json_t *result = json_loads(text, 0, &error);
    if (!result)
        fail_msg("%s: %s", text, error.text);
    if (rf_store_apply(store, result) != RF_STORE_DONE)
        fail_msg("%s: %s", text, rf_store_error(store));
    json_decref(result);
}

static long long number(struct rf_store *store, const char *question)
{
    json_t *rows;
    assert_int_equal(rf_store_ask(store, question, 0, NULL, &rows), RF_STORE_DONE);
    long long value = strtoll(json_string_value(json_array_get(json_array_get(rows, 0), 0)), NULL, 10);
    json_decref(rows);
    return value;
}

static char *exported(struct rf_store *store)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(rf_store_export(store, out), RF_STORE_DONE);
    fclose(out);
    return text;
}

#define PAIR(a, b, more) "{\"redflag\": \"pair\", \"first\": \"" a "\", \"second\": \"" b "\"" more "}"
#define REPORT(print)                                                                                                                 \
    "{\"tool\": \"redflag\", \"kind\": \"data-race\", \"title\": \"data race\", \"fingerprint\": \"" print                            \
    "\", \"accesses\": ["                                                                                                             \
    "{\"stack\": [{\"function\": \"f\", \"file\": \"a.c\", \"line\": 3, \"module\": \"/bin/a\", \"offset\": \"0x10\", \"build_id\": " \
    "\"b1\"}]}, {\"stack\": [{\"function\": \"g\", \"file\": \"a.c\", \"line\": 9, \"module\": \"/bin/a\", \"offset\": \"0x20\", "    \
    "\"build_id\": \"b1\"}]}]}"

static void test_leases_are_exclusive_and_end(void **state)
{
    (void)state;
    char path[256];
    struct rf_store *store = fresh(path);
    struct rf_leased pair;
    give(store, "[" PAIR("b1+0x1", "b1+0x2", "") "," PAIR("b1+0x3", "b1+0x4",
                                                          ", \"priority\": 5") "," PAIR("b2+0x1", "b2+0x2", "") "]");
    assert_int_equal(rf_store_lease(store, "r1", NULL, 600, &pair), RF_STORE_DONE);
    assert_string_equal(pair.first, "b1+0x3"); /* the highest priority */
    assert_int_equal(rf_store_lease(store, "r1", NULL, 600, &pair), RF_STORE_DONE);
    assert_string_equal(pair.first, "b1+0x3"); /* the same again */
    assert_int_equal(rf_store_lease(store, "r2", "b2", 0, &pair), RF_STORE_DONE);
    assert_string_equal(pair.first, "b2+0x1"); /* of this build; its lease is over at once */
    assert_int_equal(rf_store_lease(store, "r3", "b2", 600, &pair), RF_STORE_DONE);
    assert_string_equal(pair.first, "b2+0x1");
    assert_int_equal(rf_store_lease(store, "r4", "b2", 600, &pair), RF_STORE_NOTHING);
    assert_int_equal(rf_store_lease(store, "r4", NULL, 600, &pair), RF_STORE_DONE);
    assert_string_equal(pair.first, "b1+0x1");
    assert_int_equal(rf_store_lease(store, "r5", NULL, 600, &pair), RF_STORE_NOTHING);
    assert_int_equal(rf_store_give_back(store, "r4"), RF_STORE_DONE);
    assert_int_equal(rf_store_lease(store, "r5", NULL, 600, &pair), RF_STORE_DONE);
    assert_string_equal(pair.first, "b1+0x1");
    /* A run that ends gives its pair back, and the pair has one run more. */
    give(store, "{\"redflag\": \"run\", \"id\": \"r5\", \"mode\": \"chase\", \"pair\": [\"b1+0x1\", \"b1+0x2\"]}");
    assert_int_equal(rf_store_lease(store, "r6", "b1", 600, &pair), RF_STORE_DONE);
    assert_string_equal(pair.first, "b1+0x1");
    assert_int_equal(pair.runs, 1);
    rf_store_close(store);
}

static void test_results_twice_are_once(void **state)
{
    (void)state;
    char path[256];
    struct rf_store *store = fresh(path);
    struct rf_leased pair;
    static const char run[] =
        "{\"redflag\": \"run\", \"id\": \"r1\", \"mode\": \"run\", \"host\": \"h\", \"started\": 1000, \"seconds\": 1.5,"
        " \"reports\": [" REPORT("f1") "," REPORT("f1") "," REPORT("f2") "]}";
    give(store, PAIR("b1+0x20", "b1+0x10", ""));
    for (int i = 0; i < 2; i++) {
        give(store, run);
        assert_int_equal(number(store, "SELECT count(*) FROM races"), 2);
        assert_int_equal(number(store, "SELECT sum(times) FROM sightings"), 3);
        assert_int_equal(number(store, "SELECT count(*) FROM runs"), 1);
        assert_int_equal(number(store, "SELECT count(*) FROM sites"), 2);
        assert_int_equal(number(store, "SELECT count(*) FROM builds"), 1);
    }
    /* The race confirms its pair, in either order: there is nothing to look for any more. */
    assert_int_equal(rf_store_lease(store, "r2", NULL, 600, &pair), RF_STORE_NOTHING);
    /* The same race in another build, on another day. */
    give(
        store,
        "{\"redflag\": \"run\", \"id\": \"r3\", \"mode\": \"run\", \"host\": \"i\", \"started\": 500, \"reports\": [" REPORT(
            "f1") "]}");
    assert_int_equal(number(store, "SELECT count(*) FROM races"), 2);
    assert_int_equal(number(store, "SELECT first_seen FROM races WHERE fingerprint = 'f1'"), 500);
    assert_int_equal(number(store, "SELECT last_seen FROM races WHERE fingerprint = 'f1'"), 1000);
    rf_store_close(store);
}

static void test_a_pair_never_goes_back(void **state)
{
    (void)state;
    char path[256];
    struct rf_store *store = fresh(path);
    give(store, PAIR("s1", "s2", ", \"stage\": \"static\", \"priority\": 3"));
    give(store, PAIR("s1", "s2", ", \"stage\": \"dynamic\", \"priority\": 1"));
    give(store, PAIR("s1", "s2", ", \"stage\": \"static\""));
    assert_int_equal(number(store, "SELECT count(*) FROM pairs WHERE stage = 'dynamic' AND priority = 3"), 1);
    assert_int_equal(number(store, "SELECT count(*) FROM pairs"), 1);
    rf_store_close(store);
}

static void test_all_or_nothing(void **state)
{
    (void)state;
    char path[256];
    struct rf_store *store = fresh(path);
    json_t *results = json_loads("[" PAIR("s1", "s2", "") ", {\"redflag\": \"pair\", \"first\": \"s3\"}]", 0, NULL);
    assert_int_equal(rf_store_apply(store, results), RF_STORE_WRONG);
    assert_non_null(strstr(rf_store_error(store), "'pair' has no good 'second'"));
    assert_int_equal(number(store, "SELECT count(*) FROM pairs"), 0);
    json_decref(results);
    rf_store_close(store);
}

static void test_export_is_everything(void **state)
{
    (void)state;
    char path[256], other_path[256];
    if (server())
        skip(); /* it has one database only */
    struct rf_store *store = fresh(path), *other = fresh(other_path);
    give(
        store,
        "[" PAIR(
            "b1+0x20", "b1+0x10",
            ", \"priority\": 7, \"stage\": \"dynamic\"") ","
                                                         "{\"redflag\": \"run\", \"id\": \"r1\", \"mode\": \"pacer\", \"rate\": 0.25, \"host\": \"h\", \"started\": 1000, \"seconds\": "
                                                         "1.5, \"status\": 66, \"reports\": [" REPORT("f1") "]}]");
    char *text = exported(store);
    for (int i = 0; i < 2; i++) {
        char *rest = strdup(text), *more = NULL;
        for (char *line = strtok_r(rest, "\n", &more); line; line = strtok_r(NULL, "\n", &more))
            give(other, line);
        free(rest);
        char *again = exported(other);
        assert_string_equal(again, text);
        free(again);
    }
    assert_int_equal(number(other, "SELECT count(*) FROM pairs WHERE race = 'f1'"), 1);
    free(text);
    rf_store_close(store);
    rf_store_close(other);
}

static void test_versions(void **state)
{
    (void)state;
    char path[256], error[512], text[96];
    enum rf_store_answer answer;
    struct rf_sql sql;
    struct rf_store *store = fresh(path);
    give(store, PAIR("s1", "s2", ""));
    rf_store_close(store);
    /* Opening again changes nothing. */
    assert_non_null(store = rf_store_open(path, 0, &answer, error));
    assert_int_equal(number(store, "SELECT count(*) FROM pairs"), 1);
    assert_int_equal(number(store, "SELECT count(*) FROM redflag_schema"), rf_schema_version);
    rf_store_close(store);
    assert_int_equal(rf_sql_open(&sql, path), RF_SQL_OK);
    snprintf(text, sizeof text, "INSERT INTO redflag_schema (version) VALUES (%u)", rf_schema_version + 1);
    assert_int_equal(rf_sql_run(&sql, text, 0, NULL, NULL, NULL), RF_SQL_OK);
    rf_sql_close(&sql);
    assert_null(rf_store_open(path, 0, &answer, error));
    assert_int_equal(answer, RF_STORE_WRONG);
    assert_non_null(strstr(error, "a newer one made it"));
}

static void test_not_a_store(void **state)
{
    (void)state;
    char path[256], error[512];
    enum rf_store_answer answer;
    snprintf(path, sizeof path, "%s/text", directory);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("This is no database. ", file);
    fclose(file);
    assert_null(rf_store_open(path, 0, &answer, error));
    assert_int_equal(answer, RF_STORE_WRONG);
    assert_non_null(strstr(error, "not a database"));
    assert_null(rf_store_open("/nowhere/at/all.db", 0, &answer, error));
    assert_int_equal(answer, RF_STORE_OUT_OF_REACH);
    assert_non_null(strstr(error, "/nowhere/at/all.db: cannot be opened or made"));
    assert_null(rf_store_open("postgresql:///none?host=/nowhere", 0, &answer, error));
    assert_int_equal(answer, RF_STORE_OUT_OF_REACH);
    assert_null(strchr(error, '\n'));
}

static void test_spool(void **state)
{
    (void)state;
    char path[256], spool[256], beside[300], error[512], line[256];
    struct rf_spooled count;
    struct rf_store *store = fresh(path);
    snprintf(spool, sizeof spool, "%s/spool", directory);
    snprintf(beside, sizeof beside, "%s.refused", spool);
    assert_int_equal(rf_spool_merge(store, spool, false, &count, error), RF_STORE_DONE);
    for (int i = 0; i < 600; i++) {
        snprintf(line, sizeof line, PAIR("a%d", "b%d", ""), i, i);
        if (i % 200 == 0) /* fsync is slow, and one is like another */
            assert_true(rf_spool_add(spool, line, error));
        else {
            FILE *file = fopen(spool, "a");
            fprintf(file, "%s\n", line);
            fclose(file);
        }
    }
    assert_true(rf_spool_add(spool, "{\"redflag\": \"pair\", \"first\": \"lonely\"}", error));
    FILE *file = fopen(spool, "a");
    fputs("{\"redflag\": \"pair\", \"first\": \"cut o", file);
    fclose(file);
    assert_true(rf_spool_add(spool, PAIR("last", "one", ""), error));
    assert_int_equal(rf_spool_merge(store, spool, false, &count, error), RF_STORE_DONE);
    assert_int_equal(count.applied, 601);
    assert_int_equal(count.damaged, 1);
    assert_int_equal(count.refused, 1);
    assert_int_equal(number(store, "SELECT count(*) FROM pairs"), 601);
    assert_int_equal(rf_spool_merge(store, spool, false, &count, error), RF_STORE_DONE);
    assert_int_equal(count.applied + count.damaged, 0);
    assert_non_null(file = fopen(beside, "r"));
    assert_non_null(fgets(line, sizeof line, file));
    assert_non_null(strstr(line, "lonely"));
    fclose(file);
    assert_false(rf_spool_add("/dev/full", "{}", error));
    assert_string_equal(error, "/dev/full: No space left on device");
    rf_store_close(store);
}

static void test_reports_of_a_file(void **state)
{
    (void)state;
    char path[256], error[160];
    struct rf_store *store = fresh(path);
    static const char text[] = REPORT("f1") "\n{\"tool\": \"redflag\", \"kind\": \"summary\"}\n" REPORT("f2") "\n";
    for (int i = 0; i < 2; i++) {
        json_t *run = rf_result_of_reports(text, sizeof text - 1, error);
        assert_int_equal(rf_store_apply(store, run), RF_STORE_DONE);
        json_decref(run);
    }
    assert_int_equal(number(store, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(number(store, "SELECT count(*) FROM races"), 2);
    assert_null(rf_result_of_reports("{}\n{", 4, error));
    assert_memory_equal(error, "line 2: ", 8);
    rf_store_close(store);
}

static void test_chances(void **state)
{
    (void)state;
    struct rf_interval share = rf_chance_share(8, 10); /* the textbook's numbers */
    assert_true(fabs(share.low - 0.4902) < 1e-4 && fabs(share.high - 0.9433) < 1e-4 && share.middle == 0.8);
    assert_true(rf_chance_share(0, 0).low == 0 && rf_chance_share(0, 0).high == 1);
    assert_true(rf_chance_share(0, 5).low == 0 && rf_chance_share(5, 5).high == 1);
    assert_true(fabs(rf_chance_found(0.5, 0.5, 2) - 0.4375) < 1e-12);
    assert_true(rf_chance_found(1, 1, 1) == 1 && rf_chance_found(0.5, 0.5, 0) == 0);
    assert_true(fabs(rf_chance_found(1, rf_chance_unseen(7), 7) - 0.95) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leases_are_exclusive_and_end),
        cmocka_unit_test(test_results_twice_are_once),
        cmocka_unit_test(test_a_pair_never_goes_back),
        cmocka_unit_test(test_all_or_nothing),
        cmocka_unit_test(test_export_is_everything),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_not_a_store),
        cmocka_unit_test(test_spool),
        cmocka_unit_test(test_reports_of_a_file),
        cmocka_unit_test(test_chances),
    };
    if (!mkdtemp(directory))
        return 1;
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command) ? 1 : status;
}
