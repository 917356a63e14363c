/* Writing traces: what both formats share, and .rft. The text is written by std_write.c. */
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/grow.h"
#include "trace/rft_coding.h"

/* Larger chunks pack no better, and their events do not fit the cache of a core while they are analysed. */
#define CHUNK_EVENTS (16u << 10)
/* Level 1 unpacks fastest: what the higher levels save in bytes they cost in time, see doc/traces.md. */
#define LEVEL 1

void rf_writer_fail(struct rf_writer *writer, const char *format, ...)
{
    if (writer->error)
        return;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&writer->error, format, arguments) < 0) {
        fprintf(stderr, "redflag: out of memory\n");
        exit(2);
    }
    va_end(arguments);
}

void rf_writer_put(struct rf_writer *writer, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size && !writer->error) {
        ssize_t put = write(writer->fd, from, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            rf_writer_fail(writer, "%s: %s", writer->path, strerror(errno));
            return;
        }
        from += put;
        size -= (size_t)put;
        writer->bytes += (uint64_t)put;
    }
}

static void write_chunk(struct rf_writer *writer, struct rf_rft_header *header, const unsigned char *raw, size_t size)
{
    unsigned char bytes[RF_RFT_CHUNK_HEADER];
    const unsigned char *payload = raw;
    header->raw = header->packed = (uint32_t)size;
    if (size > RF_RFT_MAX_BYTES) {
        rf_writer_fail(writer, "%s: a chunk of %zu bytes is too large", writer->path, size);
        return;
    }
    if (size) {
        writer->packed = rf_reserve(writer->packed, &writer->packed_capacity, ZSTD_compressBound(size), 1);
        size_t packed = ZSTD_compressCCtx(writer->packer, writer->packed, writer->packed_capacity, raw, size, LEVEL);
        if (!ZSTD_isError(packed) && packed < size) {
            header->packed = (uint32_t)packed;
            payload = writer->packed;
        }
    }
    rf_rft_put_header(bytes, header, payload);
    rf_writer_put(writer, bytes, sizeof bytes);
    rf_writer_put(writer, payload, header->packed);
}

static void flush_names(struct rf_writer *writer)
{
    if (writer->names_size == 0)
        return;
    struct rf_rft_header header = { .type = RF_RFT_NAMES };
    write_chunk(writer, &header, writer->names, writer->names_size);
    writer->names_size = 0;
}

static void flush_events(struct rf_writer *writer)
{
    flush_names(writer);
    if (writer->count == 0)
        return;
    struct rf_rft_header header = { .type = RF_RFT_EVENTS, .events = (uint32_t)writer->count, .first = writer->first };
    header.span = writer->pending[writer->count - 1].number - (uint32_t)writer->first;
    size_t size;
    const unsigned char *raw = rf_rft_encode(writer->encoder, writer->pending, writer->count, writer->first, &size);
    write_chunk(writer, &header, raw, size);
    writer->events += writer->count;
    writer->count = 0;
}

static bool ends_in_rft(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".rft") == 0;
}

struct rf_writer *rf_writer_open(const char *path, enum rf_trace_format format, char **error)
{
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        if (asprintf(error, "%s: %s", path, strerror(errno)) < 0)
            *error = NULL;
        return NULL;
    }
    struct rf_writer *writer = rf_resize(NULL, sizeof *writer);
    *writer = (struct rf_writer){ .fd = fd, .format = format };
    const char *shown = standard ? "standard output" : path;
    writer->path = strcpy(rf_resize(NULL, strlen(shown) + 1), shown);
    if (format == RF_FORMAT_AUTO)
        writer->format = ends_in_rft(path) ? RF_FORMAT_RFT : RF_FORMAT_STD;
    writer->sites = 1; /* "none" needs no declaration */
    if (writer->format == RF_FORMAT_STD) {
        rf_names_append(&writer->site_names, "", 0);
        return writer;
    }
    writer->encoder = rf_rft_encoder_new();
    writer->packer = ZSTD_createCCtx();
    unsigned char header[RF_RFT_FILE_HEADER] = { 0 };
    memcpy(header, RF_RFT_MAGIC, 8);
    header[8] = RF_RFT_VERSION;
    if (!writer->packer)
        rf_writer_fail(writer, "%s: out of memory", writer->path);
    rf_writer_put(writer, header, sizeof header);
    return writer;
}

