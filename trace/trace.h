/* Reading and writing traces, in either format.
 *
 * A reader hands out batches of decoded events in order, and the names that belong to their numbers. It works on files and
 * on pipes, and its memory does not grow with the length of the trace (names apart). To let several threads decode at once
 * it is split in two: rf_reader_fetch() takes the next chunk from the input, in order, one thread at a time;
 * rf_chunk_decode() may run in any thread, on any chunk, in any order. rf_reader_next() does both, and resolves.
 */
#ifndef RF_TRACE_TRACE_H
#define RF_TRACE_TRACE_H

#include "core/event.h"

struct rf_reader;
struct rf_writer;
struct rf_chunk;

enum rf_trace_status {
    RF_TRACE_MORE,      /* a chunk or a batch was delivered */
    RF_TRACE_END,       /* the trace ended as it should */
    RF_TRACE_TRUNCATED, /* damaged or cut short: all that is good was delivered before; rf_reader_error() says where */
    RF_TRACE_ERROR      /* not a trace, bad syntax, or an I/O error; rf_reader_error() says what and where */
};

enum rf_trace_format { RF_FORMAT_AUTO, RF_FORMAT_STD, RF_FORMAT_RFT };

/* "-" is standard input. On failure returns NULL and points *error at one line, which the caller frees. */
struct rf_reader *rf_reader_open(const char *path, enum rf_trace_format format, char **error);
/* The same, from bytes that stay where they are until the reader is closed. */
struct rf_reader *rf_reader_open_memory(const void *bytes, size_t size, enum rf_trace_format format, char **error);
void rf_reader_close(struct rf_reader *reader);
/* Back to the start, as if just opened; a pipe goes on from its copy. false: rf_reader_error() says why not. */
bool rf_reader_rewind(struct rf_reader *reader);
/* Events read so far: accesses are cut, nothing is resolved. */
uint64_t rf_reader_events(const struct rf_reader *reader);
enum rf_trace_format rf_reader_format(const struct rf_reader *reader);
/* The line to show the user: "PATH:LINE: ..." or "PATH: offset N: ...". */
const char *rf_reader_error(const struct rf_reader *reader);

/* The next batch, resolved. It is valid until the next call. */
enum rf_trace_status rf_reader_next(struct rf_reader *reader, struct rf_batch *batch);

/* The two halves, for several threads. A chunk may be reused for the next fetch. */
struct rf_chunk *rf_chunk_new(void);
void rf_chunk_free(struct rf_chunk *chunk);
enum rf_trace_status rf_reader_fetch(struct rf_reader *reader, struct rf_chunk *chunk);
/* Never touches the reader's mutable state. false: the chunk is damaged, *batch holds what is good before it. */
bool rf_chunk_decode(const struct rf_reader *reader, struct rf_chunk *chunk, struct rf_batch *batch);
/* The same, straight into the shares of several workers (see struct rf_share): batch->events is NULL. Of .rft traces only, and only if
 * rf_reader_resolves() says that nothing is to be rewritten; else the chunk can be decoded again, as a whole. */
bool rf_chunk_decode_shares(struct rf_chunk *chunk, struct rf_batch *batch, struct rf_share *shares, unsigned share_count);
/* After a decoding that failed: rf_reader_error() then says what is wrong with the chunk, and nothing more is fetched.
 * Returns RF_TRACE_TRUNCATED. Call it for the first bad chunk in the order of the trace. */
enum rf_trace_status rf_reader_damaged(struct rf_reader *reader, const struct rf_chunk *chunk);
/* How an execution is looked at, where it carries more than one view of itself (doc/embedding.md). 0, as every reader begins: the
 * program's alone. A bit adds what the runtime system did, or leaves out what it told. */
