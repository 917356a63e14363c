/* For the tests of trace/: temporary files, and whole traces as arrays. */
#ifndef RF_TESTS_UNIT_TRACE_FILES_H
#define RF_TESTS_UNIT_TRACE_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/generate.h"
#include "trace/grow.h"
#include "trace/trace.h"

struct bytes {
    unsigned char *at;
    size_t size;
};

struct trace {
    struct rf_event *events;
    uint64_t *numbers; /* in full */
    size_t count, capacity, numbers_capacity;
    enum rf_trace_status status;
    char error[300];
    char names[4000]; /* every thread and site, and what the variables and objects of events are called */
};

static inline void trace_add(struct trace *trace, uint64_t number, const struct rf_event *event)
{
    trace->events = rf_reserve(trace->events, &trace->capacity, trace->count + 1, sizeof *trace->events);
    trace->numbers = rf_reserve(trace->numbers, &trace->numbers_capacity, trace->count + 1, sizeof *trace->numbers);
    trace->events[trace->count] = *event;
    trace->numbers[trace->count++] = number;
}

static inline void trace_free(struct trace *trace)
{
    free(trace->events);
    free(trace->numbers);
    *trace = (struct trace){ 0 };
}

static inline void assert_same_events(const struct trace *a, const struct trace *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct rf_event *x = &a->events[i], *y = &b->events[i];
        assert_int_equal(a->numbers[i], b->numbers[i]);
        assert_int_equal(x->op, y->op);
        assert_int_equal(x->thread, y->thread);
        assert_int_equal(x->site, y->site);
        assert_int_equal(x->addr, y->addr);
        assert_int_equal(x->size, y->size);
        assert_int_equal(x->number, y->number);
    }
}

/* Decoded into shares, a chunk has in each exactly what that worker is to see, in the order of the whole. */
static inline void assert_shares(struct rf_chunk *chunk, const struct rf_batch *whole)
{
    enum { SHARES = 3 };
    struct rf_share shares[SHARES] = { 0 };
    struct rf_batch batch;
    assert_true(rf_chunk_decode_shares(chunk, &batch, shares, SHARES));
    assert_int_equal(batch.ops, whole->ops);
    assert_int_equal(batch.base, whole->base);
    for (unsigned w = 0; w < SHARES; w++) {
        size_t found = 0;
        for (size_t i = 0; i < whole->count; i++) {
            const struct rf_event *event = &whole->events[i];
            if (event->op <= RF_WRITE && rf_shard_of(event->addr, SHARES) != w)
                continue;
            assert_true(found < shares[w].count);
            assert_memory_equal(&shares[w].events[found++], event, sizeof *event);
        }
        assert_int_equal(found, shares[w].count);
        free(shares[w].events);
    }
}

/* Reads to the end, by the reader's own batches if resolved, else event for event as in the file. */
static inline void read_trace(struct rf_reader *reader, struct trace *trace, bool resolved)
{
    struct rf_chunk *chunk = rf_chunk_new();
    struct rf_batch batch;
    for (;;) {
        trace->status = resolved ? rf_reader_next(reader, &batch) : rf_reader_fetch(reader, chunk);
        if (trace->status != RF_TRACE_MORE)
            break;
        if (!resolved && !rf_chunk_decode(reader, chunk, &batch)) {
            trace->status = rf_reader_damaged(reader, chunk);
            break;
        }
        if (!resolved && rf_reader_format(reader) == RF_FORMAT_RFT)
            assert_shares(chunk, &batch);
        for (size_t i = 0; i < batch.count; i++)
            trace_add(trace, rf_event_number(&batch, &batch.events[i]), &batch.events[i]);
    }
    snprintf(trace->error, sizeof trace->error, "%s", rf_reader_error(reader));
    size_t used = 0;
    for (uint32_t i = 0; i < rf_reader_threads(reader) && used < sizeof trace->names; i++)
        used += (size_t)snprintf(trace->names + used, sizeof trace->names - used, "%s\n", rf_reader_thread(reader, i));
    for (uint32_t i = 0; i < rf_reader_sites(reader) && used < sizeof trace->names; i++)
        used += (size_t)snprintf(trace->names + used, sizeof trace->names - used, "%s\n", rf_reader_site(reader, i));
    for (size_t i = 0; i < trace->count && used < sizeof trace->names; i++) {
        char line[200];
        enum rf_op op = (enum rf_op)trace->events[i].op;
        if (op == RF_COMMIT || op == RF_COPY)
            continue;
        rf_reader_print(reader, &trace->events[i], line, sizeof line);
        used += (size_t)snprintf(trace->names + used, sizeof trace->names - used, "%s\n", line);
    }
    rf_chunk_free(chunk);
}

