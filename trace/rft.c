/* Headers of .rft chunks, and the decoder (see rft.h). The encoder is in rft_encode.c. */
#include "trace/rft.h"

#include <endian.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "trace/grow.h"
#include "trace/rft_coding.h"

static uint32_t load32(const unsigned char *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return le32toh(value);
}

static uint64_t load64(const unsigned char *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return le64toh(value);
}

static void store32(unsigned char *to, uint32_t value)
{
    value = htole32(value);
    memcpy(to, &value, sizeof value);
}

static void store64(unsigned char *to, uint64_t value)
{
    value = htole64(value);
    memcpy(to, &value, sizeof value);
}

#define HASHED 32u /* bytes of the header before the hash */

static uint64_t chunk_hash(const unsigned char *bytes, const struct rf_rft_header *header, const void *payload)
{
    return XXH3_64bits_withSeed(payload, header->packed, XXH3_64bits(bytes, HASHED));
}

void rf_rft_put_header(unsigned char bytes[RF_RFT_CHUNK_HEADER], struct rf_rft_header *header, const void *payload)
{
    store32(bytes, header->type);
    store32(bytes + 4, header->packed);
    store32(bytes + 8, header->raw);
    store32(bytes + 12, header->events);
    store64(bytes + 16, header->first);
    store32(bytes + 24, header->span);
    store32(bytes + 28, 0);
    header->hash = chunk_hash(bytes, header, payload);
    store64(bytes + HASHED, header->hash);
}

void rf_rft_get_header(struct rf_rft_header *header, const unsigned char bytes[RF_RFT_CHUNK_HEADER])
{
    header->type = load32(bytes);
    header->packed = load32(bytes + 4);
    header->raw = load32(bytes + 8);
    header->events = load32(bytes + 12);
    header->first = load64(bytes + 16);
    header->span = load32(bytes + 24);
    header->zero = load32(bytes + 28);
    header->hash = load64(bytes + HASHED);
}

bool rf_rft_hash_matches(const unsigned char bytes[RF_RFT_CHUNK_HEADER], const struct rf_rft_header *header,
                         const void *payload)
{
    return chunk_hash(bytes, header, payload) == header->hash;
}

const char *rf_rft_header_flaw(const struct rf_rft_header *header)
{
    if (header->type < RF_RFT_NAMES || header->type > RF_RFT_END)
        return "unknown kind of chunk";
    if (header->packed > RF_RFT_MAX_BYTES || header->raw > RF_RFT_MAX_BYTES || header->packed > header->raw)
        return "impossible chunk length";
    if (header->zero)
        return "damaged chunk header";
    if (header->type == RF_RFT_EVENTS) {
        if (header->events == 0 || header->events > RF_RFT_MAX_EVENTS || header->events > header->raw)
            return "impossible number of events";
        if (header->first + header->span < header->first)
            return "event numbers overflow";
    } else if (header->events) {
        return "damaged chunk header";
    }
    if (header->type == RF_RFT_END && header->raw)
        return "damaged end of the trace";
    return NULL;
}

unsigned char *rf_rft_put_varint(unsigned char *to, uint64_t value)
{
    while (value >= 0x80) {
        *to++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *to++ = (unsigned char)value;
    return to;
}

bool rf_rft_get_varint(const unsigned char **from, const unsigned char *end, uint64_t *value)
{
    const unsigned char *p = *from;
    uint64_t result = 0;
    for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
        uint64_t byte = *p++;
        result |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *from = p;
            *value = result;
            return true;
        }
    }
    return false;
}

struct cursor {
    const unsigned char *tags, *tags_end;
    const unsigned char *misc, *misc_end;
    struct rf_rft_thread now; /* of the current thread */
    uint64_t number;          /* of the last event */
    uint32_t ops;
    struct rf_rft_limits limits;
};

