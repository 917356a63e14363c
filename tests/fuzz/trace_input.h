/* Reads a trace from memory twice, once as the detectors do and once by look-ups, and checks what core/event.h promises. */
#ifndef RF_TESTS_FUZZ_TRACE_INPUT_H
#define RF_TESTS_FUZZ_TRACE_INPUT_H

#include <stdlib.h>
#include <string.h>

#include "trace/check.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rf_fuzz_require(bool holds)
{
    if (!holds)
        abort();
}

static void rf_fuzz_ignore(void *context, uint64_t number, const struct rf_event *event, const char *reason)
{
    (void)context, (void)number, (void)event, (void)reason;
}

static void rf_fuzz_count(void *context, uint64_t number, const struct rf_event *event)
{
    (void)number, (void)event;
    ++*(uint64_t *)context;
}

static void rf_fuzz_event(const struct rf_reader *reader, const struct rf_batch *batch, size_t i)
{
    const struct rf_event *event = &batch->events[i];
    enum rf_op op = (enum rf_op)event->op;
    rf_fuzz_require(op < RF_OP_COUNT && batch->ops & 1u << op);
    rf_fuzz_require(event->thread < rf_reader_threads(reader) && event->site < rf_reader_sites(reader));
    bool access = rf_op_kind(op) == RF_ACCESS || op == RF_COMMIT_READ || op == RF_COMMIT_WRITE;
    rf_fuzz_require(!access || (event->size > 0 && (event->addr & 7) + event->size <= 8));
    if (op == RF_COMMIT || op == RF_COPY) {
        size_t parts = op == RF_COPY ? 1 : event->size;
        rf_fuzz_require(i + parts < batch->count);
        for (size_t j = 1; j <= parts; j++)
            rf_fuzz_require(rf_op_kind((enum rf_op)event[j].op) == RF_PART);
        rf_fuzz_require(op == RF_COMMIT || event[1].size == event[0].size);
    }
    char line[100];
    rf_reader_print(reader, event, line, sizeof line);
}

/* A chunk of an .rft trace decoded into shares: what it holds as a whole, divided; a flaw is one in either form. */
static void rf_fuzz_shares(struct rf_chunk *chunk, const struct rf_batch *whole, bool good)
{
    enum { SHARES = 3 };
    struct rf_share shares[SHARES] = { 0 };
    struct rf_batch batch;
    rf_fuzz_require(rf_chunk_decode_shares(chunk, &batch, shares, SHARES) == good);
    for (unsigned w = 0; w < SHARES; w++) {
        size_t at = 0;
        for (size_t i = 0; good && i < whole->count; i++)
            if (whole->events[i].op > RF_WRITE || rf_shard_of(whole->events[i].addr, SHARES) == w)
                rf_fuzz_require(at < shares[w].count &&
                                !memcmp(&shares[w].events[at++], &whole->events[i], sizeof *whole->events));
        rf_fuzz_require(at == shares[w].count);
        free(shares[w].events);
    }
}

static void rf_fuzz_trace(const void *bytes, size_t size, enum rf_trace_format format)
{
    char *error = NULL;
    struct rf_reader *reader = rf_reader_open_memory(bytes, size, format, &error);
    if (!reader) {
        rf_fuzz_require(error && *error);
        free(error);
        return;
    }
    struct rf_batch batch;
    struct rf_chunk *chunk = rf_chunk_new();
    struct rf_check *check = rf_check_new(rf_fuzz_ignore, NULL);
    enum rf_trace_status status;
    uint64_t numbers[64], wanted = 0, last = 0, found = 0;
    size_t picked = 0;
    while ((status = rf_reader_fetch(reader, chunk)) == RF_TRACE_MORE) {
        bool good = rf_chunk_decode(reader, chunk, &batch);
        if (rf_reader_format(reader) == RF_FORMAT_RFT)
            rf_fuzz_shares(chunk, &batch, good);
        if (!good) {
            status = rf_reader_damaged(reader, chunk);
            break;
        }
        rf_check_batch(check, &batch);
        for (size_t i = 0; i < batch.count; i++) {
            uint64_t number = rf_event_number(&batch, &batch.events[i]);
            rf_fuzz_require(number >= last);
            if (picked < 64 && (picked == 0 || number > numbers[picked - 1]))
                numbers[picked++] = number;
            wanted += picked && number <= numbers[picked - 1];
            last = number;
            rf_fuzz_event(reader, &batch, i);
        }
        rf_reader_resolve(reader, chunk, &batch);
        rf_fuzz_require((batch.ops & (1u << RF_BARRIER | 1u << RF_IDENTITY)) == 0);
        for (size_t i = 0; i < batch.count; i++)
            rf_fuzz_event(reader, &batch, i);
    }
    rf_fuzz_require((status == RF_TRACE_END) == (*rf_reader_error(reader) == 0));
    rf_reader_lookup(reader, numbers, picked, rf_fuzz_count, &found);
    rf_fuzz_require(found == wanted);
    rf_check_free(check);
    rf_chunk_free(chunk);
    rf_reader_close(reader);
}

#endif
