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
static const char *decode_other(struct cursor *cursor, unsigned what, struct rf_event *event)
{
    uint64_t coded, addr, size = 0;
    bool system = what >= RFT_SYSTEM && what < RFT_STEP;
    what -= system ? RFT_SYSTEM : 0;
    if (what >= RF_OP_COUNT)
        return "unknown operation";
    enum rf_op op = (enum rf_op)what;
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
    if (!rf_rft_get_varint(&cursor->misc, cursor->misc_end, &coded) || coded > UINT32_MAX)
        return "a field is cut";
    cursor->now.site += rft_unzigzag32((uint32_t)coded);
    if (rft_has_size(op) && !rf_rft_get_varint(&cursor->misc, cursor->misc_end, &size))
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
        if (addr >= cursor->limits.threads)
            return "unknown thread";
        break;
    default:
        break;
    }
    cursor->ops |= 1u << op | (system ? RF_OPS_SYSTEM : 0);
    *event = (struct rf_event){ .addr = addr,
                                .thread = cursor->now.thread,
                                .site = cursor->now.site,
                                .number = (uint32_t)cursor->number,
                                .size = (uint32_t)size & 0xffffffu,
                                .op = (uint32_t)op & 0x7fu,
                                .system = system };
    return NULL;
}

/* A COMMIT or COPY and the parts that must follow it directly. *count is what was decoded, at most `room`. */
static const char *decode_group(struct cursor *cursor, unsigned what, struct rf_event *events, size_t room, size_t *count)
{
    const char *flaw = decode_other(cursor, what, events);
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
        unsigned coded = *cursor->tags++ - RFT_OTHER; /* an access wraps, and fits nothing */
        unsigned part = coded - (events->system ? RFT_SYSTEM : 0);
        if (op == RF_COPY ? part != RF_COPY_TO : part != RF_COMMIT_READ && part != RF_COMMIT_WRITE)
            return "a commit or copy lacks parts";
        flaw = decode_other(cursor, coded, events + i);
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
static const char *decode_control(struct cursor *cursor, unsigned what, struct roll *roll, struct rf_rft_decoded *decoded)
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
        roll->threads = decoded->threads =
            rf_reserve(decoded->threads, &decoded->threads_capacity, roll->count + 1, sizeof *roll->threads);
        roll->current = roll->count++;
        cursor->now = (struct rf_rft_thread){ .thread = (uint32_t)value };
    } else {
        if (value >= roll->count)
            return "unknown thread";
        roll->current = (size_t)value;
        cursor->now = roll->threads[value];
    }
    return NULL;
}

/* What the tag of an access says, ready to use; one to a cache line. */
struct meaning {
    _Alignas(64) uint64_t addr_mask; /* of 8 bytes of the address column, those that are its own */
    uint64_t unit;                   /* what its delta counts in */
    uint32_t site_mask;
    uint32_t plus_addr;                                    /* a delta that takes no bytes */
    unsigned char addr_bytes, site_bytes, plus_site, last; /* last: size - 1 */
    struct rf_event event;                                 /* op and size */
};

/* Made anew for each chunk: that is cheap beside a chunk, and needs no start-up. */
static void explain_tags(struct meaning meanings[RFT_OTHER])
{
    static const unsigned char addr_bytes[6] = { 0, 0, 1, 2, 4, 8 }, site_bytes[4] = { 0, 0, 1, 4 };
    for (unsigned tag = 0; tag < RFT_OTHER; tag++) {
        unsigned size = 1u << (tag / 2 % 4), addr = tag / 8 % 6, site = tag / 48;
        meanings[tag] = (struct meaning){ .addr_mask = addr < RFT_ADDR1 ? 0 : UINT64_MAX >> (64 - 8 * addr_bytes[addr]),
                                          .unit = addr <= RFT_ADDR2 ? size : 1,
                                          .site_mask = site < RFT_SITE1 ? 0 : UINT32_MAX >> (32 - 8 * site_bytes[site]),
                                          .plus_addr = addr == RFT_NEXT ? size : 0,
                                          .addr_bytes = addr_bytes[addr],
                                          .site_bytes = site_bytes[site],
                                          .plus_site = site == RFT_SITE_NEXT,
                                          .last = (unsigned char)(size - 1),
                                          .event = { .size = size & 0xffffffu, .op = tag & 1 } };
    }
}

#define UNCHECKED 32u /* accesses between two looks at the bounds; 8 bytes of address for each are within the slack */
_Static_assert(8 * (UNCHECKED + 1) <= RF_RFT_SLACK, "what is read in vain must lie in the slack");

struct columns {
    const unsigned char *addrs, *addrs_end, *sites, *sites_end;
    unsigned crossing;          /* at least a granule: an access left its own */
    unsigned any_tag, all_tags; /* bit 0: is there a write; are there only writes */
    uint32_t largest_site;
};

