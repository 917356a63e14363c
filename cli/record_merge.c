/* One trace out of the blocks that the threads of a program write (core/recording.h). guest/record.c argues why the order is right.
 *
 * 1. A stream is what one thread wrote. It stands before an entry; if that has a ticket that is not the next one, the stream waits, in
 *    a heap by its ticket. The others are looked at in turns.
 * 2. A block is left when a later one of the thread is known: then all of its entries are there. It is cleared and given back.
 * 3. When the program has ended, a ticket that is in no stream was taken by a thread that was killed before it wrote the event: it is
 *    passed over.
 * 4. What a kernel thread performs as another thread is written as the kernel thread's, between two `ident`. Both threads took tickets
 *    where one became the other, so neither has events on the wrong side of them.
 * 5. The memory is the program's too, which may have written anything there. What cannot be is not believed: no number from it is used
 *    as an index, a length or a count before it was looked at.
 */
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/record.h"
#include "trace/grow.h"

#define TURN 8192u /* entries of one stream before the next has its turn */
#define NONE UINT32_MAX
#define ACCESS_PIECE (1u << 20)
#define MAX_THREADS (1u << 22)
#define MAX_ACCESS (UINT64_C(1) << 32)
#define MAX_PARTS (1u << 20)
#define MAX_COPY (UINT64_C(1) << 40)

struct stream {
    uint32_t number;
    uint32_t thread[3]; /* in the trace: it, its publisher, its receiver (guest/tap.h); NONE: not declared */
    uint32_t host;      /* in the trace: the kernel thread that performs it; NONE: itself */
    uint32_t *blocks;   /* from `first` on, the one it reads and those after it */
    size_t first, count, capacity;
    uint32_t at; /* the next entry of the block */
    bool active, waits;
    struct rf_event *parts; /* of the next commit */
    size_t part_count, part_capacity;
    uint64_t ticket;
};

struct rf_merge {
    struct rf_recording *recording;
    struct rf_writer *writer;
    struct rf_sites *sites;
    struct stream **streams; /* by number */
    size_t streams_capacity, streams_count;
    struct stream **active, **heap;
    size_t active_count, active_capacity, heap_count, heap_capacity;
    uint64_t logged, ticket, number;
    uint32_t threads;
};

struct rf_merge *rf_merge_new(struct rf_recording *recording, struct rf_writer *writer)
{
    struct rf_merge *merge = rf_zeroed(1, sizeof *merge);
    merge->recording = recording;
    merge->writer = writer;
    merge->sites = rf_sites_new(recording, writer);
    return merge;
}

void rf_merge_free(struct rf_merge *merge)
{
    for (size_t i = 0; i < merge->streams_count; i++) {
        if (merge->streams[i]) {
            free(merge->streams[i]->blocks);
            free(merge->streams[i]->parts);
        }
        free(merge->streams[i]);
    }
    free(merge->streams);
    free(merge->active);
    free(merge->heap);
    rf_sites_free(merge->sites);
    free(merge);
}

uint64_t rf_merge_events(const struct rf_merge *merge)
{
    return merge->number;
}

uint32_t rf_merge_threads(const struct rf_merge *merge)
{
    return (uint32_t)merge->streams_count;
}

static struct stream *stream_of(struct rf_merge *merge, uint32_t number)
{
    size_t old = merge->streams_count;
    if (number >= old) {
        merge->streams = rf_reserve(merge->streams, &merge->streams_capacity, (size_t)number + 1, sizeof *merge->streams);
        merge->streams_count = (size_t)number + 1;
        memset(merge->streams + old, 0, (merge->streams_count - old) * sizeof *merge->streams);
    }
    struct stream **place = &merge->streams[number];
    if (!*place) {
        *place = rf_zeroed(1, sizeof **place);
        (*place)->number = number;
        (*place)->host = NONE;
        for (unsigned who = 0; who < 3; who++)
            (*place)->thread[who] = NONE;
    }
    return *place;
}

