/* The simulated hardware, part by part: the example of Table 3.1, settings, coherence and its cost, clocks, the software layer's
 * choices, LARDISH, identities, and memory.
 */
#include "tests/unit/hardware_runs.h"
#include "tests/unit/hardware_table.h"
#include "trace/generate.h"

#include <unistd.h>

static struct rf_simulation sim;

static void table_3_1(void **state)
{
    const char *row = "", *column = "";
    (void)state;
    if (!table_holds(0, &row, &column))
        fail_msg("Table 3.1, %s, %s", row, column);
}

/* "An immediate write by p0 would race": the coherence message of the write downgrades p0's WRITE, and the check finds p1's read. */
static void table_3_1_race(void **state)
{
    static struct table t;
    (void)state;
    table_begin(&t, 0);
    table_step(&t, 1);
    table_step(&t, 2);
    assert_int_equal(rf_cell(&t.radish.layout, table_line(&t, 0), RF_PERMISSIONS, table_cell(&t)), RF_PERMIT_WRITE);
    struct rf_access write = table_access(&t, true);
    rf_radish_access(&t.radish, 0, &write);
    assert_int_equal(t.races, 1);
    assert_int_equal(t.radish.counts.checks.hardware, 1); /* and no software was needed to know */
    rf_radish_free(&t.radish);
    rf_memory_end(&test_memory);
}

/* ---- caches ---- */

/* Least recently used goes first, free ways before all others: the bytes of rf_cache against a list, for numbers of ways that fill a
 * word, do not, and take several. */
static void least_recently_used(void **state)
{
    static const uint32_t all[] = { 1, 2, 3, 8, 9, 12, 16, 33, 64 };
    uint64_t random = 11;
    (void)state;
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++) {
        struct rf_config config;
        struct rf_machine machine;
        uint64_t ways = all[n];
        rf_key list[64]; /* the one used last first */
        uint32_t count = 0;
        rf_config_defaults(&config);
        config.l1_bytes = config.line_bytes * ways;
        config.l1_ways = ways;
        rf_machine_init(&machine, &config, 0);
        struct rf_cache *cache = &machine.l1[0];
        for (uint32_t step = 0; step < 4000; step++) {
            rf_key key = rf_key_data(random_below(&random, 2 * (uint32_t)ways));
            uint32_t at = 0;
            while (at < count && list[at] != key)
                at++;
            size_t place = rf_cache_find(cache, RF_PRIVATE, key);
            assert_int_equal(place != RF_NOWHERE, at < count);
            if (random_below(&random, 4) == 0 && at < count) { /* it goes */
                rf_cache_clear(cache, RF_PRIVATE, place);
                count--;
                memmove(&list[at], &list[at + 1], (count - at) * sizeof list[0]);
                continue;
            }
            if (at < count) {
                rf_cache_touch(cache, RF_PRIVATE, place);
            } else {
                place = rf_cache_place(cache, RF_PRIVATE, 0, 0);
                assert_int_equal(*rf_cache_key(cache, RF_PRIVATE, place), count < ways ? 0 : list[count - 1]);
                if (ways > 1 && count == ways) {
                    size_t other = rf_cache_place(cache, RF_PRIVATE, 0, list[count - 1]); /* the last one is pinned */
                    assert_int_equal(*rf_cache_key(cache, RF_PRIVATE, other), list[count - 2]);
                }
                rf_cache_put(cache, RF_PRIVATE, place, key, RF_SHARED);
                at = count < ways ? count++ : count - 1;
            }
            memmove(&list[1], &list[0], at * sizeof list[0]);
            list[0] = key;
        }
        rf_machine_free(&machine);
    }
}

/* ---- clocks ---- */

/* Which clock a time gets, as a search through all of them finds it. */
static uint32_t searched(const struct rf_clock_table *table, uint64_t time, uint32_t limit)
{
    for (uint32_t clock = 1; clock < limit; clock++)
        if (table->times[clock] == time && (table->references[clock] || clock == table->current))
            return clock;
    for (uint32_t tried = 1, clock = 1 + table->next; tried < limit; tried++) {
        clock = clock + 1 < limit ? clock + 1 : 1;
        if (!table->references[clock] && clock != table->current)
            return clock;
    }
    return 0;
}

