/* Opening a trace, and what is common to both formats. fetch.c reads them, lookup.c finds events again. */
#include "trace/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trace/grow.h"

static char *print_line(const char *format, va_list arguments)
{
    char *line;
    if (vasprintf(&line, format, arguments) < 0) {
        fprintf(stderr, "redflag: out of memory\n");
        exit(2);
    }
    return line;
}

enum rf_trace_status rf_reader_stop(struct rf_reader *reader, enum rf_trace_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    free(reader->error);
    reader->error = print_line(format, arguments);
    va_end(arguments);
    reader->over = status;
    return status;
}

static bool ends_in_rft(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".rft") == 0;
}

/* The first byte of the magic cannot begin a text; an empty file is what its name says. */
static bool guess_format(struct rf_reader *reader)
{
    unsigned char first[8];
    ssize_t got = rf_input_peek(&reader->input, first);
    if (got < 0)
        return false;
    bool binary = got > 0 ? first[0] == (unsigned char)RF_RFT_MAGIC[0] : ends_in_rft(reader->path);
    reader->format = binary || ends_in_rft(reader->path) ? RF_FORMAT_RFT : RF_FORMAT_STD;
    return true;
}

/* Takes over the reader; NULL and a line if its trace cannot be begun. */
static struct rf_reader *begin(struct rf_reader *reader, enum rf_trace_format format, char **error)
{
    reader->format = format;
    bool readable = format != RF_FORMAT_AUTO || guess_format(reader);
    if (!readable)
        rf_reader_stop(reader, RF_TRACE_ERROR, "%s: %s", reader->input.path, strerror(errno));
    else if (reader->format == RF_FORMAT_RFT)
        rf_binary_begin(reader);
    if (reader->over != RF_TRACE_ERROR)
        return reader;
    *error = reader->error;
    reader->error = NULL;
    rf_reader_close(reader);
    return NULL;
}

static struct rf_reader *reader_new(const char *path)
{
    struct rf_reader *reader = rf_resize(NULL, sizeof *reader);
    *reader = (struct rf_reader){ .over = RF_TRACE_MORE, .input = { .fd = -1, .spool = -1 } };
    reader->path = strcpy(rf_resize(NULL, strlen(path) + 1), path);
    rf_tables_init(&reader->tables);
    reader->marks.marks = rf_resize(NULL, RF_MARKS * sizeof *reader->marks.marks);
    reader->marks.stride = 1;
    reader->own = rf_chunk_new();
    reader->names = rf_chunk_new();
    reader->resolver = rf_resolver_new();
    return reader;
}

struct rf_reader *rf_reader_open(const char *path, enum rf_trace_format format, char **error)
{
    struct rf_reader *reader = reader_new(path);
    if (rf_input_open(&reader->input, reader->path))
        return begin(reader, format, error);
    rf_reader_stop(reader, RF_TRACE_ERROR, "%s: %s", path, strerror(errno));
    *error = reader->error;
    reader->error = NULL;
    rf_reader_close(reader);
    return NULL;
}

struct rf_reader *rf_reader_open_memory(const void *bytes, size_t size, enum rf_trace_format format, char **error)
{
    struct rf_reader *reader = reader_new("memory");
    rf_input_open_memory(&reader->input, bytes, size);
    return begin(reader, format, error);
}

void rf_reader_close(struct rf_reader *reader)
{
    if (!reader)
        return;
    rf_input_close(&reader->input);
    rf_tables_free(&reader->tables);
    rf_chunk_free(reader->own);
    rf_chunk_free(reader->names);
    rf_resolver_free(reader->resolver);
    free(reader->marks.marks);
    free(reader->text);
    free(reader->path);
    free(reader->error);
    free(reader);
}

bool rf_reader_rewind(struct rf_reader *reader)
{
    if (!rf_input_rewind(&reader->input)) {
        rf_reader_stop(reader, RF_TRACE_ERROR, "%s: cannot be read a second time: no copy of the pipe could be kept",
                       reader->input.path);
        return false;
    }
    rf_tables_free(&reader->tables);
    rf_tables_init(&reader->tables);
    unsigned view = rf_resolver_viewed(reader->resolver);
    rf_resolver_free(reader->resolver);
    reader->resolver = rf_resolver_new();
    rf_resolver_view(reader->resolver, view);
    free(reader->error);
    reader->error = NULL;
    reader->over = RF_TRACE_MORE;
    reader->marks.count = 0;
    reader->marks.stride = 1;
    reader->marks.skipped = 0;
    reader->events = reader->last_number = reader->text_line = 0;
    reader->text_start = reader->text_end = 0;
    reader->text_seen = reader->text_thread = 0;
    reader->text_final = false;
    if (reader->format == RF_FORMAT_RFT)
        rf_binary_begin(reader);
    return reader->over != RF_TRACE_ERROR;
}

