/* The inside of a writer; for the files of this room.
 *
 * 1. The first thing that goes wrong is kept, and told by rf_writer_close(); nothing is written after it.
 * 2. What is in the file at any moment is whole chunks, or whole lines but for the last: a writer that is killed leaves a
 *    trace that can be read up to there.
 */
#ifndef RF_TRACE_WRITER_H
#define RF_TRACE_WRITER_H

#include <zstd.h>

#include "trace/names.h"
#include "trace/rft.h"
#include "trace/trace.h"

struct rf_writer {
    char *path;
    int fd;
    enum rf_trace_format format;
    char *error;
    uint64_t last_number, events, bytes;
    uint32_t threads, sites; /* declared */
    size_t parts;            /* that must still follow a COMMIT or COPY */
    /* .rft: a chunk in the making; text: the events of one line */
    struct rf_event *pending;
    size_t count, capacity;
    uint64_t first;       /* full number of pending[0] */
    unsigned char *names; /* declared since the last chunk of names, coded */
    size_t names_size, names_capacity;
    struct rf_rft_encoder *encoder;
    ZSTD_CCtx *packer;
    unsigned char *packed;
    size_t packed_capacity;
    /* text */
    char *text;
    size_t text_size;
    uint64_t line; /* lines written */
    struct rf_names thread_names, site_names;
    struct rf_symbols variables, objects;
};

__attribute__((format(printf, 2, 3))) void rf_writer_fail(struct rf_writer *writer, const char *format, ...);
void rf_writer_put(struct rf_writer *writer, const void *bytes, size_t size);

enum rf_text_name { RF_TEXT_PLACE, RF_TEXT_THREAD, RF_TEXT_VARIABLE };
/* The text of a name as a line can hold it: what would end the field is written as %XX. The caller frees it. */
char *rf_text_escape(const char *name, enum rf_text_name kind);
void rf_text_event(struct rf_writer *writer, uint64_t number, const struct rf_event *event);
void rf_text_flush(struct rf_writer *writer);

#endif
