/* Finding events again by their numbers, from the marks that the first reading left. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "trace/grow.h"
#include "trace/reader.h"

#define READ_BYTES (256u << 10)

struct search {
    struct rf_reader *reader;
    const uint64_t *numbers, *end; /* what is still to be found; sorted */
    rf_found_fn *found;
    void *context;
};

static enum rf_trace_status unreadable(struct rf_reader *reader, uint64_t offset)
{
    return rf_reader_stop(reader, RF_TRACE_ERROR, "%s: offset %" PRIu64 ": cannot read the trace again: %s",
                          reader->input.path, offset, errno ? strerror(errno) : "it has changed");
}

/* The last mark before every event with this number. One number may go on over several chunks. */
static const struct rf_mark *mark_before(const struct rf_marks *marks, uint64_t number)
{
    size_t low = 0, high = marks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (marks->marks[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return &marks->marks[low ? low - 1 : 0];
}

static void match(struct search *search, const struct rf_batch *batch)
{
    for (const struct rf_event *event = batch->events; event < batch->events + batch->count; event++) {
        uint64_t number = rf_event_number(batch, event);
        while (search->numbers < search->end && *search->numbers < number)
            search->numbers++;
        if (search->numbers == search->end)
            return;
        if (*search->numbers == number)
            search->found(search->context, number, event);
    }
}

static enum rf_trace_status scan_binary(struct search *search, uint64_t offset)
{
    struct rf_reader *reader = search->reader;
    struct rf_chunk *chunk = reader->own;
    while (search->numbers < search->end) {
        unsigned char bytes[RF_RFT_CHUNK_HEADER];
        struct rf_rft_header header;
        errno = 0;
        ssize_t got = rf_input_read_at(&reader->input, bytes, sizeof bytes, offset);
        if (got < 0)
            return unreadable(reader, offset);
        if ((size_t)got < sizeof bytes)
            return RF_TRACE_END; /* what follows was never delivered */
        rf_rft_get_header(&header, bytes);
        if (rf_rft_header_flaw(&header) || header.type == RF_RFT_END)
            return RF_TRACE_END;
        uint64_t next = offset + RF_RFT_CHUNK_HEADER + header.packed;
        while (header.type == RF_RFT_EVENTS && search->numbers < search->end && *search->numbers < header.first)
            search->numbers++;
        if (header.type == RF_RFT_EVENTS && search->numbers < search->end &&
            *search->numbers <= header.first + header.span) {
            chunk->packed = rf_reserve(chunk->packed, &chunk->packed_capacity, (size_t)header.packed + 1, 1);
            got = rf_input_read_at(&reader->input, chunk->packed, header.packed, offset + RF_RFT_CHUNK_HEADER);
            if (got < 0)
                return unreadable(reader, offset);
            if ((size_t)got < header.packed || !rf_rft_hash_matches(bytes, &header, chunk->packed))
                return RF_TRACE_END;
            struct rf_batch batch;
            chunk->header = header;
            chunk->is_text = false;
            chunk->limits = (struct rf_rft_limits){ rf_reader_threads(reader), rf_reader_sites(reader) };
            if (!rf_chunk_decode(reader, chunk, &batch))
                return RF_TRACE_END;
            match(search, &batch);
        }
        offset = next;
        if (search->numbers < search->end && header.type == RF_RFT_EVENTS) {
            /* A mark further on saves the headers between. */
            const struct rf_mark *mark = mark_before(&reader->marks, *search->numbers);
            if (mark->offset > offset)
                offset = mark->offset;
        }
    }
    return RF_TRACE_END;
}

static enum rf_trace_status scan_text(struct search *search)
{
    struct rf_reader *reader = search->reader;
    struct rf_std_parser parser = { .tables = &reader->tables };
    size_t capacity = 0, start = 0, end = 0;
    char *text = rf_reserve(NULL, &capacity, READ_BYTES, 1);
    uint64_t offset = 0; /* of text + end */
    bool final = false, begun = false;
    enum rf_trace_status status = RF_TRACE_END;
    while (search->numbers < search->end && !parser.flaw[0]) {
        const struct rf_mark *mark = mark_before(&reader->marks, *search->numbers);
        if (!begun || mark->number > parser.line) {
            parser.line = mark->number;
            parser.seen = mark->seen;
            offset = mark->offset;
            start = end = 0;
            begun = true;
            final = false;
        }
        parser.count = 0;
        start += rf_std_parse(&parser, text + start, end - start, final, RF_BATCH_EVENTS);
        if (parser.count) {
            uint64_t base = parser.line - (uint32_t)((uint32_t)parser.line - parser.events[0].number);
            match(search,
                  &(struct rf_batch){ .events = parser.events, .count = parser.count, .base = base, .ops = parser.ops });
            continue;
        }
        if (final)
            break;
        memmove(text, text + start, end - start);
        end -= start;
        start = 0;
        text = rf_reserve(text, &capacity, end + READ_BYTES, 1);
        errno = 0;
        ssize_t got = rf_input_read_at(&reader->input, text + end, READ_BYTES, offset);
        if (got < 0) {
            status = unreadable(reader, offset);
            break;
        }
        end += (size_t)got;
        offset += (uint64_t)got;
        final = (size_t)got < READ_BYTES;
    }
    free(text);
    free(parser.events);
    return status;
}

enum rf_trace_status rf_reader_lookup(struct rf_reader *reader, const uint64_t *numbers, size_t count, rf_found_fn *found,
                                      void *context)
{
    if (!rf_input_can_read_at(&reader->input))
        return rf_reader_stop(reader, RF_TRACE_ERROR, "%s: no temporary file could hold a copy, so it cannot be read again",
                              reader->input.path);
    if (count == 0 || reader->marks.count == 0)
        return RF_TRACE_END;
    struct search search = { reader, numbers, numbers + count, found, context };
    return reader->format == RF_FORMAT_STD ? scan_text(&search)
                                           : scan_binary(&search, mark_before(&reader->marks, *numbers)->offset);
}