enum rf_view {
    RF_VIEW_PROGRAM = 0,
    RF_VIEW_SYSTEM_MEMORY = 1, /* accesses, alloc, free and copy with the mark count like any other */
    RF_VIEW_SYSTEM_SYNC = 2,   /* synchronisation with the mark does */
    RF_VIEW_NO_CLEAR = 4,      /* alloc and free of the program's memory are not heard of */
    RF_VIEW_NO_COPY = 8,       /* nor copy */
    RF_VIEW_NO_IDENTITY = 16   /* nor ident: an event is its kernel thread's */
};
/* Before the first event is read; it stays when the reader is rewound. */
void rf_reader_view(struct rf_reader *reader, unsigned view);

/* Rewrites RAW events (see core/ops.def), and leaves out what the view does. In the order of the trace, one thread at a time. Cheap when there is nothing to
 * do. The batch may be replaced by one that lives in the chunk. */
void rf_reader_resolve(struct rf_reader *reader, struct rf_chunk *chunk, struct rf_batch *batch);
/* Would it change this batch, which is the next in the order of the trace? Its events are not looked at, only its `ops`. */
bool rf_reader_resolves(const struct rf_reader *reader, const struct rf_batch *batch);

/* How far the input has been read, for a progress bar: bytes taken, and the size of the input, 0 if unknown. */
uint64_t rf_reader_position(const struct rf_reader *reader);
uint64_t rf_reader_size(const struct rf_reader *reader);

/* Names. Indices and addresses come from events; a variable without a name is written as an address into buffer.
 * Safe while another thread fetches? No: ask after the run, or from the thread that fetches. */
const char *rf_reader_thread(const struct rf_reader *reader, uint32_t thread);
uint32_t rf_reader_threads(const struct rf_reader *reader);
const char *rf_reader_site(const struct rf_reader *reader, uint32_t site); /* "" for none */
uint32_t rf_reader_sites(const struct rf_reader *reader);
const char *rf_reader_variable(const struct rf_reader *reader, uint64_t addr, char buffer[32]);
const char *rf_reader_object(const struct rf_reader *reader, uint64_t addr, char buffer[32]); /* locks, volatiles, ... */

/* How many variables, and objects, have a name and no address. */
uint32_t rf_reader_variables(const struct rf_reader *reader);
uint32_t rf_reader_objects(const struct rf_reader *reader);

/* An event as a line of text without its newline, cut to fit; a COMMIT or COPY is followed by its parts, as in a batch. */
void rf_reader_print(const struct rf_reader *reader, const struct rf_event *event, char *line, size_t size);

/* Finds events again by their numbers, after the trace was read once (a pipe is spooled to an unlinked temporary file while
 * it is read). numbers must be sorted; found() is called for each event that has one of them, in order. */
typedef void rf_found_fn(void *context, uint64_t number, const struct rf_event *event);
enum rf_trace_status rf_reader_lookup(struct rf_reader *reader, const uint64_t *numbers, size_t count, rf_found_fn *found,
                                      void *context);

/* Writing. Threads, sites, variables and objects are declared before an event uses them, in the order of their indices. */
struct rf_writer *rf_writer_open(const char *path, enum rf_trace_format format, char **error);
void rf_writer_thread(struct rf_writer *writer, uint32_t thread, const char *name);
void rf_writer_site(struct rf_writer *writer, uint32_t site, const char *name);
void rf_writer_variable(struct rf_writer *writer, uint64_t addr, const char *name);
void rf_writer_object(struct rf_writer *writer, uint64_t addr, const char *name);
/* Declares all names that a reader has by now and the writer has not. */
void rf_writer_names(struct rf_writer *writer, const struct rf_reader *reader);
void rf_writer_event(struct rf_writer *writer, uint64_t number, const struct rf_event *event);
uint64_t rf_writer_bytes(const struct rf_writer *writer); /* handed to the system so far */
/* Something went wrong, and nothing more is written: whoever has much to write may stop. rf_writer_close() says what it was. */
bool rf_writer_failed(const struct rf_writer *writer);
/* Flushes and closes. false, with *error set, if anything since the opening failed: then the file must not be trusted. */
bool rf_writer_close(struct rf_writer *writer, char **error);

#endif