static void clocks_are_found(void **state)
{
    uint64_t random = 5;
    (void)state;
    for (uint32_t bits = 2; bits <= 6; bits++) {
        struct rf_clock_table table = { .current = 0 };
        uint32_t limit = 1u << bits, full = 0, old = 0;
        rf_clock_table_init(&table);
        for (uint64_t step = 0; step < 20000; step++) {
            /* now; or lately; or a time whose low bits others have too */
            uint64_t apart = random_below(&random, 4) ? 1 : 256, back = random_below(&random, 2) ? random_below(&random, 3) : 0;
            uint64_t time = 1000 + step / 4 - back * apart;
            uint32_t expected = searched(&table, time, limit), clock = rf_clock_for(&table, time, limit, 0);
            assert_int_equal(clock, expected);
            full += !clock;
            old += clock && table.references[clock];
            if (clock && random_below(&random, 3))
                rf_clock_gains(&table, clock, 1 + random_below(&random, 8));
            if (clock && !random_below(&random, 4))
                table.current = clock;
            uint32_t other = 1 + random_below(&random, limit - 1);
            if (table.references[other] && random_below(&random, 2))
                rf_clock_loses(&table, other, random_below(&random, 2) ? table.references[other] : 1);
        }
        assert_true(full > 100 && old > 100);
    }
}

/* The lists of lines by clock: all that have it are there, and what has left does not fill them. */
static void users_are_kept(void **state)
{
    enum { LINES = 300 };
    struct rf_pool chunks;
    struct rf_users users = { .chunks = &chunks, .memory = &test_memory, .slot = 3, .limit = 64 };
    struct rf_metadata *lines = calloc(LINES, sizeof *lines);
    uint64_t random = 9;
    (void)state;
    rf_pool_init(&chunks, sizeof(struct rf_users_chunk), 0);
    for (uint32_t i = 0; i < LINES; i++)
        lines[i].slot = 3;
    for (uint32_t step = 0; step < 200000; step++) {
        struct rf_metadata *line = &lines[random_below(&random, LINES)];
        uint32_t clock = 1 + random_below(&random, 7);
        if (!random_below(&random, 3))
            line->used = 0; /* it leaves, and another comes */
        if (!(line->used >> clock & 1))
            rf_users_add(&users, line, clock);
        assert_true(users.entries <= 2 * 7 * LINES + 1024);
    }
    for (uint32_t clock = 1; clock < 8; clock++) {
        uint64_t bit = UINT64_C(1) << clock;
        for (struct rf_metadata *line; (line = rf_users_take(&users, &users.of[clock]));)
            line->used &= ~bit;
    }
    assert_int_equal(users.entries, 0);
    for (uint32_t i = 0; i < LINES; i++)
        assert_int_equal(lines[i].used, 0);
    free(lines);
}

/* ---- settings ---- */

static void refuses(const char *setting, const char *expected)
{
    struct rf_config config;
    char message[400] = "";
    rf_config_defaults(&config);
    bool good = rf_config_set(&config, setting, message, sizeof message) && rf_config_check(&config, message, sizeof message);
    if (good || !strstr(message, expected))
        fail_msg("%s: '%s' is not '%s'", setting, message, expected);
    rf_config_free(&config);
}

static void settings(void **state)
{
    struct rf_config config, again;
    char message[400], *text = NULL;
    size_t size;
    (void)state;
    rf_config_defaults(&config);
    assert_true(rf_config_check(&config, message, sizeof message));
    assert_true(rf_config_set(&config, " llc_bytes = 8M ", message, sizeof message));
    assert_true(rf_config_set(&config, "flush=eager", message, sizeof message));
    assert_true(rf_config_set(&config, "race_free=0x1000-0x3000", message, sizeof message));
    assert_true(rf_config_set(&config, "untracked=main.c", message, sizeof message));
    assert_int_equal(config.llc_bytes, 8 << 20);

    /* What is printed can be read. */
    FILE *out = open_memstream(&text, &size);
    rf_config_print(&config, out);
    fclose(out);
    char path[] = "/tmp/redflag-config-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, text, size) == (ssize_t)size);
    close(file);
    rf_config_defaults(&again);
    assert_true(rf_config_read(&again, path, message, sizeof message));
    unlink(path);
    free(text);
    assert_memory_equal(&config, &again, offsetof(struct rf_config, race_free));
    assert_int_equal(again.race_free_count, 1);
    assert_int_equal(again.race_free[0].end, 0x3000);
    assert_string_equal(again.untracked[0], "main.c");
    rf_config_free(&config);
    rf_config_free(&again);

    refuses("cores=0", "cores takes a number from 1 to 64, not '0'");
    refuses("cores=99999999999999999999", "cores takes a number");
    refuses("cores=-1", "cores takes a number");
    refuses("cores=4x", "cores takes a number");
    refuses("flush=never", "flush takes eager|lazy, not 'never'");
    refuses("colour=red", "there is no setting 'colour'");
    refuses("cores", "a setting is NAME=VALUE");
    refuses("cores=", "cores has no value");
    refuses("line_bytes=48", "line_bytes must be a power of two");
    refuses("l1_bytes=1M", "a cache holds all that is in the one before");
    refuses("llc_ways=3", "llc_bytes must be");
    refuses("page_bytes=257", "page_bytes must be a power of two");
    refuses("race_free=0x2000-0x1000", "race_free takes two addresses");
    assert_false(rf_config_read(&config, "/nonexistent/file", message, sizeof message));
    assert_non_null(strstr(message, "/nonexistent/file: No such file"));
}

