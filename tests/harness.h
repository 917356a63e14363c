/* What tests of detectors share: a trace from text, and a detector run over a trace. */
#ifndef RF_TESTS_HARNESS_H
#define RF_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "replay/replay.h"
#include "tests/random_trace.h"
#include "trace/trace.h"

/* STD text, as in a failure's report. A name without an address is a granule of its own, from RF_NAMED_BASE on. */
static inline void trace_parse(struct trace *trace, const char *text)
{
    char *error = NULL;
    struct rf_reader *reader = rf_reader_open_memory(text, strlen(text), RF_FORMAT_STD, &error);
    if (!reader)
        fail_msg("%s", error);
    struct rf_batch batch;
    enum rf_trace_status status;
    trace->count = 0;
    while ((status = rf_reader_next(reader, &batch)) == RF_TRACE_MORE) {
        if (trace->count + batch.count > TRACE_EVENTS)
            fail_msg("the trace is too long for a test");
        memcpy(trace->events + trace->count, batch.events, batch.count * sizeof *batch.events);
        trace->count += batch.count;
    }
    if (status != RF_TRACE_END)
        fail_msg("%s", rf_reader_error(reader));
    trace->lines = trace->count ? trace->events[trace->count - 1].number : 0;
    rf_reader_close(reader);
}

/* How a detector is run. */
struct manner {
    const struct rf_detector *detector;
    struct rf_options options;
    uint32_t shards; /* 0 and 1: one worker */
    uint64_t split;  /* not 0: the trace comes in batches, cut at random by this seed */
    bool one_a_variable;
};

static inline uint32_t trace_ops(const struct rf_event *events, size_t count)
{
    uint32_t ops = 0;
    for (size_t i = 0; i < count; i++)
        ops |= 1u << events[i].op;
    return ops;
}

static inline void run_batches(struct rf_replay *replay, const struct rf_event *events, size_t count, uint64_t split)
{
    uint64_t random = split;
    for (size_t from = 0; from < count;) {
        size_t to = split ? from : count, wanted = from + (split ? 1 + random_below(&random, 12) : 0);
        while (to < count && to < wanted)
            to += trace_group(&events[to]);
        struct rf_batch batch = { .events = events + from,
                                  .count = to - from,
                                  .base = events[from].number,
                                  .ops = trace_ops(events + from, to - from) };
        replay->detector->run(replay, &batch);
        from = to;
    }
}

/* What one worker of several gets: its own accesses, and everything that is not an access. */
static inline size_t take_share(struct rf_event *out, const struct trace *trace, uint32_t shard, uint32_t shards)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->count; i++)
        if (rf_op_kind((enum rf_op)trace->events[i].op) != RF_ACCESS || rf_shard_of(trace->events[i].addr, shards) == shard)
            out[count++] = trace->events[i];
    return count;
}

/* The races that a detector finds, in the order of each worker. The caller frees them. */
static inline struct rf_races run_detector(const struct manner *manner, const struct trace *trace)
{
    struct rf_races all = { 0 };
    static struct rf_event share[TRACE_EVENTS];
    uint32_t shards = manner->shards ? manner->shards : 1;
    for (uint32_t shard = 0; shard < shards; shard++) {
        static struct rf_replay replay;
        rf_replay_begin(&replay, manner->detector, &manner->options, !manner->one_a_variable, shard, shards);
        if (shards == 1)
            run_batches(&replay, trace->events, trace->count, manner->split);
        else
            run_batches(&replay, share, take_share(share, trace, shard, shards), manner->split);
        if (shards == 1) {
            all = replay.races;
            replay.races = (struct rf_races){ 0 };
        } else if (replay.races.count) {
            all.list = realloc(all.list, (all.count + replay.races.count) * sizeof *all.list);
            assert_non_null(all.list);
            memcpy(all.list + all.count, replay.races.list, replay.races.count * sizeof *all.list);
            all.count += replay.races.count;
            replay.races.count = 0; /* their locks have moved, too */
        }
        rf_replay_end(&replay);
    }
    return all;
}

static inline const struct rf_detector *detector_named(const char *name)
{
    return rf_detector_find(name, strlen(name));
}

#endif
