/* The two formats' ways from the input to a batch: text is parsed as it is fetched, since names get their indices in order;
 * .rft chunks are only checked, and decoded by rf_chunk_decode(), in any thread. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "trace/grow.h"
#include "trace/reader.h"

#define READ_BYTES (512u << 10)

void rf_marks_add(struct rf_marks *marks, struct rf_mark mark)
{
    if (marks->skipped++ % marks->stride)
        return;
    if (marks->count == RF_MARKS) {
        for (size_t i = 0; i < RF_MARKS / 2; i++)
            marks->marks[i] = marks->marks[2 * i];
        marks->count = RF_MARKS / 2;
        marks->stride *= 2;
    }
    marks->marks[marks->count++] = mark;
}

/* Moves the unfinished line to the front and reads behind it. False: over. */
static bool refill(struct rf_reader *reader)
{
    size_t left = reader->text_end - reader->text_start;
    if (left && reader->text)
        memmove(reader->text, reader->text + reader->text_start, left);
    reader->text_start = 0;
    reader->text_end = left;
    if (left > RF_STD_MAX_LINE) {
        rf_reader_stop(reader, RF_TRACE_ERROR, "%s:%" PRIu64 ": the line is too long", reader->input.path,
                       reader->text_line + 1);
        return false;
    }
    reader->text = rf_reserve(reader->text, &reader->text_capacity, left + READ_BYTES, 1);
    ssize_t got = rf_input_read(&reader->input, reader->text + left, READ_BYTES);
    if (got < 0) {
        rf_reader_stop(reader, RF_TRACE_ERROR, "%s: %s", reader->input.path, strerror(errno));
        return false;
    }
    reader->text_zeros |= memchr(reader->text + left, 0, (size_t)got) != NULL;
    reader->text_end += (size_t)got;
    reader->text_final = (size_t)got < READ_BYTES;
    return true;
}

enum rf_trace_status rf_text_fetch(struct rf_reader *reader, struct rf_chunk *chunk)
{
    struct rf_std_parser parser = { .tables = &reader->tables,
                                    .line = reader->text_line,
                                    .seen = reader->text_seen,
                                    .last_thread = reader->text_thread,
                                    .events = chunk->events,
                                    .capacity = chunk->capacity };
    rf_marks_add(&reader->marks, (struct rf_mark){ parser.line, rf_reader_position(reader), parser.seen });
    while (reader->text || refill(reader)) {
        parser.zeros = reader->text_zeros;
        reader->text_start += rf_std_parse(&parser, reader->text + reader->text_start, reader->text_end - reader->text_start,
                                           reader->text_final, RF_BATCH_EVENTS);
        reader->text_line = parser.line;
        if (parser.count || parser.flaw[0])
            break;
        if (reader->text_final) {
            reader->over = RF_TRACE_END;
            break;
        }
        if (!refill(reader))
            break;
    }
    reader->text_seen = parser.seen;
    reader->text_thread = parser.last_thread;
    chunk->events = parser.events;
    chunk->capacity = parser.capacity;
    chunk->is_text = true;
    reader->events += parser.count;
    if (parser.flaw[0])
        rf_reader_stop(reader, RF_TRACE_ERROR, "%s:%" PRIu64 ": %s", reader->input.path, parser.line + 1, parser.flaw);
    if (parser.count == 0)
        return reader->over;
    /* The numbers of a batch are lines no later than the last one parsed, and there are fewer than 2^32 in it. */
    uint64_t base = parser.line - (uint32_t)((uint32_t)parser.line - parser.events[0].number);
    chunk->ready = (struct rf_batch){ .events = parser.events, .count = parser.count, .base = base, .ops = parser.ops };
    return RF_TRACE_MORE;
}

static enum rf_trace_status stop_at(struct rf_reader *reader, uint64_t offset, const char *reason)
{
    return rf_reader_stop(reader, RF_TRACE_TRUNCATED, "%s: offset %" PRIu64 ": %s; %" PRIu64 " events are good",
                          reader->input.path, offset, reason, reader->events);
}

