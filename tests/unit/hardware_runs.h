/* What the tests of the simulated hardware share: small machines, traces that live long, and RADISH's answers beside the truth.
 *
 * 1. One seed and one set of layers make one machine.
 * 2. An answer is right if each byte has its first race at the event where the oracle has it, up to where that is binding
 *    (tests/oracle.h, 4.).
 */
#ifndef RF_TESTS_HARDWARE_RUNS_H
#define RF_TESTS_HARDWARE_RUNS_H

#include "hardware/simulate.h"
#include "tests/harness.h"
#include "tests/oracle.h"

/* What a machine may do to its detector; each can be on alone. */
enum layer {
    EVICTIONS = 1,    /* tiny caches */
    EAGER = 2,        /* fewer cores than threads */
    LAZY = 4,         /* the same; both: one of them */
    COMPACT = 8,
    ROLL_OVER = 16,   /* few clocks */
    ELSEWHERE = 32,   /* handlers run on other cores */
    ALL_LAYERS = 63,
    USUAL_FORM = 64   /* what hardware/usual.c is compiled for, with tiny caches */
};

static inline uint64_t pick(uint64_t *random, uint64_t least, uint64_t most)
{
    return least + random_below(random, (uint32_t)(most - least + 1));
}

static inline struct rf_config machine_of(unsigned layers, uint64_t seed)
{
    struct rf_config config;
    uint64_t random = seed * 2 + 1;
    rf_config_defaults(&config);
    config.line_bytes = UINT64_C(16) << pick(&random, 0, 2);
    config.page_bytes = UINT64_C(256) << pick(&random, 0, 4);
    config.cores = layers & (EAGER | LAZY) ? pick(&random, 1, 3) : 16;
    if (layers & EVICTIONS) {
        config.l1_ways = pick(&random, 1, 2);
        config.l1_bytes = config.l1_ways * config.line_bytes;
        config.l2_ways = pick(&random, config.l1_ways, 3);
        config.l2_bytes = config.l2_ways * config.line_bytes;
        config.llc_ways = pick(&random, config.l2_ways > 2 ? config.l2_ways : 2, 6);
        config.llc_bytes = config.llc_ways * config.line_bytes << pick(&random, 0, 2);
        config.buffer_lines = pick(&random, 0, 3);
    } else { /* nothing that a test touches is ever evicted */
        config.l1_ways = config.l2_ways = config.llc_ways = 64;
        config.l1_bytes = config.l2_bytes = 64 * config.line_bytes;
        config.llc_bytes = 64 * 16 * config.line_bytes;
    }
    config.flush = (layers & EAGER) && (layers & LAZY) ? pick(&random, 0, 1) : layers & LAZY ? RF_FLUSH_LAZY : RF_FLUSH_EAGER;
    config.encoding = layers & COMPACT ? pick(&random, 0, 3) ? RF_ENCODING_COMPACT : RF_ENCODING_FULL : RF_ENCODING_FULL;
    config.clock_bits = layers & ROLL_OVER ? pick(&random, 2, 3) : 6;
    config.handlers = layers & ELSEWHERE ? pick(&random, 0, 1) : RF_HANDLERS_SAME;
    if (layers & USUAL_FORM) {
        config.line_bytes = RF_USUAL_LINE;
        config.page_bytes = RF_USUAL_PAGE;
        config.cores = pick(&random, 1, RF_USUAL_CORES);
        config.l1_ways = config.l2_ways = RF_USUAL_WAYS;
        config.llc_ways = RF_USUAL_LLC_WAYS;
        config.l1_bytes = config.l2_bytes = RF_USUAL_WAYS * RF_USUAL_LINE;
        config.llc_bytes = UINT64_C(16) * RF_USUAL_LINE << pick(&random, 0, 1);
        config.encoding = RF_ENCODING_FULL;
    }
    return config;
}

/* ---- traces that live long ---- */

/* Threads that keep to a discipline, nearly: each granule has a lock; who holds it reads and writes. Some granules are only read
 * after a while; now and then somebody forgets the lock, frees, or moves a granule. So histories grow old before their first race. */
