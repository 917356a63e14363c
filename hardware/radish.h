/* RADISH: a vector-clock race detector in hardware with software behind it (Wood, chapter 3), on the machine of machine.h.
 *
 * The state is that of the canonical detector, C, L, R and W, split in two (3.3.1). C and L are core/order.h's; of C each core has
 * the entries of the threads that run (`clock`). R_x(t) and W_x(t) are in a metadata line of t, if one is cached, and otherwise in
 * the software layer's variable map (software.h).
 *
 *  1. A metadata line has a cell for each byte of half a data line; compact, for each two bytes of a whole one. All bytes of a
 *     cell have one history.
 *  2. A clock in a cell that is not 0 is newer than the same thread's in software. 0 says nothing.
 *  3. All cached lines for a byte agree on its in-hardware status. A bit of it says that what software knows of that kind is
 *     superseded: LastWrite, of writes; AllLastReads, of reads. Where a bit is missing, hardware and software together have the
 *     history, and no more than that: no clock that is older than the last write.
 *  4. The status is downgraded when a line with a clock leaves the caches (Figure 3.4): by a read clock it loses AllLastReads, by
 *     a write clock LastWrite. Only a write, and a software check, raise it.
 *  5. WRITE permission on a byte implies that its whole history is the thread's own and in its line: then a permitted write needs
 *     to clear nobody's clocks, and the status is Everything (the lemma of 3.3.6.2). 3.2.4.2 would also give WRITE when other
 *     threads' clocks are there but ordered. A permitted write would then leave them behind, and a read that comes after one of the
 *     old reads, but not after the write, would pass the hardware check, which accepts a read after "some last read".
 *  6. So where all earlier accesses happen before now, and some of them are others' or in software, a thread gets ORDERED: its
 *     write is safe, but it is announced on the bus, which clears all other clocks, as after a hardware check. With it there are
 *     four permissions; with four statuses they still fit the four bits of Figure 3.2.
 *  7. READ permission implies that the last write happens before the thread's now.
 *  8. Permissions are set at a fill and by checks. A core that becomes the only holder of a data line takes all permissions of
 *     others on it; its own WRITE and ORDERED become READ where reads may have come between. A core that reads a line on which
 *     another has permissions gets it shared, even if no cache has it: alone it could write silently, and would have to take
 *     them. Permissions do not outlive a context switch: another thread of the same core needs no coherence message.
 *  9. A line whose thread does not run on the line's core (lazy switching) has clocks that no core can compare: to hardware they
 *     are unknown. Software flushes such lines before it looks.
 *
 * The cost of a tracked access: the data's and the metadata's latency run side by side, the longer counts. A check that permissions
 * answer costs nothing more. A hardware check costs bus_cycles unless the access was on the bus anyway. Software: see software.h.
 */
#ifndef RF_HARDWARE_RADISH_H
#define RF_HARDWARE_RADISH_H

#include "core/order.h"
#include "hardware/clock_users.h"
#include "hardware/machine.h"
#include "hardware/pages.h"
#include "hardware/software.h"

#define RF_MAX_CORES 64u
#define RF_MAX_CELLS 128u

enum rf_permission {
    RF_PERMIT_NONE = 0,
    RF_PERMIT_READ = 1,
    RF_PERMIT_WRITE = 3,
    RF_PERMIT_ORDERED = 5 /* READ; and a write needs no check, but a broadcast: 6. */
};

enum rf_status {
    RF_IN_SOFTWARE = 0,
    RF_LAST_WRITE = 1,
    RF_ALL_LAST_READS = 2,
    RF_EVERYTHING = RF_LAST_WRITE | RF_ALL_LAST_READS
};

struct rf_metadata {
    struct rf_metadata *next; /* another cached line for the same data */
    uint64_t key, number;     /* number: twice that of the data line, plus 1 for its second half */
    uint32_t slot, core, generation;
    uint32_t place; /* in its context's list */
    bool compact;
    uint64_t used; /* a bit for each clock but 0 that some cell has, or had */
    _Alignas(8) uint8_t cells[]; /* clocks of reads, clocks of writes, permissions, statuses; and 8 bytes to read beyond */
};

/* What is known of a slot's hardware: its clocks and its cached lines. */
struct rf_context {
    struct rf_clock_table clocks;
    struct rf_metadata **lines;
    uint32_t count, cap;
    struct rf_users users; /* which of the lines have which clock */
};

