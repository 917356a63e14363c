/* Where a trace's bytes come from: a file, a pipe, or memory.
 *
 * 1. rf_input_read() delivers every byte once, in order.
 * 2. rf_input_read_at() delivers any byte that rf_input_read() has delivered, again: from the file, from memory, or from the
 *    unlinked temporary file into which a pipe is copied while it is read.
 */
#ifndef RF_TRACE_INPUT_H
#define RF_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rf_input {
    const char *path; /* as the user knows it */
    int fd;           /* -1 for memory */
    int spool;        /* the copy of a pipe; -1: not a pipe, or no copy could be made */
    const unsigned char *memory;
    uint64_t size;     /* 0 if unknown */
    uint64_t position; /* bytes delivered */
    uint64_t again;    /* after a rewind of a pipe: bytes up to here come from the copy */
    bool seekable;
    unsigned char peeked[8]; /* taken by rf_input_peek(), delivered next */
    size_t peeked_count;
};

bool rf_input_open(struct rf_input *input, const char *path); /* false: see errno */
void rf_input_open_memory(struct rf_input *input, const void *bytes, size_t size);
void rf_input_close(struct rf_input *input);
/* Up to 8 bytes from the start, without taking them; only before the first read. -1 with errno on failure. */
ssize_t rf_input_peek(struct rf_input *input, unsigned char bytes[8]);
/* Fewer bytes than asked for only at the end. -1 with errno on failure. */
ssize_t rf_input_read(struct rf_input *input, void *bytes, size_t count);
/* Back to the start. false: a pipe of which there is no copy. */
bool rf_input_rewind(struct rf_input *input);
bool rf_input_can_read_at(const struct rf_input *input);
ssize_t rf_input_read_at(const struct rf_input *input, void *bytes, size_t count, uint64_t offset);

#endif