/* ---- coherence, and what it costs ---- */

static void coherence(void **state)
{
    struct rf_config config;
    struct rf_machine m;
    (void)state;
    rf_config_defaults(&config);
    config.cores = 3;
    rf_machine_init(&m, &config, 0);
    assert_int_equal(rf_machine_access(&m, 0, 7, false), 120); /* from memory: exclusive */
    assert_true(m.bus);
    assert_int_equal(rf_machine_access(&m, 0, 7, true), 1); /* exclusive: nobody need know */
    assert_false(m.bus);
    assert_int_equal(rf_machine_access(&m, 1, 7, false), 35 + 10); /* out of core 0's cache: shared */
    assert_int_equal(m.traffic.transfers, 1);
    assert_int_equal(rf_machine_access(&m, 2, 7, false), 35);
    assert_int_equal(rf_machine_access(&m, 0, 7, false), 1);
    assert_int_equal(rf_machine_access(&m, 0, 7, true), 1 + 10); /* an upgrade */
    assert_int_equal(m.traffic.upgrades, 1);
    assert_int_equal(rf_machine_access(&m, 1, 7, true), 35 + 10); /* the others have lost it */
    assert_int_equal(rf_machine_access(&m, 2, 7, false), 35 + 10);
    rf_machine_free(&m);

    /* Two ways of one set: the oldest goes, from all levels. */
    config.l1_ways = config.l2_ways = 1;
    config.llc_ways = 2;
    config.l1_bytes = config.l2_bytes = 64;
    config.llc_bytes = 128;
    rf_machine_init(&m, &config, 0);
    rf_machine_access(&m, 0, 1, true);
    rf_machine_access(&m, 1, 2, false);
    rf_machine_access(&m, 2, 3, false);
    assert_int_equal(m.traffic.data_evictions, 1);
    assert_int_equal(m.traffic.write_backs, 1);
    assert_int_equal(rf_machine_access(&m, 0, 1, false), 120);
    assert_int_equal(rf_machine_access(&m, 2, 3, false), 1);
    rf_machine_free(&m);
}

/* ---- whole traces ---- */

/* Runs a trace, with settings "a=b c=d". The caller frees `sim`. */
static void simulate(const char *text, const char *words)
{
    struct rf_config config;
    char message[400] = "", *copy = strdup(words), *rest = copy, *word, *error = NULL;
    rf_config_defaults(&config);
    while ((word = strsep(&rest, " ")))
        if (*word && !rf_config_set(&config, word, message, sizeof message))
            fail_msg("%s", message);
    if (!rf_config_check(&config, message, sizeof message))
        fail_msg("%s", message);
    rf_simulation_init(&sim, &config, 0);
    rf_config_free(&config);
    free(copy);
    struct rf_reader *reader = rf_reader_open_memory(text, strlen(text), RF_FORMAT_STD, &error);
    assert_non_null(reader);
    sim.site_name = (const char *(*)(const void *, uint32_t))(void (*)(void))rf_reader_site;
    sim.names = reader;
    assert_int_equal(rf_simulate(reader, &sim, 1, NULL, NULL), RF_TRACE_END);
    rf_reader_close(reader);
}

static void expect_checks(uint64_t permission, uint64_t hardware, uint64_t software, uint64_t races)
{
    struct rf_checks got = sim.radish.counts.checks;
    uint64_t found = sim.race_count;
    rf_simulation_free(&sim);
    if (got.permission != permission || got.hardware != hardware || got.software != software || found != races)
        fail_msg("permission %llu, hardware %llu, software %llu, races %llu", (unsigned long long)got.permission,
                 (unsigned long long)got.hardware, (unsigned long long)got.software, (unsigned long long)found);
}

