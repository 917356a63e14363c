/* The inside of a reader and of a chunk; for the files of this room.
 *
 * 1. Once `over` is not RF_TRACE_MORE it stays: what failed does not go on.
 * 2. Everything that rf_chunk_decode() needs is in the chunk.
 */
#ifndef RF_TRACE_READER_H
#define RF_TRACE_READER_H

#include <zstd.h>

#include "trace/input.h"
#include "trace/rft.h"
#include "trace/std.h"
#include "trace/trace.h"

#define RF_BATCH_EVENTS (16u << 10) /* of a text's batch; a line is never torn */
#define RF_MARKS 4096u

/* A place from which the trace can be read again. */
struct rf_mark {
    uint64_t number; /* no event before this place has a larger one */
    uint64_t offset;
    uint32_t seen; /* text: variables named before it */
};

/* Every stride-th chunk is marked; when the table is full every second mark goes, so it never grows. */
struct rf_marks {
    struct rf_mark *marks;
    size_t count;
    uint64_t stride, skipped;
};

struct rf_chunk {
    struct rf_event *events, *resolved;
    size_t capacity, resolved_capacity;
    struct rf_batch ready; /* text: the events, which fetching has parsed already */
    bool is_text;
    /* .rft: what is packed, and what decoding needs */
    struct rf_rft_header header;
    unsigned char *packed, *raw;
    size_t packed_capacity, raw_capacity;
    struct rf_rft_limits limits;
    struct rf_rft_thread *threads;
    size_t threads_capacity;
    ZSTD_DCtx *unpacker;
    uint64_t offset;  /* where in the file it begins */
    uint64_t before;  /* events before it */
    const char *flaw; /* set by a failed decoding */
};

struct rf_resolver;

struct rf_reader {
    struct rf_input input;
    char *path;
    enum rf_trace_format format;
    enum rf_trace_status over;
    char *error;
    struct rf_tables tables;
    struct rf_marks marks;
    struct rf_chunk *own; /* for rf_reader_next() */
    struct rf_resolver *resolver;
    uint64_t events; /* fetched so far */
    /* text */
    char *text;
    size_t text_start, text_end, text_capacity;
    bool text_final; /* the input has no more */
    bool text_zeros; /* a zero byte has been seen */
    uint64_t text_line;
    uint32_t text_seen, text_thread;
    /* .rft */
    uint64_t last_number;
    struct rf_chunk *names; /* the payload of a names chunk */
};

/* Ends the trace with a line for the user. */
__attribute__((format(printf, 3, 4))) enum rf_trace_status
rf_reader_stop(struct rf_reader *reader, enum rf_trace_status status, const char *format, ...);

void rf_marks_add(struct rf_marks *marks, struct rf_mark mark);

enum rf_trace_status rf_text_fetch(struct rf_reader *reader, struct rf_chunk *chunk);
enum rf_trace_status rf_binary_begin(struct rf_reader *reader);
enum rf_trace_status rf_binary_fetch(struct rf_reader *reader, struct rf_chunk *chunk);
/* Unpacks the payload into chunk->raw. NULL, or what is wrong. */
const char *rf_chunk_unpack(struct rf_chunk *chunk);

struct rf_resolver *rf_resolver_new(void);
void rf_resolver_free(struct rf_resolver *resolver);
void rf_resolver_view(struct rf_resolver *resolver, unsigned view);
unsigned rf_resolver_viewed(const struct rf_resolver *resolver);
bool rf_resolves(const struct rf_resolver *resolver, const struct rf_batch *batch);
void rf_resolve(struct rf_resolver *resolver, struct rf_chunk *chunk, struct rf_batch *batch);

#endif