/* Decodes accesses until another tag, or the end of the tags or of the room. False if a column is too short. */
static bool decode_accesses(struct cursor *cursor, struct columns *columns, const struct meaning *meanings,
                            struct rf_rft_decoded *decoded, size_t *room)
{
    /* Copies, so that the loop keeps them in registers: a store of an event could change what a pointer leads to. */
    const unsigned char *tags = cursor->tags, *addrs = columns->addrs, *sites = columns->sites;
    uint64_t addr = cursor->now.variable;
    uint32_t site = cursor->now.site, number = (uint32_t)cursor->number, thread = cursor->now.thread;
    unsigned crossing = columns->crossing, any = columns->any_tag, all = columns->all_tags;
    uint32_t largest = columns->largest_site;
    uint64_t near = decoded->share_count > 1 ? RF_SHARD - 1 : UINT64_MAX; /* bits that do not change the owner */
    struct rf_share *owner = &decoded->shares[rf_shard_of(addr, decoded->share_count)];
    struct rf_event *to = owner->events + owner->count;
    size_t left = *room;
    bool more = true;
    while (more && addrs <= columns->addrs_end && sites <= columns->sites_end) {
        size_t stretch = (size_t)(cursor->tags_end - tags);
        stretch = stretch < left ? stretch : left;
        const unsigned char *stop = tags + (stretch < UNCHECKED ? stretch : UNCHECKED);
        const unsigned char *from = tags;
        while (tags < stop && *tags < RFT_OTHER) {
            unsigned tag = *tags++;
            const struct meaning *meaning = &meanings[tag];
            uint64_t before = addr;
            addr += rft_unzigzag(load64(addrs) & meaning->addr_mask) * meaning->unit + meaning->plus_addr;
            if (__builtin_expect((addr ^ before) > near, 0)) {
                owner->count = (size_t)(to - owner->events);
                owner = &decoded->shares[rf_shard_of(addr, decoded->share_count)];
                to = owner->events + owner->count;
            }
            site += rft_unzigzag32(load32(sites) & meaning->site_mask) + meaning->plus_site;
            addrs += meaning->addr_bytes;
            sites += meaning->site_bytes;
            crossing |= ((unsigned)addr & (RF_GRANULE - 1)) + meaning->last;
            any |= tag;
            all &= tag;
            largest = site > largest ? site : largest;
            *to = meaning->event;
            to->addr = addr;
            to->thread = thread;
            to->site = site;
            to->number = ++number;
            to++;
        }
        left -= (size_t)(tags - from);
        more = tags == stop && tags != from;
    }
    cursor->number += (uint32_t)(number - (uint32_t)cursor->number);
    cursor->now.variable = addr;
    cursor->now.site = site;
    cursor->tags = tags;
    columns->addrs = addrs;
    columns->sites = sites;
    columns->crossing = crossing;
    columns->any_tag = any;
    columns->all_tags = all;
    columns->largest_site = largest;
    owner->count = (size_t)(to - owner->events);
    *room = left;
    return addrs <= columns->addrs_end && sites <= columns->sites_end;
}

/* What decode_group() wrote behind the first share goes to all of them; an access, of unusual size, to its owner. */
static void share_group(struct rf_rft_decoded *decoded, const struct rf_event *group, size_t count)
{
    bool access = count && group->op <= RF_WRITE;
    unsigned owner = access ? rf_shard_of(group->addr, decoded->share_count) : 0;
    for (unsigned i = 0; i < decoded->share_count; i++) {
        struct rf_share *share = &decoded->shares[i];
        if (access && i != owner)
            continue;
        if (i)
            memcpy(share->events + share->count, group, count * sizeof *group);
        share->count += count;
    }
}

const char *rf_rft_decode(const struct rf_rft_header *header, const unsigned char *raw, struct rf_rft_limits limits,
                          struct rf_rft_decoded *decoded)
{
    if (header->raw < RFT_COLUMNS)
        return "a chunk of events is too short";
    uint64_t tag_bytes = load32(raw), addr_bytes = load32(raw + 4), site_bytes = load32(raw + 8);
    if (RFT_COLUMNS + tag_bytes + addr_bytes + site_bytes > header->raw)
        return "a column is longer than its chunk";

    struct cursor cursor = { .tags = raw + RFT_COLUMNS, .number = header->first - 1, .limits = limits };
    cursor.tags_end = cursor.tags + tag_bytes;
    struct columns columns = { .addrs = cursor.tags_end, .all_tags = 1 };
    columns.addrs_end = columns.sites = columns.addrs + addr_bytes;
    columns.sites_end = cursor.misc = columns.sites + site_bytes;
    cursor.misc_end = raw + header->raw;
    struct roll roll = { .threads = decoded->threads };
    struct meaning meanings[RFT_OTHER];
    explain_tags(meanings);

    size_t room = header->events;
    while (cursor.tags < cursor.tags_end) {
        const char *flaw;
        unsigned tag = *cursor.tags;
        if (tag >= RFT_OTHER + RFT_STEP) {
            cursor.tags++;
            flaw = decode_control(&cursor, tag - RFT_OTHER, &roll, decoded);
        } else if (!roll.count) {
            flaw = "an event has no thread";
        } else if (!room) {
            flaw = "more events than the header says";
        } else if (tag < RFT_OTHER) {
            flaw = decode_accesses(&cursor, &columns, meanings, decoded, &room) ? NULL : "a column is too short";
        } else {
            size_t count = 0;
            struct rf_event *group = decoded->shares[0].events + decoded->shares[0].count;
            cursor.tags++;
            cursor.number++;
            flaw = decode_group(&cursor, tag - RFT_OTHER, group, room, &count);
            share_group(decoded, group, count);
            room -= count;
        }
        if (flaw)
            return flaw;
    }
    if (room)
        return "fewer events than the header says";
    if (columns.addrs != columns.addrs_end || columns.sites != columns.sites_end || cursor.misc != cursor.misc_end)
        return "a column has the wrong length";
    if (columns.crossing >= RF_GRANULE)
        return "an access is not inside a granule";
    if (columns.largest_site >= limits.sites)
        return "unknown site";
    if (cursor.number != header->first + header->span)
        return "event numbers do not match the header";
    decoded->ops = cursor.ops | (columns.any_tag & 1) << RF_WRITE | (columns.all_tags & 1 ? 0 : 1u << RF_READ);
    return NULL;
}