struct rf_radish_core {
    struct rf_thread *thread; /* NULL: none runs here */
    uint32_t slot, generation;
    uint64_t clock[RF_MAX_CORES]; /* the partial vector clock: an entry for the thread of each core */
};

struct rf_checks {
    uint64_t permission, hardware, software; /* accesses, by the stage that decided */
    uint64_t untracked;
};

struct rf_radish_counts {
    struct rf_checks checks;
    uint64_t roll_overs, flushed_lines, splits, clears, copies;
};

struct rf_radish {
    const struct rf_config *config;
    uint64_t broken;
    struct rf_memory *memory;
    struct rf_order *order;
    struct rf_pages *pages;
    struct rf_machine machine;
    struct rf_software software;
    struct rf_radish_core cores[RF_MAX_CORES];
    struct rf_context **contexts; /* by slot */
    uint32_t context_cap;
    struct rf_metadata **lines; /* by number: the first. Frames are given in order, so numbers are dense */
    uint32_t line_cap;
    struct rf_pool line_pool;
    uint32_t cells, clock_limit;
    uint32_t generation;
    uint64_t *times; /* of the cores */
    void (*race)(void *context, uint64_t addr);
    void *race_context;
    struct rf_radish_counts counts;
};

struct rf_access {
    uint64_t addr, physical;
    struct rf_frame *frame;
    uint32_t size;
    bool write, tracked;
};

void rf_radish_init(struct rf_radish *radish, const struct rf_config *config, uint64_t broken, struct rf_memory *memory,
                    struct rf_order *order, struct rf_pages *pages, uint64_t *times);
void rf_radish_free(struct rf_radish *radish);

/* The thread runs on the core from here on, in place of whoever did; NULL: nobody does. */
void rf_radish_switch(struct rf_radish *radish, uint32_t core, struct rf_thread *thread);
/* The vector clock of the core's thread has changed. */
void rf_radish_synchronised(struct rf_radish *radish, uint32_t core);
void rf_radish_access(struct rf_radish *radish, uint32_t core, const struct rf_access *access);

/* LARDISH (4.3.2). `freed`: it is also a write of all of it. */
void rf_radish_clear(struct rf_radish *radish, uint32_t core, uint64_t addr, uint64_t size, bool freed);
void rf_radish_copy(struct rf_radish *radish, uint32_t core, uint64_t from, uint64_t to, uint64_t size);

/* ---- for the files of this room, and for tests ---- */

/* lines.c */
struct rf_context *rf_context_make(struct rf_radish *radish, uint32_t slot);
void rf_line_uses(struct rf_context *context, struct rf_metadata *line, uint32_t clock);
/* A line for what the core's thread does; and into the lists, once it is in a cache. */
struct rf_metadata *rf_line_new(struct rf_radish *radish, uint32_t core, uint64_t key, uint64_t number);
void rf_line_link(struct rf_radish *radish, struct rf_metadata *line);
/* The machine's `evicted`. */
void rf_line_evicted(void *radish, struct rf_metadata *line);
void rf_flush_slot(struct rf_radish *radish, uint32_t slot);
/* Frees clocks of the core's thread. */
void rf_roll_over(struct rf_radish *radish, uint32_t core);

static inline uint8_t *rf_reads(const struct rf_radish *radish, struct rf_metadata *line)
{
    (void)radish;
    return line->cells;
}

static inline uint8_t *rf_writes(const struct rf_radish *radish, struct rf_metadata *line)
{
    return line->cells + radish->cells;
}

static inline uint8_t *rf_permissions(const struct rf_radish *radish, struct rf_metadata *line)
{
    return line->cells + 2 * radish->cells;
}

static inline uint8_t *rf_statuses(const struct rf_radish *radish, struct rf_metadata *line)
{
    return line->cells + 3 * radish->cells;
}

static inline struct rf_metadata *rf_lines_of(const struct rf_radish *radish, uint64_t number)
{
    return number < radish->line_cap ? radish->lines[number] : NULL;
}

/* 9. */
static inline bool rf_line_is_live(const struct rf_radish *radish, const struct rf_metadata *line)
{
    const struct rf_radish_core *core = &radish->cores[line->core];
    return core->thread && core->slot == line->slot;
}

static inline uint64_t rf_time_of(const struct rf_radish *radish, const struct rf_metadata *line, uint8_t clock)
{
    return clock ? radish->contexts[line->slot]->clocks.times[clock] : 0;
}