static uint32_t thread_of(struct rf_merge *merge, struct stream *stream, unsigned who)
{
    static const char *const roles[3] = { "", " release fence", " acquire fence" };
    char name[64];
    if (stream->thread[who] == NONE) {
        snprintf(name, sizeof name, stream->number ? "T%u%s" : "main%.0u%s", stream->number, roles[who]);
        rf_writer_thread(merge->writer, merge->threads, name);
        stream->thread[who] = merge->threads++;
    }
    return stream->thread[who];
}

/* In the trace: who performs what the thread does. */
static uint32_t performer_of(struct rf_merge *merge, struct stream *stream, unsigned who)
{
    uint32_t self = thread_of(merge, stream, who);
    return who || stream->host == NONE ? self : stream->host;
}

/* ---- blocks ---- */

static void read_log(struct rf_merge *merge)
{
    uint32_t *log = rf_rec_log(merge->recording);
    for (;; merge->logged++) {
        uint32_t *place = &log[merge->logged % merge->recording->blocks];
        uint32_t block = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (!block || block > merge->recording->blocks)
            return;
        __atomic_store_n(place, 0, __ATOMIC_RELAXED);
        if (rf_rec_block(merge->recording, block - 1)->thread >= MAX_THREADS)
            continue;
        struct stream *stream = stream_of(merge, rf_rec_block(merge->recording, block - 1)->thread);
        if (stream->first && stream->first == stream->count)
            stream->first = stream->count = 0;
        stream->blocks = rf_reserve(stream->blocks, &stream->capacity, stream->count + 1, sizeof *stream->blocks);
        stream->blocks[stream->count++] = block - 1;
        if (!stream->active) {
            stream->active = true;
            merge->active =
                rf_reserve(merge->active, &merge->active_capacity, merge->active_count + 1, sizeof *merge->active);
            merge->active[merge->active_count++] = stream;
        }
    }
}