/* The fields of an operation that is not a common access, checked. */
static const char *decode_other(struct cursor *cursor, unsigned tag, struct rf_event *event)
{
    enum rf_op op = (enum rf_op)(tag & RFT_WHAT);
    uint64_t coded, addr, size = 0;
    if (op >= RF_OP_COUNT)
        return "unknown operation";
    if (!rf_rft_get_varint(&cursor->misc, cursor->misc_end, &coded))
        return "a field is cut";
    switch (rft_base(op)) {
    case RFT_VARIABLE:
        addr = cursor->now.variable += rft_unzigzag(coded);
        break;
    case RFT_OBJECT:
        addr = cursor->now.object += rft_unzigzag(coded);
        break;
    default:
        addr = coded;
    }
    if (tag & RFT_SITE) {
        if (!rf_rft_get_varint(&cursor->misc, cursor->misc_end, &coded) || coded > UINT32_MAX)
            return "a field is cut";
        cursor->now.site += rft_unzigzag32((uint32_t)coded);
    }
    if ((tag & RFT_SIZE) && !rf_rft_get_varint(&cursor->misc, cursor->misc_end, &size))
        return "a field is cut";
    if (cursor->now.site >= cursor->limits.sites)
        return "unknown site";
    switch (op) {
    case RF_READ:
    case RF_WRITE:
    case RF_COMMIT_READ:
    case RF_COMMIT_WRITE:
        if (size == 0 || size > RF_GRANULE || (addr & (RF_GRANULE - 1)) + size > RF_GRANULE)
            return "an access is not inside a granule";
        break;
    case RF_ALLOC:
    case RF_FREE:
    case RF_COPY:
    case RF_COPY_TO:
        if (size == 0 || size > RF_MAX_SIZE || addr + size < addr)
            return "impossible range of memory";
        break;
    case RF_COMMIT:
        if (size > RF_RFT_MAX_EVENTS)
            return "impossible size of a commit";
        break;
    case RF_FORK:
    case RF_JOIN:
    case RF_IDENTITY:
        if (addr >= cursor->limits.threads || size)
            return "unknown thread";
        break;
    default:
        if (size)
            return "an operation has a size that cannot have one";
    }
    cursor->ops |= 1u << op;
    *event = (struct rf_event){.addr = addr,
                               .thread = cursor->now.thread,
                               .site = cursor->now.site,
                               .number = (uint32_t)cursor->number,
                               .size = (uint32_t)size & 0xffffffu,
                               .op = (uint32_t)op & 0xffu};
    return NULL;
}

/* A COMMIT or COPY and the parts that must follow it directly. *count is what was decoded, at most `room`. */
static const char *decode_group(struct cursor *cursor, unsigned tag, struct rf_event *events, size_t room, size_t *count)
{
    const char *flaw = decode_other(cursor, tag, events);
    if (flaw)
        return flaw;
    enum rf_op op = (enum rf_op)events->op;
    if (rf_op_kind(op) == RF_PART)
        return "a part without its commit or copy";
    size_t parts = op == RF_COMMIT ? events->size : op == RF_COPY ? 1 : 0;
    if (parts >= room)
        return "a commit or copy lacks parts";
    for (size_t i = 1; i <= parts; i++) {
        if (cursor->tags >= cursor->tags_end)
            return "a commit or copy lacks parts";
        unsigned part = *cursor->tags++;
        unsigned what = part & RFT_WHAT;
        bool fits = op == RF_COPY ? what == RF_COPY_TO : what == RF_COMMIT_READ || what == RF_COMMIT_WRITE;
        if (!(part & RFT_OTHER) || !fits)
            return "a commit or copy lacks parts";
        flaw = decode_other(cursor, part, events + i);
        if (flaw)
            return flaw;
    }
    if (op == RF_COPY && events[0].size != events[1].size)
        return "the two sides of a copy differ in size";
    *count = 1 + parts;
    return NULL;
}

struct roll {
    struct rf_rft_thread *threads;
    size_t count, current;
};

/* A control: changes the thread or the number of the next event. */
static const char *decode_control(struct cursor *cursor, unsigned what, struct roll *roll, struct rf_rft_thread **threads,
                                  size_t *capacity)
{
    uint64_t value;
    if (!rf_rft_get_varint(&cursor->misc, cursor->misc_end, &value))
        return "a field is cut";
    if (what == RFT_STEP) {
        if (value > UINT32_MAX)
            return "event numbers overflow";
        cursor->number += value - 1; /* and the event adds its 1 */
        return NULL;
    }
    if (roll->count)
        roll->threads[roll->current] = cursor->now;
    if (what == RFT_NEW_THREAD) {
        if (value >= cursor->limits.threads)
            return "unknown thread";
        roll->threads = *threads = rf_grow(*threads, capacity, roll->count + 1, sizeof **threads);
        roll->current = roll->count++;
        cursor->now = (struct rf_rft_thread){.thread = (uint32_t)value};
    } else {
        if (value >= roll->count)
            return "unknown thread";
        roll->current = (size_t)value;
        cursor->now = roll->threads[value];
    }
    return NULL;
}