static inline void trace_disciplined(struct trace *trace, uint64_t seed, bool memory)
{
    uint64_t random = seed;
    struct maker m = { .trace = trace, .random = seed };
    uint32_t threads = 2 + random_below(&random, 5), granules = 1 + random_below(&random, 5);
    uint32_t lines = 20 + random_below(&random, 220), sloppy = 1 + random_below(&random, 60);
    uint32_t bytes = random_below(&random, 3), copies = memory ? random_below(&random, 12) : 0;
    trace->count = 0;
    trace->lines = 0;
    for (uint32_t i = 0; i < threads; i++)
        m.rules.begun[i] = true;
    while (trace->lines < lines) {
        uint32_t thread = random_below(&random, threads), g = random_below(&random, granules), site = 1 + thread % 4;
        uint64_t lock = g % 4, base = 0x1000 + 8 * g + (g & 1 ? 0x1040 : 0);
        bool locked = random_below(&random, 1000) >= sloppy, writer = random_below(&random, 3) == 0;
        trace->lines++;
        if (locked && !maker_emit(&m, RF_ACQUIRE, thread, lock, 0, site))
            continue;
        for (uint32_t n = random_below(&random, 4) + !locked; n; n--) {
            uint32_t size = 8, offset = 0;
            if (bytes && random_below(&random, 2)) {
                size = bytes == 1 ? 2u << random_below(&random, 2) : 1 + random_below(&random, 8);
                offset = bytes == 1 ? size * random_below(&random, 8 / size) : random_below(&random, 9 - size);
            }
            trace->lines++;
            maker_emit(&m, writer && random_below(&random, 2) ? RF_WRITE : RF_READ, thread, base + offset, size, site);
        }
        if (copies && locked && random_below(&random, 100) < copies) {
            uint32_t what = random_below(&random, 4), length = 1 + random_below(&random, 12);
            trace->lines++;
            if (what < 2) {
                maker_emit(&m, what ? RF_FREE : RF_ALLOC, thread, base + random_below(&random, 4), length, site);
            } else {
                uint32_t to = random_below(&random, granules);
                maker_emit(&m, RF_COPY, thread, base, length, site);
                maker_emit(&m, RF_COPY_TO, thread, 0x1000 + 8 * to + (to & 1 ? 0x1040 : 0), length, site);
            }
        }
        if (locked) {
            trace->lines++;
            maker_emit(&m, RF_RELEASE, thread, lock, 0, site);
        }
    }
}

/* ---- running ---- */

struct run {
    const struct trace *trace;
    struct rf_config config;
    uint64_t broken;
    uint32_t time_limit; /* of slots; 0: none */
    char wrong[200];     /* "" if right */
    struct rf_checks checks;
    struct rf_radish_counts counts;
};

static inline void run_simulation(struct rf_simulation *s, const struct run *run)
{
    rf_simulation_init(s, &run->config, run->broken);
    if (run->time_limit)
        s->order.time_limit = run->time_limit;
    struct rf_batch batch = { .events = run->trace->events, .count = run->trace->count, .base = 1 };
    rf_simulation_run(s, &batch);
}

/* hardware/usual.h, 1.: the copy for any machine does the same to the last count and cycle. */
static inline bool copies_agree(const struct rf_simulation *s, const struct run *run)
{
    static struct rf_simulation any;
    rf_simulation_init(&any, &run->config, run->broken);
    if (run->time_limit)
        any.order.time_limit = run->time_limit;
    any.usual = false;
    rf_events_begin(&any);
    struct rf_batch batch = { .events = run->trace->events, .count = run->trace->count, .base = 1 };
    rf_simulation_run(&any, &batch);
    bool same = !memcmp(any.times, s->times, sizeof any.times) &&
                !memcmp(&any.radish.counts, &s->radish.counts, sizeof any.radish.counts) &&
                !memcmp(&any.radish.machine.traffic, &s->radish.machine.traffic, sizeof any.baseline.traffic) &&
                !memcmp(&any.baseline.traffic, &s->baseline.traffic, sizeof any.baseline.traffic) &&
                any.race_count == s->race_count;
    for (uint32_t i = 0; same && i < any.race_count; i++)
        same = any.races[i].number == s->races[i].number && any.races[i].addr == s->races[i].addr &&
               any.races[i].size == s->races[i].size;
    rf_simulation_free(&any);
    return same;
}

