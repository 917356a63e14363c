/* The encoder of .rft chunks (see rft.h and rft_coding.h). */
#include <endian.h>
#include <string.h>

#include "trace/grow.h"
#include "trace/rft.h"
#include "trace/rft_coding.h"

/* The most bytes an event can take in a column. */
#define TAG_BYTES 3u /* a step, a thread, the event */
#define ADDR_BYTES 8u
#define SITE_BYTES 4u
#define MISC_BYTES 40u /* a step, a thread, an address, a site, a size */

struct rf_rft_encoder {
    unsigned char *columns[4];
    size_t room; /* events that fit the columns */
    unsigned char *joined;
    size_t joined_room;
    struct rf_rft_thread *threads; /* of this chunk, in the order in which they came */
    size_t threads_count, threads_capacity;
    uint32_t *places; /* thread -> index into threads, if that entry is really its own */
    size_t places_capacity;
};

struct rf_rft_encoder *rf_rft_encoder_new(void)
{
    struct rf_rft_encoder *encoder = rf_resize(NULL, sizeof *encoder);
    *encoder = (struct rf_rft_encoder){ 0 };
    return encoder;
}

void rf_rft_encoder_free(struct rf_rft_encoder *encoder)
{
    if (!encoder)
        return;
    for (size_t i = 0; i < 4; i++)
        free(encoder->columns[i]);
    free(encoder->joined);
    free(encoder->threads);
    free(encoder->places);
    free(encoder);
}

static void make_room(struct rf_rft_encoder *encoder, size_t count)
{
    static const size_t bytes[4] = { TAG_BYTES, ADDR_BYTES, SITE_BYTES, MISC_BYTES };
    if (count <= encoder->room)
        return;
    encoder->room = count;
    for (size_t i = 0; i < 4; i++)
        encoder->columns[i] = rf_resize(encoder->columns[i], count * bytes[i]);
}

/* The place of a thread among the threads of this chunk; its tag and number are written when it differs from the last. */
static size_t switch_thread(struct rf_rft_encoder *encoder, uint32_t thread, unsigned char **tags, unsigned char **misc)
{
    size_t known = encoder->places_capacity;
    encoder->places = rf_reserve(encoder->places, &encoder->places_capacity, (size_t)thread + 1, sizeof *encoder->places);
    if (known < encoder->places_capacity)
        memset(encoder->places + known, 0, (encoder->places_capacity - known) * sizeof *encoder->places);
    size_t place = encoder->places[thread];
    if (place < encoder->threads_count && encoder->threads[place].thread == thread) {
        *(*tags)++ = RFT_OTHER + RFT_THREAD;
        *misc = rf_rft_put_varint(*misc, place);
        return place;
    }
    place = encoder->threads_count++;
    encoder->threads =
        rf_reserve(encoder->threads, &encoder->threads_capacity, encoder->threads_count, sizeof *encoder->threads);
    encoder->threads[place] = (struct rf_rft_thread){ .thread = thread };
    encoder->places[thread] = (uint32_t)place;
    *(*tags)++ = RFT_OTHER + RFT_NEW_THREAD;
    *misc = rf_rft_put_varint(*misc, thread);
    return place;
}

/* How an address is written, and what is written. */
static unsigned addr_class(uint64_t delta, unsigned log, uint64_t *coded)
{
    int64_t scaled = (int64_t)delta / ((int64_t)1 << log);
    *coded = 0;
    if (delta == 0)
        return RFT_SAME;
    if (delta == UINT64_C(1) << log)
        return RFT_NEXT;
    if ((uint64_t)scaled << log == delta) {
        *coded = rft_zigzag((uint64_t)scaled);
        if (*coded <= 0xff)
            return RFT_ADDR1;
        if (*coded <= 0xffff)
            return RFT_ADDR2;
    }
    *coded = rft_zigzag(delta);
    return *coded <= 0xffffffff ? RFT_ADDR4 : RFT_ADDR8;
}