static void stages(void **state)
{
    (void)state;
    /* The first access of a line asks software, which gives permissions for all of the metadata line: 32 bytes. */
    simulate("1|w(0x1000:8)\n1|r(0x1000:8)\n1|w(0x1018:8)\n1|w(0x1020:8)\n1|w(0x1038:8)\n", "");
    expect_checks(3, 0, 2, 0);
    /* Ordered sharing: the reader has permission at its fill; the writer's upgrade goes to hardware, once. */
    simulate("1|acq(l)\n1|w(0x1000:8)\n1|rel(l)\n2|acq(l)\n2|r(0x1000:8)\n2|w(0x1000:8)\n2|w(0x1000:8)\n", "");
    expect_checks(2, 1, 1, 0);
    /* A read after some last read needs no last write: it was evicted, but the reads that came after it were not. */
    simulate("1|w(0x1000:8)\n1|fork(2)\n2|r(0x1000:8)\n2|r(0x1000:8)\n", "");
    expect_checks(2, 0, 1, 0);
    /* A race that hardware knows. */
    simulate("1|w(0x1000:8)\n2|r(0x1000:8)\n", "");
    expect_checks(0, 1, 1, 1);
    /* Nobody else's bytes. */
    simulate("1|w(0x1000:1)\n2|w(0x1001:1)\n", "");
    expect_checks(1, 0, 1, 0);
}

/* Two cores read a line; it leaves all private caches, and comes back to one of them. The other still may read. */
static void permissions_stay(void **state)
{
    (void)state;
    simulate("1|w(0x1000:8)\n1|fork(2)\n1|fork(3)\n2|r(0x1000:8)\n3|r(0x1000:8)\n2|r(0x2000:8)\n3|r(0x2000:8)\n1|r(0x3000:8)\n"
             "2|r(0x1000:8)\n3|r(0x1000:8)\n",
             "l1_bytes=64 l1_ways=1 l2_bytes=64 l2_ways=1 page_bytes=4096");
    expect_checks(5, 0, 3, 0);
}

/* What was written before and is handed over with a lock costs one check in software for the line, then broadcasts. */
static void ordered_writes(void **state)
{
    (void)state;
    simulate("1|w(0x1000:8)\n1|w(0x1008:8)\n1|w(0x1010:8)\n1|fork(2)\n1|fork(3)\n2|w(0x1000:8)\n2|w(0x1008:8)\n2|w(0x1010:8)\n"
             "2|w(0x1010:8)\n3|r(0x1010:8)\n",
             "cores=1 flush=lazy");
    expect_checks(3, 2, 3, 1);
}

static void no_check_needed(void **state)
{
    const char *racy = "1|w(0x1000:8)|a.c:1\n2|w(0x1000:8)|b.c:2\n";
    (void)state;
    simulate(racy, "");
    expect_checks(0, 1, 1, 1);
    simulate(racy, "race_free=0x1000-0x2000");
    assert_int_equal(sim.radish.counts.checks.untracked, 2);
    assert_int_equal(sim.radish.machine.traffic.metadata_fills, 0);
    expect_checks(0, 0, 0, 0);
    simulate(racy, "race_free=0x1000-0x1fff"); /* not all of the page */
    expect_checks(0, 1, 1, 1);
    simulate(racy, "untracked=b.");
    expect_checks(0, 0, 1, 0);
}

static void compact_lines(void **state)
{
    (void)state;
    simulate("1|w(0x1000:8)\n1|w(0x1020:8)\n", "encoding=full");
    assert_int_equal(sim.radish.machine.traffic.metadata_fills, 2);
    expect_checks(0, 0, 2, 0);
    simulate("1|w(0x1000:8)\n1|w(0x1020:8)\n", "encoding=compact");
    assert_int_equal(sim.radish.machine.traffic.metadata_fills, 1);
    expect_checks(1, 0, 1, 0);
    simulate("1|w(0x1000:2)\n2|w(0x1002:2)\n", "encoding=compact");
    expect_checks(1, 0, 1, 0);
    simulate("1|w(0x1000:8)\n2|w(0x1001:1)\n", "encoding=compact");
    assert_int_equal(sim.radish.counts.splits, 1);
    assert_int_equal(sim.races[0].addr, 0x1001);
    assert_int_equal(sim.races[0].size, 1);
    expect_checks(0, 0, 2, 1);
}