const char *rf_rft_decode(const struct rf_rft_header *header, const unsigned char *raw, struct rf_rft_limits limits,
                          struct rf_event *events, uint32_t *ops, struct rf_rft_thread **threads, size_t *threads_capacity)
{
    static const uint64_t addr_mask[4] = {0xff, 0xffff, 0xffffffff, UINT64_MAX};
    static const uint32_t site_mask[4] = {0, 0xff, 0xffff, 0xffffffff};
    if (header->raw < RFT_COLUMNS)
        return "a chunk of events is too short";
    uint64_t tag_bytes = load32(raw), addr_bytes = load32(raw + 4), site_bytes = load32(raw + 8);
    if (RFT_COLUMNS + tag_bytes + addr_bytes + site_bytes > header->raw)
        return "a column is longer than its chunk";

    struct cursor cursor = {.tags = raw + RFT_COLUMNS, .number = header->first - 1, .limits = limits};
    cursor.tags_end = cursor.tags + tag_bytes;
    const unsigned char *addrs = cursor.tags_end, *addrs_end = addrs + addr_bytes;
    const unsigned char *sites = addrs_end, *sites_end = sites + site_bytes;
    cursor.misc = sites_end;
    cursor.misc_end = raw + header->raw;
    struct roll roll = {.threads = *threads};

    struct rf_event *out = events, *end = events + header->events;
    unsigned crossing = 0; /* not 0: an access left its granule */
    uint32_t accesses = 0; /* the ops among them, as bits */
    uint32_t largest_site = 0;
    while (cursor.tags < cursor.tags_end) {
        /* Inside this loop nothing is stored but events: the state of the thread lives in registers. */
        uint64_t addr = cursor.now.variable;
        uint32_t site = cursor.now.site, number = (uint32_t)cursor.number, start = number;
        const unsigned char *tags = cursor.tags;
        const unsigned char *stop = (size_t)(cursor.tags_end - tags) < (size_t)(end - out) ? cursor.tags_end : tags + (end - out);
        unsigned tag = 0;
        while (tags < stop && (tag = *tags) < RFT_OTHER && addrs <= addrs_end && sites <= sites_end) {
            unsigned width = tag >> 3 & 3, log = tag >> 1 & 3;
            uint64_t delta = rft_unzigzag(load64(addrs) & addr_mask[width]);
            addrs += (size_t)1 << width;
            addr += width < 2 ? delta << log : delta;
            unsigned site_width = tag >> 5;
            site += rft_unzigzag32(load32(sites) & site_mask[site_width]);
            sites += (1u << site_width) >> 1;
            unsigned size = 1u << log;
            crossing |= ((unsigned)addr & (RF_GRANULE - 1)) + size - 1;
            accesses |= 1u << (tag & 1);
            largest_site = site > largest_site ? site : largest_site;
            *out++ = (struct rf_event){.addr = addr,
                                       .thread = cursor.now.thread,
                                       .site = site,
                                       .number = ++number,
                                       .size = size & 0xffffffu,
                                       .op = tag & 1};
            tags++;
        }
        if (tags != cursor.tags && !roll.count)
            return "an event has no thread";
        cursor.now.variable = addr;
        cursor.now.site = site;
        cursor.number += (uint32_t)(number - start);
        cursor.tags = tags;
        if (tags == cursor.tags_end)
            break;
        if (addrs > addrs_end || sites > sites_end)
            return "a column is too short";
        if (tag < RFT_OTHER || out == end)
            return "more events than the header says";
        cursor.tags++;
        const char *flaw;
        if ((tag & RFT_WHAT) >= RFT_STEP) {
            flaw = decode_control(&cursor, tag & RFT_WHAT, &roll, threads, threads_capacity);
        } else if (!roll.count) {
            flaw = "an event has no thread";
        } else {
            size_t count = 0;
            cursor.number++;
            flaw = decode_group(&cursor, tag, out, (size_t)(end - out), &count);
            out += count;
        }
        if (flaw)
            return flaw;
    }
    if (out != end)
        return "fewer events than the header says";
    if (addrs != addrs_end || sites != sites_end || cursor.misc != cursor.misc_end)
        return "a column has the wrong length";
    if (crossing >= RF_GRANULE)
        return "an access is not inside a granule";
    if (largest_site >= limits.sites)
        return "unknown site";
    if (cursor.number != header->first + header->span)
        return "event numbers do not match the header";
    *ops = cursor.ops | accesses;
    return NULL;
}