static unsigned site_class(uint32_t delta, uint32_t *coded)
{
    *coded = rft_zigzag32(delta);
    return delta == 0 ? RFT_SITE_SAME : delta == 1 ? RFT_SITE_NEXT : *coded <= 0xff ? RFT_SITE1 : RFT_SITE4;
}

static void put_other(const struct rf_event *event, struct rf_rft_thread *now, unsigned char **tags, unsigned char **misc)
{
    enum rf_op op = (enum rf_op)event->op;
    unsigned char *m = *misc;
    if (rft_base(op) == RFT_ABSOLUTE) {
        m = rf_rft_put_varint(m, event->addr);
    } else {
        uint64_t *last = rft_base(op) == RFT_VARIABLE ? &now->variable : &now->object;
        m = rf_rft_put_varint(m, rft_zigzag(event->addr - *last));
        *last = event->addr;
    }
    m = rf_rft_put_varint(m, rft_zigzag32(event->site - now->site));
    now->site = event->site;
    if (rft_has_size(op))
        m = rf_rft_put_varint(m, event->size);
    *(*tags)++ = (unsigned char)(RFT_OTHER + (event->system ? RFT_SYSTEM : 0) + op);
    *misc = m;
}

const unsigned char *rf_rft_encode(struct rf_rft_encoder *encoder, const struct rf_event *events, size_t count,
                                   uint64_t first, size_t *size)
{
    static const unsigned char addr_bytes[6] = { 0, 0, 1, 2, 4, 8 }, site_bytes[4] = { 0, 0, 1, 4 };
    make_room(encoder, count);
    unsigned char *tags = encoder->columns[0], *addrs = encoder->columns[1], *sites = encoder->columns[2];
    unsigned char *misc = encoder->columns[3];
    encoder->threads_count = 0;
    size_t place = SIZE_MAX;
    uint32_t number = (uint32_t)first - 1;
    for (const struct rf_event *event = events; event < events + count; event++) {
        if (place == SIZE_MAX || encoder->threads[place].thread != event->thread)
            place = switch_thread(encoder, event->thread, &tags, &misc);
        struct rf_rft_thread *now = &encoder->threads[place];
        bool part = rf_op_kind((enum rf_op)event->op) == RF_PART;
        if (event->number - number != (part ? 0 : 1)) {
            *tags++ = RFT_OTHER + RFT_STEP;
            misc = rf_rft_put_varint(misc, event->number - number);
        }
        number = event->number;
        if (event->op > RF_WRITE || event->system || (event->size & (event->size - 1u)) != 0) {
            put_other(event, now, &tags, &misc);
            continue;
        }
        unsigned log = (unsigned)__builtin_ctz(event->size);
        uint64_t coded;
        uint32_t coded_site;
        unsigned where = addr_class(event->addr - now->variable, log, &coded);
        unsigned site = site_class(event->site - now->site, &coded_site);
        *tags++ = (unsigned char)rft_tag(site, where, log, event->op);
        coded = htole64(coded);
        memcpy(addrs, &coded, 8);
        addrs += addr_bytes[where];
        coded_site = htole32(coded_site);
        memcpy(sites, &coded_site, 4);
        sites += site_bytes[site];
        now->variable = event->addr;
        now->site = event->site;
    }

    unsigned char *ends[4] = { tags, addrs, sites, misc };
    size_t total = RFT_COLUMNS;
    for (size_t i = 0; i < 4; i++)
        total += (size_t)(ends[i] - encoder->columns[i]);
    encoder->joined = rf_reserve(encoder->joined, &encoder->joined_room, total, 1);
    unsigned char *to = encoder->joined + RFT_COLUMNS;
    for (size_t i = 0; i < 4; i++) {
        uint32_t bytes = (uint32_t)(ends[i] - encoder->columns[i]);
        memcpy(to, encoder->columns[i], bytes);
        to += bytes;
        bytes = htole32(bytes);
        if (i < 3)
            memcpy(encoder->joined + 4 * i, &bytes, 4);
    }
    *size = total;
    return encoder->joined;
}
