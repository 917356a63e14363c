/* The binary format .rft: headers of its chunks, and the coding of events inside one. doc/traces.md is the reference.
 *
 * 1. A chunk of events can be decoded on its own: every delta starts afresh in it.
 * 2. Nothing that a file says is believed: a chunk is taken only if its hash is right, and decoded only as far as every
 *    length, index and size in it is in range. What leaves the decoder keeps the invariants of core/event.h.
 * 3. An event costs one tag byte in the first column, and what the tag says in the others. The common case, a READ or WRITE
 *    of 1, 2, 4 or 8 bytes, has field widths in its tag, so that decoding it takes no branch that depends on the data, and
 *    bounds are looked at once for a stretch of such events: RF_RFT_SLACK bytes behind the chunk may be read in vain.
 */
#ifndef RF_TRACE_RFT_H
#define RF_TRACE_RFT_H

#include "core/event.h"

#define RF_RFT_MAGIC "\x89RFT\r\n\x1a\n"
#define RF_RFT_VERSION 1u
#define RF_RFT_FILE_HEADER 16u /* magic, version, zero */
#define RF_RFT_CHUNK_HEADER 40u
#define RF_RFT_MAX_BYTES (64u << 20) /* of a chunk, packed or not */
#define RF_RFT_MAX_EVENTS (1u << 21) /* of a chunk */
#define RF_RFT_SLACK 512u            /* bytes that may be read, and are ignored, behind an unpacked chunk */
#define RF_RFT_MAX_THREADS (1u << 24)

enum rf_rft_type { RF_RFT_NAMES = 1, RF_RFT_EVENTS = 2, RF_RFT_END = 3 };
enum rf_rft_name { RF_RFT_THREAD, RF_RFT_SITE, RF_RFT_VARIABLE, RF_RFT_OBJECT };

struct rf_rft_header {
    uint32_t type;
    uint32_t packed; /* bytes of the payload in the file */
    uint32_t raw;    /* bytes once unpacked; the same: it was not worth packing */
    uint32_t events;
    uint64_t first; /* number of the first event; END: events in the trace */
    uint32_t span;  /* number of the last event minus first */
    uint32_t zero;
    uint64_t hash;
};

/* What a thread did last, in this chunk. */
struct rf_rft_thread {
    uint64_t variable, object;
    uint32_t thread, site;
};

/* Both need the payload: the hash covers it, together with the rest of the header. */
void rf_rft_put_header(unsigned char bytes[RF_RFT_CHUNK_HEADER], struct rf_rft_header *header, const void *payload);
bool rf_rft_hash_matches(const unsigned char bytes[RF_RFT_CHUNK_HEADER], const struct rf_rft_header *header,
                         const void *payload);
void rf_rft_get_header(struct rf_rft_header *header, const unsigned char bytes[RF_RFT_CHUNK_HEADER]);
/* NULL, or why a header cannot be right. */
const char *rf_rft_header_flaw(const struct rf_rft_header *header);

/* LEB128 numbers. The reader returns false at the end of the bytes or after more than 64 bits. */
unsigned char *rf_rft_put_varint(unsigned char *to, uint64_t value); /* at most 10 bytes */
bool rf_rft_get_varint(const unsigned char **from, const unsigned char *end, uint64_t *value);

struct rf_rft_encoder;
struct rf_rft_encoder *rf_rft_encoder_new(void);
void rf_rft_encoder_free(struct rf_rft_encoder *encoder);
/* The unpacked bytes of a chunk; they belong to the encoder and live until the next call. */
const unsigned char *rf_rft_encode(struct rf_rft_encoder *encoder, const struct rf_event *events, size_t count,
                                   uint64_t first, size_t *size);

struct rf_rft_limits {
    uint32_t threads, sites; /* how many are declared */
};

/* Where decoded events go, and what is said of them. */
struct rf_rft_decoded {
    struct rf_share *shares; /* empty, with room for header->events in each; one gets all */
    unsigned share_count;
    uint32_t ops;                  /* as in struct rf_batch */
    struct rf_rft_thread *threads; /* room for the decoder, which grows; freed by the caller */
    size_t threads_capacity;
};

/* Decodes header->events events. raw has RF_RFT_SLACK readable bytes behind it. NULL, or what is wrong. */
const char *rf_rft_decode(const struct rf_rft_header *header, const unsigned char *raw, struct rf_rft_limits limits,
                          struct rf_rft_decoded *decoded);

#endif