uint64_t rf_reader_events(const struct rf_reader *reader)
{
    return reader->events;
}

enum rf_trace_format rf_reader_format(const struct rf_reader *reader)
{
    return reader->format;
}

const char *rf_reader_error(const struct rf_reader *reader)
{
    return reader->error ? reader->error : "";
}

uint64_t rf_reader_position(const struct rf_reader *reader)
{
    return reader->input.position - (reader->text_end - reader->text_start);
}

uint64_t rf_reader_size(const struct rf_reader *reader)
{
    return reader->input.size;
}

struct rf_chunk *rf_chunk_new(void)
{
    struct rf_chunk *chunk = rf_resize(NULL, sizeof *chunk);
    *chunk = (struct rf_chunk){ 0 };
    return chunk;
}

void rf_chunk_free(struct rf_chunk *chunk)
{
    if (!chunk)
        return;
    free(chunk->events);
    free(chunk->resolved);
    free(chunk->packed);
    free(chunk->raw);
    free(chunk->threads);
    ZSTD_freeDCtx(chunk->unpacker);
    free(chunk);
}

enum rf_trace_status rf_reader_fetch(struct rf_reader *reader, struct rf_chunk *chunk)
{
    chunk->flaw = NULL;
    if (reader->over != RF_TRACE_MORE)
        return reader->over;
    return reader->format == RF_FORMAT_STD ? rf_text_fetch(reader, chunk) : rf_binary_fetch(reader, chunk);
}

enum rf_trace_status rf_reader_damaged(struct rf_reader *reader, const struct rf_chunk *chunk)
{
    return rf_reader_stop(reader, RF_TRACE_TRUNCATED, "%s: offset %" PRIu64 ": %s; %" PRIu64 " events are good",
                          reader->input.path, chunk->offset, chunk->flaw ? chunk->flaw : "damaged chunk", chunk->before);
}

void rf_reader_view(struct rf_reader *reader, unsigned view)
{
    rf_resolver_view(reader->resolver, view);
}

void rf_reader_resolve(struct rf_reader *reader, struct rf_chunk *chunk, struct rf_batch *batch)
{
    rf_resolve(reader->resolver, chunk, batch);
}

bool rf_reader_resolves(const struct rf_reader *reader, const struct rf_batch *batch)
{
    return rf_resolves(reader->resolver, batch);
}

enum rf_trace_status rf_reader_next(struct rf_reader *reader, struct rf_batch *batch)
{
    do {
        *batch = (struct rf_batch){ 0 };
        enum rf_trace_status status = rf_reader_fetch(reader, reader->own);
        if (status != RF_TRACE_MORE)
            return status;
        if (!rf_chunk_decode(reader, reader->own, batch))
            return rf_reader_damaged(reader, reader->own);
        rf_reader_resolve(reader, reader->own, batch);
    } while (batch->count == 0);
    return RF_TRACE_MORE;
}

const char *rf_reader_thread(const struct rf_reader *reader, uint32_t thread)
{
    const char *text = rf_names_text(&reader->tables.threads, thread);
    return text ? text : "?";
}

uint32_t rf_reader_threads(const struct rf_reader *reader)
{
    return (uint32_t)reader->tables.threads.count;
}

const char *rf_reader_site(const struct rf_reader *reader, uint32_t site)
{
    const char *text = rf_names_text(&reader->tables.sites, site);
    return text ? text : "?";
}

uint32_t rf_reader_sites(const struct rf_reader *reader)
{
    return (uint32_t)reader->tables.sites.count;
}

static const char *symbol(const struct rf_symbols *symbols, uint64_t addr, char buffer[32])
{
    const struct rf_name *name = rf_symbols_name(symbols, addr);
    if (name)
        return name->text;
    snprintf(buffer, 32, "0x%" PRIx64, addr);
    return buffer;
}

const char *rf_reader_variable(const struct rf_reader *reader, uint64_t addr, char buffer[32])
{
    return symbol(&reader->tables.variables, addr, buffer);
}

const char *rf_reader_object(const struct rf_reader *reader, uint64_t addr, char buffer[32])
{
    return symbol(&reader->tables.objects, addr, buffer);
}

uint32_t rf_reader_variables(const struct rf_reader *reader)
{
    return (uint32_t)reader->tables.variables.named.count;
}

uint32_t rf_reader_objects(const struct rf_reader *reader)
{
    return (uint32_t)reader->tables.objects.named.count;
}