static enum rf_trace_status stop_reading(struct rf_reader *reader)
{
    return rf_reader_stop(reader, RF_TRACE_ERROR, "%s: offset %" PRIu64 ": %s", reader->input.path, reader->input.position,
                          strerror(errno));
}

enum rf_trace_status rf_binary_begin(struct rf_reader *reader)
{
    unsigned char bytes[RF_RFT_FILE_HEADER];
    ssize_t got = rf_input_read(&reader->input, bytes, sizeof bytes);
    if (got < 0)
        return stop_reading(reader);
    size_t compared = (size_t)got < 8 ? (size_t)got : 8;
    if (memcmp(bytes, RF_RFT_MAGIC, compared) != 0)
        return rf_reader_stop(reader, RF_TRACE_ERROR, "%s: not an .rft trace", reader->input.path);
    if ((size_t)got < sizeof bytes)
        return stop_at(reader, 0, "the file header is cut");
    uint32_t version = bytes[8] | (uint32_t)bytes[9] << 8 | (uint32_t)bytes[10] << 16 | (uint32_t)bytes[11] << 24;
    if (version != RF_RFT_VERSION)
        return rf_reader_stop(reader, RF_TRACE_ERROR, "%s: .rft version %" PRIu32 " is not known, only %u",
                              reader->input.path, version, RF_RFT_VERSION);
    if (bytes[12] | bytes[13] | bytes[14] | bytes[15])
        return rf_reader_stop(reader, RF_TRACE_ERROR, "%s: the .rft file header is damaged", reader->input.path);
    return RF_TRACE_MORE;
}

const char *rf_chunk_unpack(struct rf_chunk *chunk)
{
    chunk->raw = rf_reserve(chunk->raw, &chunk->raw_capacity, (size_t)chunk->header.raw + RF_RFT_SLACK, 1);
    if (chunk->header.packed == chunk->header.raw) {
        memcpy(chunk->raw, chunk->packed, chunk->header.raw);
    } else {
        if (!chunk->unpacker)
            chunk->unpacker = ZSTD_createDCtx();
        if (!chunk->unpacker)
            return "out of memory";
        size_t size =
            ZSTD_decompressDCtx(chunk->unpacker, chunk->raw, chunk->header.raw, chunk->packed, chunk->header.packed);
        if (ZSTD_isError(size) || size != chunk->header.raw)
            return "the chunk cannot be unpacked";
    }
    memset(chunk->raw + chunk->header.raw, 0, RF_RFT_SLACK);
    return NULL;
}

static const char *take_names(struct rf_reader *reader, struct rf_chunk *chunk)
{
    const char *flaw = rf_chunk_unpack(chunk);
    if (flaw)
        return flaw;
    struct rf_tables *tables = &reader->tables;
    const unsigned char *at = chunk->raw, *end = chunk->raw + chunk->header.raw;
    while (at < end) {
        unsigned kind = *at++;
        uint64_t addr = 0, length;
        if (kind > RF_RFT_OBJECT)
            return "unknown kind of name";
        if (kind >= RF_RFT_VARIABLE && !rf_rft_get_varint(&at, end, &addr))
            return "a name is cut";
        if (!rf_rft_get_varint(&at, end, &length) || length > (size_t)(end - at))
            return "a name is cut";
        const char *text = (const char *)at;
        at += length;
        if (memchr(text, 0, length))
            return "a name holds a zero byte";
        if (kind == RF_RFT_THREAD && tables->threads.count >= RF_RFT_MAX_THREADS)
            return "too many threads";
        if (kind == RF_RFT_THREAD)
            rf_names_append(&tables->threads, text, length);
        else if (kind == RF_RFT_SITE)
            rf_names_append(&tables->sites, text, length);
        else if (!rf_symbols_declare(kind == RF_RFT_VARIABLE ? &tables->variables : &tables->objects, addr, text, length))
            return "a name is out of order";
    }
    return NULL;
}

/* The END chunk must be the last thing in the file. */
static enum rf_trace_status finish(struct rf_reader *reader, const struct rf_rft_header *header, uint64_t offset)
{
    unsigned char more;
    if (header->first != reader->events)
        return stop_at(reader, offset, "the number of events does not match the end of the trace");
    uint64_t behind = reader->input.position;
    ssize_t got = rf_input_read(&reader->input, &more, 1);
    if (got < 0)
        return stop_reading(reader);
    if (got > 0)
        return stop_at(reader, behind, "bytes after the end of the trace");
    return reader->over = RF_TRACE_END;
}