static void declare(struct rf_writer *writer, enum rf_rft_name kind, uint64_t addr, const char *name)
{
    size_t length = strlen(name);
    if (writer->names_size + length > RF_RFT_MAX_BYTES / 2)
        flush_names(writer);
    if (length > RF_RFT_MAX_BYTES / 4) {
        rf_writer_fail(writer, "%s: a name of %zu bytes is too long", writer->path, length);
        return;
    }
    writer->names = rf_reserve(writer->names, &writer->names_capacity, writer->names_size + length + 24, 1);
    unsigned char *to = writer->names + writer->names_size;
    *to++ = (unsigned char)kind;
    if (kind >= RF_RFT_VARIABLE)
        to = rf_rft_put_varint(to, addr);
    to = rf_rft_put_varint(to, length);
    memcpy(to, name, length);
    writer->names_size = (size_t)(to - writer->names) + length;
}

static void declare_text(struct rf_writer *writer, struct rf_names *names, enum rf_text_name kind, const char *name)
{
    (void)writer;
    char *text = rf_text_escape(name, kind);
    rf_names_append(names, text, strlen(text));
    free(text);
}

void rf_writer_thread(struct rf_writer *writer, uint32_t thread, const char *name)
{
    if (thread != writer->threads || thread >= RF_RFT_MAX_THREADS) {
        rf_writer_fail(writer, "%s: thread %" PRIu32 " is declared out of order", writer->path, thread);
        return;
    }
    writer->threads++;
    if (writer->format == RF_FORMAT_STD)
        declare_text(writer, &writer->thread_names, RF_TEXT_THREAD, name);
    else
        declare(writer, RF_RFT_THREAD, 0, name);
}

void rf_writer_site(struct rf_writer *writer, uint32_t site, const char *name)
{
    if (site != writer->sites) {
        rf_writer_fail(writer, "%s: site %" PRIu32 " is declared out of order", writer->path, site);
        return;
    }
    writer->sites++;
    if (writer->format == RF_FORMAT_STD)
        declare_text(writer, &writer->site_names, RF_TEXT_PLACE, name);
    else
        declare(writer, RF_RFT_SITE, 0, name);
}

static void declare_symbol(struct rf_writer *writer, struct rf_symbols *symbols, enum rf_rft_name kind, uint64_t addr,
                           const char *name)
{
    char *text = rf_text_escape(name, RF_TEXT_VARIABLE);
    if (!rf_symbols_declare(symbols, addr, text, strlen(text)))
        rf_writer_fail(writer, "%s: the name '%s' is declared out of order", writer->path, name);
    else if (writer->format == RF_FORMAT_RFT)
        declare(writer, kind, addr, name);
    free(text);
}

void rf_writer_variable(struct rf_writer *writer, uint64_t addr, const char *name)
{
    declare_symbol(writer, &writer->variables, RF_RFT_VARIABLE, addr, name);
}

void rf_writer_object(struct rf_writer *writer, uint64_t addr, const char *name)
{
    declare_symbol(writer, &writer->objects, RF_RFT_OBJECT, addr, name);
}

/* Keeps the file readable: what the decoder would refuse is refused here. NULL, or what is wrong. */
static const char *event_flaw(const struct rf_writer *writer, uint64_t number, const struct rf_event *event)
{
    enum rf_op op = (enum rf_op)event->op;
    if (op >= RF_OP_COUNT)
        return "unknown operation";
    if (number < writer->last_number)
        return "event numbers decrease";
    if (event->thread >= writer->threads || event->site >= writer->sites)
        return "a thread or site was not declared";
    if ((rf_op_kind(op) == RF_PART) != (writer->parts > 0))
        return "the parts of a commit or copy do not follow it";
    switch (op) {
    case RF_READ:
    case RF_WRITE:
        if (event->size == 0 || event->addr + event->size < event->addr)
            return "an access has no size, or leaves memory";
        break;
    case RF_COMMIT_READ:
    case RF_COMMIT_WRITE:
        if (event->size == 0 || (event->addr & (RF_GRANULE - 1)) + event->size > RF_GRANULE)
            return "an access of a commit is not inside a granule";
        break;
    case RF_ALLOC:
    case RF_FREE:
    case RF_COPY:
    case RF_COPY_TO:
        if (event->size == 0 || event->size > RF_MAX_SIZE || event->addr + event->size < event->addr)
            return "impossible range of memory";
        break;
    case RF_COMMIT:
        if (event->size >= RF_RFT_MAX_EVENTS / 2)
            return "a commit has too many parts";
        break;
    case RF_FORK:
    case RF_JOIN:
    case RF_IDENTITY:
        if (event->addr >= writer->threads)
            return "a thread was not declared";
        break;
    default:
        break;
    }
    if (rf_op_kind(op) == RF_PART) {
        const struct rf_event *head = &writer->pending[writer->count - 1];
        if (head->thread != event->thread || head->system != event->system || head->number != event->number || number != writer->last_number)
            return "the parts of a commit or copy do not follow it";
        if ((op == RF_COPY_TO) != (head->op == RF_COPY) || (op == RF_COPY_TO && head->size != event->size))
            return "the parts of a commit or copy do not fit it";
    }
    return NULL;
}