/* hardware/radish.h, 3.: all cached lines for a byte agree on its in-hardware status. */
static inline bool statuses_agree(const struct rf_radish *radish)
{
    for (uint32_t number = 0; number < radish->software.record_cap; number++)
        for (struct rf_metadata *first = rf_lines_of(radish, number), *line = first; line; line = line->next)
            if (line->wide != first->wide ||
                memcmp(rf_row(&radish->layout, line, RF_STATUSES), rf_row(&radish->layout, first, RF_STATUSES),
                       rf_width(&radish->layout, line)))
                return false;
    return true;
}

/* What a record says of the cores whose lines permit something is so. */
static inline bool permissions_are_known(const struct rf_radish *radish)
{
    for (uint32_t number = 0; number < radish->software.record_cap; number++) {
        const struct rf_record *record = rf_record_at(&radish->software, number);
        uint64_t permitting = 0;
        for (struct rf_metadata *line = record->lines; line; line = line->next)
            if (rf_row_is_set(rf_row(&radish->layout, line, RF_PERMISSIONS), rf_width(&radish->layout, line)))
                permitting |= UINT64_C(1) << line->core;
        if (record->permitting != permitting)
            return false;
    }
    return true;
}

/* The oracle has run on the trace. */
static inline bool right(struct run *run, const struct oracle *oracle)
{
    static struct rf_simulation s;
    static uint64_t first[ORACLE_BYTES];
    run->wrong[0] = 0;
    run_simulation(&s, run);
    for (uint32_t byte = 0; byte < ORACLE_BYTES; byte++)
        first[byte] = ORACLE_NEVER;
    for (uint32_t i = 0; i < s.race_count; i++)
        for (uint32_t at = 0; at < s.races[i].size; at++) {
            uint32_t byte = oracle_byte(oracle, s.races[i].addr + at);
            if (byte != UINT32_MAX && s.races[i].number < first[byte])
                first[byte] = s.races[i].number;
        }
    for (uint32_t byte = 0; byte < oracle->granule_count * RF_GRANULE && !run->wrong[0]; byte++) {
        uint64_t limit = oracle->clean[byte];
        uint64_t expected = oracle->first[byte] < limit ? oracle->first[byte] : ORACLE_NEVER;
        uint64_t found = first[byte] < limit ? first[byte] : ORACLE_NEVER;
        if (expected != found)
            snprintf(run->wrong, sizeof run->wrong, "first race on 0x%llx: expected at %lld, found at %lld (-1: none)",
                     (unsigned long long)oracle_addr(oracle, byte), (long long)expected, (long long)found);
    }
    if (!run->broken && !run->wrong[0] && !statuses_agree(&s.radish))
        snprintf(run->wrong, sizeof run->wrong, "lines for one byte have different statuses");
    if (!run->broken && !run->wrong[0] && !permissions_are_known(&s.radish))
        snprintf(run->wrong, sizeof run->wrong, "a record does not know which cores' lines permit something");
    if (s.usual && !run->wrong[0] && !copies_agree(&s, run))
        snprintf(run->wrong, sizeof run->wrong, "the copy for any machine says something else");
    run->counts = s.radish.counts;
    rf_simulation_free(&s);
    return !run->wrong[0];
}

/* For shrinking. */
static inline bool run_fails(void *context, const struct trace *trace)
{
    static struct oracle oracle;
    struct run *run = context;
    const struct trace *before = run->trace;
    oracle_run(&oracle, trace->events, trace->count, ORACLE_SHARED);
    run->trace = trace;
    bool fails = !right(run, &oracle);
    run->trace = before;
    return fails;
}

#endif