static void clocks_roll_over(void **state)
{
    char text[8192], *end = text;
    (void)state;
    for (int i = 0; i < 100; i++)
        end += sprintf(end, "1|acq(l)\n1|w(0x%x:8)\n1|rel(l)\n", 0x1000 + 64 * i);
    simulate(text, "");
    assert_int_equal(sim.radish.counts.roll_overs, 3); /* 63 times fit; then 15 go at a time */
    assert_int_equal(sim.radish.counts.flushed_lines, 45);
    expect_checks(0, 0, 100, 0);
    /* As long as no cell refers to a time it may go. */
    for (end = text; end < text + 7000;)
        end += sprintf(end, "1|acq(l)\n1|w(0x1000:8)\n1|rel(l)\n");
    simulate(text, "");
    assert_int_equal(sim.radish.counts.roll_overs, 0);
    rf_simulation_free(&sim);
}

/* Two threads that take turns on one core. */
static void switches(void **state)
{
    const char *turns = "1|acq(l)\n1|w(0x1000:8)\n1|rel(l)\n2|acq(l)\n2|r(0x1100:8)\n2|rel(l)\n1|acq(l)\n1|w(0x1000:8)\n1|rel(l)\n";
    (void)state;
    simulate(turns, "cores=1 flush=eager");
    assert_int_equal(sim.switches, 2);
    assert_int_equal(sim.radish.counts.flushed_lines, 2);
    expect_checks(0, 0, 3, 0);
    simulate(turns, "cores=1 flush=lazy"); /* its line is still there; its permission is not, but it is soon back */
    assert_int_equal(sim.switches, 2);
    assert_int_equal(sim.radish.counts.flushed_lines, 0);
    expect_checks(1, 0, 2, 0);
    simulate(turns, "cores=2");
    assert_int_equal(sim.switches, 0);
    expect_checks(1, 0, 2, 0);
}

/* Hand-over of a line by lazy switching: software must first flush what the thread that left has. */
static void strangers(void **state)
{
    (void)state;
    simulate("1|w(0x1000:8)\n2|r(0x1000:8)\n", "cores=1 flush=lazy");
    assert_int_equal(sim.radish.counts.flushed_lines, 1);
    expect_checks(0, 0, 2, 1);
}

/* ---- costs ---- */

static uint64_t cycles_of(const char *text, const char *words)
{
    simulate(text, words);
    uint64_t cycles = rf_simulation_cycles(&sim, RF_WITH);
    rf_simulation_free(&sim);
    return cycles;
}

static void costs(void **state)
{
    const char *one = "1|w(0x1000:8)\n";
    const char *same = "work_cycles=0 l1_cycles=1 entry_cycles=0";
    (void)state;
    simulate(one, same);
    assert_int_equal(rf_simulation_cycles(&sim, RF_WITHOUT), 120);
    /* The miss hides the metadata's fill; then software: 100 to enter, and its directory comes from memory. */
    assert_int_equal(rf_simulation_cycles(&sim, RF_WITH), 120 + 100 + 120);
    rf_simulation_free(&sim);
    /* A permitted access costs what it costs without RADISH. */
    assert_int_equal(cycles_of("1|w(0x1000:8)\n1|w(0x1000:8)\n", same) - cycles_of(one, same), 1);
    /* Another core runs the handler; this one only asks. */
    assert_int_equal(cycles_of(one, "work_cycles=0 entry_cycles=0 cores=1 handlers=other"), 120 + 100 + 120);
    simulate(one, "work_cycles=0 entry_cycles=0 cores=2 handlers=other");
    assert_int_equal(sim.times[RF_WITH][0], 120);
    assert_int_equal(sim.times[RF_WITH][1], 100 + 120);
    rf_simulation_free(&sim);
    /* ClearHistory: 100 cycles, whatever it finds; more for what it finds in a cache. */
    assert_int_equal(cycles_of("1|alloc(0x1000:64)\n", same), 100);
    uint64_t cached = cycles_of("1|w(0x1000:8)\n1|alloc(0x1000:32)\n", same) - cycles_of(one, same);
    assert_int_equal(cached, 100 + 35 + 1); /* the line in the last level, the directory in the first */
    assert_true(cycles_of("1|w(0x1000:8)\n1|copy(0x1000,0x2000:32)\n", same) - cycles_of(one, same) > 100 + 35 + 100);
}

