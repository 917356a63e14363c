/* What a trace is made of: one event, and a batch of them.
 *
 * 1. An access (READ, WRITE, COMMIT_READ, COMMIT_WRITE) that leaves the decoder lies inside one granule: a wider one becomes
 *    several events with one number. size is 1..8 and (addr & 7) + size <= 8.
 * 2. Numbers never decrease inside a trace. Only the low 32 bits are in the event; rf_event_number() restores the rest.
 * 3. COMMIT carries in size how many COMMIT_READ and COMMIT_WRITE events follow it directly; COPY is followed by exactly one
 *    COPY_TO, and the two have one size. Such a group is never torn over two batches.
 * 4. A thread, 0, 1, 2, ..., is an index into the trace's table of threads, a site into its table of sites; site 0 is "none".
 * 5. Variables, locks, volatiles and other synchronisation objects each have a name space of their own: addr means what
 *    the operation says. For FORK, JOIN and IDENTITY it is the index of the other thread.
 * 6. An event of the program has no mark. One that the runtime system under it performed (a collector, a scheduler, a lock's inside) has
 *    `system` set. No detector sees such a mark: trace/resolve.c decides, by the view that is asked for, which of them count.
 */
#ifndef RF_CORE_EVENT_H
#define RF_CORE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rf_op {
#define RF_OP(name, text, kind) RF_##name,
#include "core/ops.def"
#undef RF_OP
    RF_OP_COUNT
};

/* Beside the index of a JOIN, from drivers that know more than a trace says: */
#define RF_JOIN_LAST (UINT64_C(1) << 32)  /* nobody joins it again: what is kept of it can go, but for its name */
#define RF_JOIN_QUIET (UINT64_C(1) << 33) /* it made no access since it last did a SIGNAL, a VOLATILE_WRITE or a FORK */

enum rf_op_kind { RF_ACCESS, RF_SYNC, RF_MEMORY, RF_PART, RF_RAW };

static inline enum rf_op_kind rf_op_kind(enum rf_op op)
{
    static const unsigned char kinds[RF_OP_COUNT] = {
#define RF_OP(name, text, kind) [RF_##name] = RF_##kind,
#include "core/ops.def"
#undef RF_OP
    };
    return (enum rf_op_kind)kinds[op];
}

/* The word for an operation in a text trace; "" if it has none. */
static inline const char *rf_op_text(enum rf_op op)
{
    static const char *const texts[RF_OP_COUNT] = {
#define RF_OP(name, text, kind) [RF_##name] = text,
#include "core/ops.def"
#undef RF_OP
    };
    return texts[op];
}

#define RF_GRANULE 8u                         /* bytes that one cell of the shadow stands for */
#define RF_MAX_SIZE ((1u << 24) - RF_GRANULE) /* larger ranges are several events with one number */

struct rf_event {
    uint64_t addr;
    uint32_t thread;
    uint32_t site;
    uint32_t number; /* low 32 bits */
    uint32_t size : 24;
    uint32_t op : 7;     /* enum rf_op */
    uint32_t system : 1; /* invariant 6 */
};

#define RF_OPS_SYSTEM (1u << 31)
_Static_assert(RF_OP_COUNT < 31, "a bit for each operation, and one for the mark");

/* Variables that have a name and no address get granules of their own from here on: no user address has these bits. */
#define RF_NAMED_BASE (UINT64_C(1) << 60)

/* Bytes of addresses that stay together when variables are shared out: neighbours are accessed one after the other, and their cells
 * share pages. Smaller units change hands more often, larger ones make an uneven division of small programs. */
#define RF_SHARD 65536u

/* Whose share of the variables an address belongs to. */
static inline uint32_t rf_shard_of(uint64_t addr, uint32_t shards)
{
    return (uint32_t)((((addr / RF_SHARD) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) * shards >> 32);
}

/* What one worker sees of a batch, in order: the accesses to its variables, and all that is no access. */
struct rf_share {
    struct rf_event *events;
    size_t count, capacity;
};

struct rf_batch {
    const struct rf_event *events;
    size_t count;
    uint64_t base; /* full number of the first event (anything up to 2^32 - 1 below the largest will do) */
    uint32_t ops;  /* bit (1 << op) is set for every op that occurs, RF_OPS_SYSTEM if any event has the mark */
};

static inline uint64_t rf_event_number(const struct rf_batch *batch, const struct rf_event *event)
{
    return batch->base + (uint32_t)(event->number - (uint32_t)batch->base);
}

/* An ordinary access to a whole granule, which nearly all are: one comparison for size and operation. */
static inline bool rf_event_is_whole_access(const struct rf_event *event)
{
    uint32_t word;
    __builtin_memcpy(&word, (const char *)event + offsetof(struct rf_event, number) + sizeof event->number, sizeof word);
    return (word & ~((uint32_t)RF_WRITE << 24)) == (RF_GRANULE | (uint32_t)RF_READ << 24);
}

_Static_assert(RF_READ == 0 && RF_WRITE == 1 && sizeof(struct rf_event) == 24,
               "rf_event_is_whole_access() is made for this");

static inline bool rf_op_writes(enum rf_op op)
{
    return op == RF_WRITE || op == RF_COMMIT_WRITE || op == RF_FREE;
}

#endif