static inline void rf_charge(struct rf_radish *radish, uint32_t core, uint64_t cycles)
{
    radish->times[core] += cycles;
}

/* Up to eight cells in a word. There is room to read beyond the last ones. */
#define RF_EACH_CELL UINT64_C(0x0101010101010101)

static inline uint64_t rf_cells_mask(uint32_t count)
{
    return UINT64_MAX >> (64 - 8 * count);
}

static inline uint64_t rf_some_cells(const uint8_t *cells, uint32_t count)
{
    uint64_t word;
    memcpy(&word, cells, sizeof word);
    return word & rf_cells_mask(count);
}

/* They are all alike, as the cells of one variable nearly always are. */
static inline bool rf_even(const uint8_t *cells, uint32_t count)
{
    return !((rf_some_cells(cells, count) ^ RF_EACH_CELL * *cells) & rf_cells_mask(count));
}

/* The same for all cells of a line. */
static inline bool rf_all_even(const uint8_t *cells, uint32_t count)
{
    uint64_t other = 0;
    for (uint32_t i = 0; i < count; i += 8)
        other |= rf_some_cells(cells + i, 8) ^ RF_EACH_CELL * *cells;
    return !other;
}

static inline struct rf_context *rf_context_of(struct rf_radish *radish, uint32_t slot)
{
    struct rf_context *context = slot < radish->context_cap ? radish->contexts[slot] : NULL;
    return __builtin_expect(context != NULL, 1) ? context : rf_context_make(radish, slot);
}

/* Changes a cell's clock, and what the clock table counts. */
static inline void rf_set_clock(struct rf_context *context, struct rf_metadata *line, uint8_t *cell, uint32_t clock)
{
    if (*cell == clock)
        return;
    context->clocks.references[*cell]--;
    context->clocks.references[clock]++; /* of clock 0 nobody asks */
    if (!((line->used | 1) >> clock & 1))
        rf_line_uses(context, line, clock);
    *cell = (uint8_t)clock;
}

/* The same for up to eight. */
static inline void rf_set_clocks(struct rf_context *context, struct rf_metadata *line, uint8_t *cells, uint32_t count,
                                 uint32_t clock)
{
    uint32_t old = *cells;
    if (!rf_even(cells, count)) {
        for (uint32_t i = 0; i < count; i++)
            rf_set_clock(context, line, &cells[i], clock);
        return;
    }
    if (old == clock)
        return;
    context->clocks.references[old] -= count;
    context->clocks.references[clock] += count;
    if (!((line->used | 1) >> clock & 1))
        rf_line_uses(context, line, clock);
    for (uint32_t i = 0; i < count; i++)
        cells[i] = (uint8_t)clock;
}

/* Brings a line into the host's caches. */
static inline void rf_line_prefetch(const struct rf_radish *radish, const struct rf_metadata *line)
{
    for (size_t at = 0; at < sizeof *line + 4 * radish->cells; at += 64)
        __builtin_prefetch((const char *)line + at);
}

/* Only lazy switching needs the thread in the address (3.2.6): with eager flushing what is there is the running thread's. */
static inline uint64_t rf_metadata_key(const struct rf_radish *radish, uint32_t core, uint64_t number)
{
    return rf_key_metadata(core, radish->config->flush == RF_FLUSH_LAZY ? radish->cores[core].slot : 0, number);
}

/* Takes a line out of the caches; its clocks go to the software layer's buffer, or, not persisted, are lost. */
void rf_evict_line(struct rf_radish *radish, struct rf_metadata *line, bool persist);
/* Reports the bytes of a cell of the line that the access is to. */
void rf_report_cell(struct rf_radish *radish, const struct rf_metadata *line, uint32_t cell, const struct rf_access *access);
/* Ends the compact encoding of a data line. */
void rf_split_line(struct rf_radish *radish, struct rf_frame *frame, uint64_t physical);

/* The number of the metadata line for a physical address, and where its cells are there. */
static inline uint64_t rf_number_of(const struct rf_radish *radish, const struct rf_frame *frame, uint64_t physical,
                                    bool *compact)
{
    uint32_t bits = radish->machine.line_bits;
    *compact = frame->split && !frame->split[(physical & (radish->config->page_bytes - 1)) >> bits];
    return *compact ? physical >> bits << 1 : physical >> (bits - 1);
}

#endif