static inline void read_memory(const void *at, size_t size, enum rf_trace_format format, struct trace *trace, bool resolved)
{
    char *error = NULL;
    *trace = (struct trace){ 0 };
    struct rf_reader *reader = rf_reader_open_memory(at, size, format, &error);
    if (!reader) {
        trace->status = RF_TRACE_ERROR;
        snprintf(trace->error, sizeof trace->error, "%s", error);
        free(error);
        return;
    }
    read_trace(reader, trace, resolved);
    rf_reader_close(reader);
}

static inline void read_text(const char *text, struct trace *trace, bool resolved)
{
    read_memory(text, strlen(text), RF_FORMAT_STD, trace, resolved);
}

static inline struct bytes slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct bytes bytes = { 0 };
    size_t capacity = 0, got;
    do {
        bytes.at = rf_reserve(bytes.at, &capacity, bytes.size + 4096, 1);
        got = fread(bytes.at + bytes.size, 1, 4096, file);
        bytes.size += got;
    } while (got);
    fclose(file);
    return bytes;
}

static inline void temporary(char path[64])
{
    strcpy(path, "/tmp/redflag-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

/* What a trace becomes in another format. */
static inline struct bytes convert(const void *at, size_t size, enum rf_trace_format from, enum rf_trace_format to)
{
    char path[64], *error = NULL;
    temporary(path);
    struct rf_reader *reader = rf_reader_open_memory(at, size, from, &error);
    assert_non_null(reader);
    struct rf_writer *writer = rf_writer_open(path, to, &error);
    assert_non_null(writer);
    struct rf_chunk *chunk = rf_chunk_new();
    struct rf_batch batch;
    while (rf_reader_fetch(reader, chunk) == RF_TRACE_MORE && rf_chunk_decode(reader, chunk, &batch)) {
        rf_writer_names(writer, reader);
        for (size_t i = 0; i < batch.count; i++)
            rf_writer_event(writer, rf_event_number(&batch, &batch.events[i]), &batch.events[i]);
    }
    rf_chunk_free(chunk);
    rf_reader_close(reader);
    assert_true(rf_writer_close(writer, &error));
    struct bytes bytes = slurp(path);
    unlink(path);
    return bytes;
}

struct generated {
    struct trace trace;
    struct rf_writer *writer;
};

static inline bool take_generated(void *context, uint64_t number, const struct rf_event *event)
{
    struct generated *generated = context;
    trace_add(&generated->trace, number, event);
    if (generated->writer)
        rf_writer_event(generated->writer, number, event);
    return true;
}

/* Generates a trace into a file's bytes and, as it was made, into *trace. */
static inline struct bytes generate(const struct rf_generate_options *options, enum rf_trace_format format,
                                    struct trace *trace)
{
    char path[64], *error = NULL;
    temporary(path);
    struct generated generated = { .writer = rf_writer_open(path, format, &error) };
    assert_non_null(generated.writer);
    rf_generate_declare(options, generated.writer);
    rf_generate(options, take_generated, &generated);
    if (!rf_writer_close(generated.writer, &error))
        fail_msg("%s", error);
    *trace = generated.trace;
    struct bytes bytes = slurp(path);
    unlink(path);
    return bytes;
}

#endif