enum rf_trace_status rf_binary_fetch(struct rf_reader *reader, struct rf_chunk *chunk)
{
    for (;;) {
        unsigned char bytes[RF_RFT_CHUNK_HEADER];
        struct rf_rft_header header;
        uint64_t offset = reader->input.position;
        ssize_t got = rf_input_read(&reader->input, bytes, sizeof bytes);
        if (got < 0)
            return stop_reading(reader);
        if (got == 0)
            return stop_at(reader, offset, "the end of the trace is missing");
        if ((size_t)got < sizeof bytes)
            return stop_at(reader, offset, "a chunk header is cut");
        rf_rft_get_header(&header, bytes);
        const char *flaw = rf_rft_header_flaw(&header);
        if (flaw)
            return stop_at(reader, offset, flaw);
        struct rf_chunk *to = header.type == RF_RFT_NAMES ? reader->names : chunk;
        to->packed = rf_reserve(to->packed, &to->packed_capacity, (size_t)header.packed + 1, 1);
        got = header.packed ? rf_input_read(&reader->input, to->packed, header.packed) : 0;
        if (got < 0)
            return stop_reading(reader);
        if ((size_t)got < header.packed)
            return stop_at(reader, offset, "a chunk is cut");
        if (!rf_rft_hash_matches(bytes, &header, to->packed))
            return stop_at(reader, offset, "the chunk is damaged");
        to->header = header;
        if (header.type == RF_RFT_END)
            return finish(reader, &header, offset);
        if (header.type == RF_RFT_NAMES) {
            flaw = take_names(reader, to);
            if (flaw)
                return stop_at(reader, offset, flaw);
            continue;
        }
        if (header.first < reader->last_number)
            return stop_at(reader, offset, "event numbers decrease");
        rf_marks_add(&reader->marks, (struct rf_mark){ header.first, offset, 0 });
        chunk->is_text = false;
        chunk->offset = offset;
        chunk->before = reader->events;
        chunk->limits = (struct rf_rft_limits){ rf_reader_threads(reader), rf_reader_sites(reader) };
        reader->last_number = header.first + header.span;
        reader->events += header.events;
        return RF_TRACE_MORE;
    }
}

bool rf_chunk_decode(const struct rf_reader *reader, struct rf_chunk *chunk, struct rf_batch *batch)
{
    (void)reader;
    if (chunk->is_text) {
        *batch = chunk->ready;
        return true;
    }
    struct rf_share whole = { .events = chunk->events, .capacity = chunk->capacity };
    bool good = rf_chunk_decode_shares(chunk, batch, &whole, 1);
    chunk->events = whole.events;
    chunk->capacity = whole.capacity;
    batch->events = whole.events;
    return good;
}

bool rf_chunk_decode_shares(struct rf_chunk *chunk, struct rf_batch *batch, struct rf_share *shares, unsigned share_count)
{
    *batch = (struct rf_batch){ .base = chunk->header.first };
    for (unsigned i = 0; i < share_count; i++) { /* any of them may get all */
        shares[i].events = rf_reserve(shares[i].events, &shares[i].capacity, chunk->header.events, sizeof *shares[i].events);
        shares[i].count = 0;
    }
    chunk->flaw = rf_chunk_unpack(chunk);
    if (chunk->flaw)
        return false;
    struct rf_rft_decoded decoded = {
        .shares = shares, .share_count = share_count, .threads = chunk->threads, .threads_capacity = chunk->threads_capacity
    };
    chunk->flaw = rf_rft_decode(&chunk->header, chunk->raw, chunk->limits, &decoded);
    chunk->threads = decoded.threads;
    chunk->threads_capacity = decoded.threads_capacity;
    if (chunk->flaw) {
        for (unsigned i = 0; i < share_count; i++)
            shares[i].count = 0;
        return false;
    }
    batch->count = chunk->header.events;
    batch->ops = decoded.ops;
    return true;
}
