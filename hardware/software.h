/* The software layer of RADISH (3.2.6): the variable map, the buffer of evicted lines, the handlers and their cost.
 *
 * 1. The variable map goes from a metadata line's number, and so from physical addresses, to the times of each thread's last read
 *    and last write of each byte there. Its format is software's own: times, not clocks.
 * 2. An evicted line waits in the buffer in the order of evictions; its clocks have become times. Whoever looks at the variable
 *    map empties the buffer first. More than buffer_lines never wait beyond the end of an access: then the handler is called, once,
 *    for all of them.
 * 3. `cached`: hardware may be newer ("potentially stale"). It is set when a check brings a line into hardware, and cleared when an
 *    eviction leaves none there.
 * 4. A thread's times of 32 bytes, a read and a write for each of four words, fit 32 bytes with its number, if a time has 28 bits;
 *    and so for lines of any length. So a record is a cache line for every two threads that have a history there. It stands where
 *    the number says, like shadow memory: nothing must be looked up to find it. A byte for each number says how many histories there
 *    are: who checks looks there first, and memory that is accessed for the first time needs no more.
 *
 * The cost of a handler: enter_cycles, the simulated accesses of the core that runs it (the byte, then record_lines for every two
 * histories of a record; when a line is stored, only for the two of which one is the evicted thread's, and the byte if that one is
 * new), and entry_cycles for each clock. With handlers = other the core with the least time pays, and the one that needed the check
 * only a broadcast: the exception is then imprecise. A synchronisation operation reads and writes the vector clock of its object, eight
 * bytes an entry, and spends entry_cycles for each.
 */
#ifndef RF_HARDWARE_SOFTWARE_H
#define RF_HARDWARE_SOFTWARE_H

#include "hardware/history.h"
#include "hardware/pool.h"
#include "hardware/usual.h"

struct rf_radish;
struct rf_metadata;
struct rf_layout;
struct rf_access;

/* What is known of one metadata line: in hardware, which does not belong to the software layer but is looked up by the same number;
 * and in software. Frames are given in order, so numbers are dense. */
struct rf_record {
    struct rf_metadata *lines;    /* those that are cached: the first */
    struct rf_history *histories; /* the latest first */
    bool made;                    /* there is one */
    bool cached;
    uint64_t permitting; /* a bit for each core of which a cached line permits something: see rf_line_permits() */
};

/* The two records of a data line are in one line of the host's: see rf_record_at(). */
_Static_assert(sizeof(struct rf_record) == RF_HOST_LINE / 2, "half a line of the host's");

struct rf_evicted {
    struct rf_evicted *next;
    uint64_t uneven; /* a bit for each unit, of reads and then of writes, whose clocks are not alike */
    uint32_t number, slot, bytes;
    bool compact, wide;
    uint32_t times[]; /* of each unit; then of each clock of the uneven ones; then, in bytes, statuses by place */
};

struct rf_software {
    struct rf_record *records; /* by number, plus 1 */
    uint32_t record_cap;
    struct rf_pool histories, evicted; /* evicted: of lines that are not wide */
    struct rf_evicted *first, *last;
    uint32_t waiting;
    uint64_t check_calls, evicted_lines, cycles;
};

_Static_assert(sizeof(struct rf_piece) == sizeof(struct rf_record),
               "the first record is in the second half of a host's line");

static inline struct rf_record *rf_record_at(const struct rf_software *software, uint64_t number)
{
    return &software->records[number + 1];
}

/* There is room for this number. */
static inline void rf_records_reserve(struct rf_software *software, struct rf_memory *memory, uint64_t number)
{
    if (__builtin_expect(number < software->record_cap, 1))
        return;
    uint32_t cap = software->record_cap ? software->record_cap + 1 : 0;
    software->records = rf_grow(memory, software->records, &cap, (size_t)number + 2, sizeof *software->records);
    software->record_cap = cap - 1;
}

/* How long a struct rf_evicted is for a line that is not wide. */
RF_ROOM size_t rf_evicted_bytes(const struct rf_layout *layout);
/* From hardware: these clocks of a line, of its reads and then of its writes, have left the caches. */
RF_ROOM void rf_software_evicted(struct rf_radish *radish, struct rf_metadata *line, const uint8_t *clocks);
/* The eviction handler, until no line waits. `core` is the one that waits for it. */
RF_ROOM void rf_software_drain(struct rf_radish *radish, uint32_t core);
/* The check handler: reports races of cells [cell, cell + count), and fills the whole line. The caller records the access. */
RF_ROOM void rf_software_check(struct rf_radish *radish, uint32_t core, struct rf_metadata *line, uint32_t cell,
                               uint32_t count, const struct rf_access *access);

/* ---- for the files of this room ---- */

/* A slot's history in a record; NULL if there is none. */
RF_ROOM struct rf_history *rf_software_find(const struct rf_record *record, uint32_t slot);
/* Brings what rf_software_touch() will look at into the host's caches. */
RF_ROOM void rf_software_prefetch(const struct rf_radish *radish, uint64_t number);
/* The core spends this time in the software layer. */
RF_ROOM void rf_software_spend(struct rf_radish *radish, uint32_t core, uint64_t cycles);
/* The record of a number; NULL if there is none. It stays where it is until another one is made. */
RF_ROOM struct rf_record *rf_software_record(const struct rf_radish *radish, uint64_t number);
/* The same, made; and a slot's history in it. */
RF_ROOM struct rf_record *rf_software_make(struct rf_radish *radish, uint64_t number);
RF_ROOM struct rf_history *rf_software_history(struct rf_radish *radish, struct rf_record *record, uint32_t slot);
/* Simulates the handler's accesses to all of a record; the cycles are those of `core`, which runs it. */
RF_ROOM void rf_software_touch(struct rf_radish *radish, uint32_t core, uint64_t number, bool write);
/* Simulates the synchronisation library's accesses to the vector clock of an object. */
RF_ROOM void rf_software_vector(struct rf_radish *radish, uint32_t core, uint64_t object, uint32_t entries);
/* Which core runs a handler that this one needs. */
RF_ROOM uint32_t rf_software_core(const struct rf_radish *radish, uint32_t core);

#endif