/* A waiting thread's time passes, too. */
static void waiting(void **state)
{
    (void)state;
    simulate("1|acq(l)\n1|w(0x1000:8)\n1|w(0x2000:8)\n1|w(0x3000:8)\n1|rel(l)\n2|acq(l)\n", "");
    assert_true(sim.times[RF_WITHOUT][1] > sim.times[RF_WITHOUT][0] - 50);
    assert_true(sim.times[RF_WITH][1] >= sim.times[RF_WITH][0]);
    rf_simulation_free(&sim);
}

/* ---- LARDISH ---- */

static void histories_are_cleared_and_copied(void **state)
{
    (void)state;
    simulate("1|w(0x1000:8)\n1|alloc(0x1000:8)\n2|w(0x1000:8)\n", "");
    expect_checks(0, 0, 2, 0); /* the line went through software, since only a part of it was cleared */
    simulate("1|w(0x1000:8)\n1|w(0x1008:8)\n1|alloc(0x1000:8)\n2|w(0x1008:8)\n", "");
    expect_checks(1, 0, 2, 1); /* the other part is still known */
    simulate("1|w(0x1000:8)\n1|copy(0x1000,0x2004:8)\n2|w(0x2004:4)\n2|w(0x2000:4)\n", "");
    assert_int_equal(sim.races[0].addr, 0x2004);
    assert_int_equal(sim.races[0].size, 4);
    rf_simulation_free(&sim);
    simulate("1|w(0x1000:8)\n2|free(0x1000:64)\n", "");
    assert_int_equal(sim.race_count, 1);
    assert_int_equal(sim.races[0].size, 8);
    rf_simulation_free(&sim);
}

static uint32_t used_cores(void)
{
    uint32_t used = 0;
    for (uint32_t core = 0; core < sim.config.cores; core++)
        used += sim.cores[core].carrier != RF_UNKNOWN;
    return used;
}

/* Thread K performs 1, then 2, on one core: a switch of identity each time, and a race between the two. */
static void identities(void **state)
{
    const char *text = "K|ident(1)\nK|w(0x1000:8)\nK|ident(2)\nK|r(0x1000:8)\nJ|r(0x2000:8)\n";
    (void)state;
    simulate(text, "cores=4");
    assert_int_equal(sim.identities, 1);
    assert_int_equal(sim.switches, 0);
    assert_int_equal(sim.race_count, 1);
    assert_int_equal(used_cores(), 2); /* K's and J's */
    rf_simulation_free(&sim);
    simulate("1|w(0x1000:8)\nK|ident(1)\nK|w(0x1000:8)\n", "cores=4");
    assert_int_equal(sim.race_count, 0);
    assert_int_equal(used_cores(), 1); /* K's: 1 acts there, and has left its own */
    rf_simulation_free(&sim);
}

/* ---- memory ---- */

static bool feed(void *context, uint64_t number, const struct rf_event *event)
{
    struct rf_batch batch = { .events = event, .count = 1, .base = number };
    rf_simulation_run(context, &batch);
    return true;
}

static size_t bytes_after(uint64_t length)
{
    struct rf_generate_options options;
    struct rf_config config;
    rf_generate_defaults(&options, RF_SHAPE_PROGRAM);
    options.length = length;
    options.variables = 200; /* few enough that all have been touched by all threads soon */
    rf_config_defaults(&config);
    rf_simulation_init(&sim, &config, 0);
    rf_generate(&options, feed, &sim);
    size_t bytes = sim.memory.bytes;
    rf_simulation_free(&sim);
    return bytes;
}

static void memory_is_flat(void **state)
{
    (void)state;
    size_t shorter = bytes_after(100000), longer = bytes_after(400000);
    if (longer > shorter + shorter / 20)
        fail_msg("%zu bytes after 100000 events, %zu after 400000", shorter, longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_3_1),
        cmocka_unit_test(table_3_1_race),
        cmocka_unit_test(least_recently_used),
        cmocka_unit_test(clocks_are_found),
        cmocka_unit_test(users_are_kept),
        cmocka_unit_test(settings),
        cmocka_unit_test(coherence),
        cmocka_unit_test(stages),
        cmocka_unit_test(permissions_stay),
        cmocka_unit_test(ordered_writes),
        cmocka_unit_test(no_check_needed),
        cmocka_unit_test(compact_lines),
        cmocka_unit_test(clocks_roll_over),
        cmocka_unit_test(switches),
        cmocka_unit_test(strangers),
        cmocka_unit_test(costs),
        cmocka_unit_test(waiting),
        cmocka_unit_test(histories_are_cleared_and_copied),
        cmocka_unit_test(identities),
        cmocka_unit_test(memory_is_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