static void append(struct rf_writer *writer, uint64_t number, struct rf_event event)
{
    if (writer->count && (number - writer->first > UINT32_MAX || (writer->count >= CHUNK_EVENTS && !writer->parts)))
        flush_events(writer);
    if (writer->count == 0)
        writer->first = number;
    writer->pending = rf_reserve(writer->pending, &writer->capacity, writer->count + 1, sizeof *writer->pending);
    writer->pending[writer->count++] = event;
}

/* One event for each granule. */
static void append_pieces(struct rf_writer *writer, uint64_t number, struct rf_event event)
{
    uint64_t left = event.size;
    while (left) {
        uint64_t piece = RF_GRANULE - (event.addr & (RF_GRANULE - 1));
        if (piece > left)
            piece = left;
        event.size = (uint32_t)piece & 0xffffffu;
        append(writer, number, event);
        event.addr += piece;
        left -= piece;
    }
}

void rf_writer_event(struct rf_writer *writer, uint64_t number, const struct rf_event *given)
{
    if (writer->error)
        return;
    struct rf_event event = *given;
    event.number = (uint32_t)number;
    const char *flaw = event_flaw(writer, number, &event);
    if (flaw) {
        rf_writer_fail(writer, "%s: event %" PRIu64 ": %s", writer->path, number, flaw);
        return;
    }
    enum rf_op op = (enum rf_op)event.op;
    if (!rft_has_size(op))
        event.size = 0;
    if (writer->format == RF_FORMAT_STD)
        rf_text_event(writer, number, &event);
    else if (op <= RF_WRITE && (event.addr & (RF_GRANULE - 1)) + event.size > RF_GRANULE)
        append_pieces(writer, number, event);
    else
        append(writer, number, event);
    writer->last_number = number;
    if (rf_op_kind(op) == RF_PART)
        writer->parts--;
    else
        writer->parts = op == RF_COMMIT ? event.size : op == RF_COPY ? 1 : 0;
}

bool rf_writer_failed(const struct rf_writer *writer)
{
    return writer->error != NULL;
}

bool rf_writer_close(struct rf_writer *writer, char **error)
{
    if (writer->parts)
        rf_writer_fail(writer, "%s: the last commit or copy lacks parts", writer->path);
    if (writer->format == RF_FORMAT_STD) {
        rf_text_flush(writer);
    } else if (!writer->error) {
        flush_events(writer);
        struct rf_rft_header header = { .type = RF_RFT_END, .first = writer->events };
        write_chunk(writer, &header, (const unsigned char *)"", 0);
    }
    if (close(writer->fd) != 0)
        rf_writer_fail(writer, "%s: %s", writer->path, strerror(errno));
    bool good = !writer->error;
    if (!good)
        *error = writer->error;
    rf_rft_encoder_free(writer->encoder);
    ZSTD_freeCCtx(writer->packer);
    rf_names_free(&writer->thread_names);
    rf_names_free(&writer->site_names);
    rf_symbols_free(&writer->variables);
    rf_symbols_free(&writer->objects);
    free(writer->pending);
    free(writer->names);
    free(writer->packed);
    free(writer->text);
    free(writer->path);
    free(writer);
    return good;
}