/* Those that wait for a block. Not for each one that is free: to sleep and to wake costs the program more than to write a block. */
static void wake(struct rf_recording *recording)
{
    if (!__atomic_load_n(&recording->waiting, __ATOMIC_SEQ_CST))
        return;
    __atomic_store_n(&recording->waiting, 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&recording->turn, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &recording->turn, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void leave_block(struct rf_merge *merge, struct stream *stream)
{
    struct rf_recording *recording = merge->recording;
    uint32_t block = stream->blocks[stream->first++];
    stream->at = 0;
    if (stream->first > 64 && stream->first * 2 > stream->count) {
        stream->count -= stream->first;
        memmove(stream->blocks, stream->blocks + stream->first, stream->count * sizeof *stream->blocks);
        stream->first = 0;
    }
    memset(rf_rec_block(recording, block), 0, sizeof(struct rf_rec_block));
    uint64_t freed = recording->freed;
    __atomic_store_n(&rf_rec_free(recording)[freed % recording->blocks], block, __ATOMIC_RELAXED);
    __atomic_store_n(&recording->freed, freed + 1, __ATOMIC_SEQ_CST);
    if (freed + 1 - __atomic_load_n(&recording->taken, __ATOMIC_RELAXED) >= recording->plenty / 4)
        wake(recording);
}

/* The entry the stream stands before; NULL: not there yet. */
static const struct rf_rec_entry *look(struct rf_merge *merge, struct stream *stream)
{
    for (;;) {
        if (stream->first == stream->count)
            return NULL;
        bool later = stream->count - stream->first > 1; /* asked first: invariant 2 */
        const struct rf_rec_block *block = rf_rec_block(merge->recording, stream->blocks[stream->first]);
        if (stream->at < RF_REC_ENTRIES - 1) {
            const struct rf_rec_entry *entry = &block->entries[stream->at];
            if (__atomic_load_n(&entry->what, __ATOMIC_ACQUIRE))
                return entry;
        }
        if (!later)
            return NULL;
        leave_block(merge, stream);
    }
}

/* ---- events ---- */

static void write_pieces(struct rf_merge *merge, struct rf_event event, uint64_t size, uint32_t largest)
{
    merge->number++;
    while (size) {
        uint32_t piece = size < largest ? (uint32_t)size : largest;
        event.size = piece & 0xffffffu;
        rf_writer_event(merge->writer, merge->number, &event);
        event.addr += piece;
        size -= piece;
    }
}

static void write_access(struct rf_merge *merge, struct stream *stream, const struct rf_rec_entry *entry, uint64_t size)
{
    struct rf_event event = { .addr = entry->what & RF_REC_ADDRESS,
                              .thread = performer_of(merge, stream, 0),
                              .site = rf_site(merge->sites, entry->more),
                              .op = ((entry->what >> 48 & 0x7f) - 1) & 0x7f,
                              .system = (entry->what & RF_REC_SYSTEM) != 0 };
    if (event.op <= RF_WRITE) {
        write_pieces(merge, event, size, ACCESS_PIECE);
        return;
    }
    /* A part of the commit that follows it: inside one granule. */
    if (!size || event.addr % RF_GRANULE + size > RF_GRANULE || stream->part_count == MAX_PARTS)
        return;
    event.size = (uint32_t)size & 0xffffffu;
    stream->parts = rf_reserve(stream->parts, &stream->part_capacity, stream->part_count + 1, sizeof *stream->parts);
    stream->parts[stream->part_count++] = event;
}

static void write_commit(struct rf_merge *merge, struct stream *stream, struct rf_event event)
{
    event.addr = 0;
    event.size = (uint32_t)stream->part_count & 0xffffffu;
    rf_writer_event(merge->writer, ++merge->number, &event);
    for (size_t i = 0; i < stream->part_count; i++)
        rf_writer_event(merge->writer, merge->number, &stream->parts[i]);
    stream->part_count = 0;
}

static void write_identity(struct rf_merge *merge, uint32_t kernel, uint32_t identity)
{
    struct rf_event event = { .thread = kernel, .addr = identity, .op = RF_IDENTITY };
    rf_writer_event(merge->writer, ++merge->number, &event);
}

/* Invariant 4. */
static void change_host(struct rf_merge *merge, struct stream *stream, uint64_t kernel)
{
    uint32_t host = kernel == stream->number ? NONE : thread_of(merge, stream_of(merge, (uint32_t)kernel), 0);
    if (host == stream->host)
        return;
    if (stream->host != NONE)
        write_identity(merge, stream->host, stream->host);
    stream->host = host;
    if (host != NONE)
        write_identity(merge, host, thread_of(merge, stream, 0));
}

/* In pieces that are not too large, in the order in which none of them overwrites what is still to be copied. */
static void write_copy(struct rf_merge *merge, struct rf_event event, uint64_t to, uint64_t size)
{
    uint64_t from = event.addr;
    merge->number++;
    for (uint64_t left = size, piece; left; left -= piece) {
        piece = left < RF_MAX_SIZE ? left : RF_MAX_SIZE;
        uint64_t at = to > from ? left - piece : size - left;
        event.size = (uint32_t)piece & 0xffffffu;
        event.op = RF_COPY;
        event.addr = from + at;
        event.number = (uint32_t)merge->number;
        rf_writer_event(merge->writer, merge->number, &event);
        event.op = RF_COPY_TO;
        event.addr = to + at;
        rf_writer_event(merge->writer, merge->number, &event);
    }
}

static void write_ticketed(struct rf_merge *merge, struct stream *stream, const struct rf_rec_entry *entry, enum rf_op op)
{
    uint64_t key = entry[1].what & ~RF_REC_MORE;
    uint32_t who = entry->more >> 60 & 3;
    struct rf_event event = { .addr = key, .op = (uint32_t)op & 0x7f, .system = (entry->what & RF_REC_SYSTEM) != 0 };
    if ((op == RF_FORK || op == RF_JOIN || op == RF_IDENTITY) && key >= MAX_THREADS)
        return;
    if (op == RF_IDENTITY) {
        change_host(merge, stream, key);
        return;
    }
    if (op == RF_FORK || op == RF_JOIN)
        event.addr = thread_of(merge, stream_of(merge, (uint32_t)key), 0);
    event.thread = performer_of(merge, stream, who < 3 ? who : 0);
    event.site = rf_site(merge->sites, entry[1].more);
    if (op == RF_ALLOC || op == RF_FREE) {
        write_pieces(merge, event, entry->what & RF_REC_ADDRESS, RF_MAX_SIZE);
    } else if (op == RF_COPY) {
        uint64_t to = entry[2].what & ~RF_REC_MORE, size = entry->what & RF_REC_ADDRESS;
        if (size < MAX_COPY && key < RF_NAMED_BASE && to < RF_NAMED_BASE)
            write_copy(merge, event, to, size);
    } else if (op == RF_COMMIT) {
        write_commit(merge, stream, event);
    } else {
        merge->number++;
        rf_writer_event(merge->writer, merge->number, &event);
    }
}

/* ---- the heap of those that wait ---- */

static void wait_for_ticket(struct rf_merge *merge, struct stream *stream, uint64_t ticket)
{
    stream->ticket = ticket;
    stream->waits = true;
    merge->heap = rf_reserve(merge->heap, &merge->heap_capacity, merge->heap_count + 1, sizeof *merge->heap);
    size_t at = merge->heap_count++;
    for (; at && merge->heap[(at - 1) / 2]->ticket > ticket; at = (at - 1) / 2)
        merge->heap[at] = merge->heap[(at - 1) / 2];
    merge->heap[at] = stream;
}

static struct stream *first_waiting(struct rf_merge *merge)
{
    struct stream *first = merge->heap[0], *last = merge->heap[--merge->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < merge->heap_count; at = child) {
        if (child + 1 < merge->heap_count && merge->heap[child + 1]->ticket < merge->heap[child]->ticket)
            child++;
        if (merge->heap[child]->ticket >= last->ticket)
            break;
        merge->heap[at] = merge->heap[child];
    }
    if (merge->heap_count)
        merge->heap[at] = last;
    first->waits = false;
    return first;
}

/* ---- the order ---- */

static bool read_stream(struct rf_merge *merge, struct stream *stream)
{
    const struct rf_rec_entry *entry;
    bool any = false;
    for (unsigned turn = 0; turn < TURN && (entry = look(merge, stream)); turn++) {
        uint32_t op = (uint32_t)(entry->what >> 48 & 0x7f) - 1, entries = 1;
        if (op <= RF_WRITE || op == RF_COMMIT_READ || op == RF_COMMIT_WRITE) {
            uint64_t size = entry->what >> 56;
            if (!size && stream->at + 2 < RF_REC_ENTRIES) {
                size = (entry[1].what & ~RF_REC_MORE) % MAX_ACCESS;
                entries = 2;
            }
            write_access(merge, stream, entry, size);
        } else {
            uint64_t ticket = entry->more & (RF_REC_TICKETS - 1);
            if (ticket > merge->ticket) {
                wait_for_ticket(merge, stream, ticket);
                return any;
            }
            merge->ticket = ticket + 1;
            entries = op == RF_REC_BEGIN ? 1 : op == RF_COPY ? 3 : 2;
            if (op == RF_REC_END) {
                leave_block(merge, stream);
                return true;
            }
            if (op < RF_OP_COUNT && rf_op_kind((enum rf_op)op) != RF_PART && stream->at + entries < RF_REC_ENTRIES)
                write_ticketed(merge, stream, entry, (enum rf_op)op);
        }
        stream->at += entries;
        any = true;
    }
    return any;
}

bool rf_merge_step(struct rf_merge *merge, bool all)
{
    bool any = false;
    read_log(merge);
    for (size_t i = 0; i < merge->active_count;) {
        struct stream *stream = merge->active[i];
        any |= !stream->waits && read_stream(merge, stream);
        if (stream->first == stream->count) {
            stream->active = false;
            merge->active[i] = merge->active[--merge->active_count];
        } else {
            i++;
        }
    }
    while (merge->heap_count && merge->heap[0]->ticket <= merge->ticket) {
        read_stream(merge, first_waiting(merge));
        any = true;
    }
    if (!any)
        wake(merge->recording);
    if (!any && all && merge->heap_count) {
        merge->ticket = merge->heap[0]->ticket; /* invariant 3 */
        any = true;
    }
    return any;
}
