/* RADISH: a vector-clock race detector in hardware with software behind it (Wood, chapter 3), on the machine of machine.h.
 *
 * The state is that of the canonical detector, C, L, R and W, split in two (3.3.1). C and L are core/order.h's; of C each core has
 * the entries of the threads that run (`clock`). R_x(t) and W_x(t) are in a metadata line of t, if one is cached, and otherwise in
 * the software layer's variable map (software.h).
 *
 *  1. A metadata line has a cell for each byte of half a data line; compact, for each two bytes of a whole one. All bytes of a
 *     cell have one history. Cells that are alike share a place: metadata.h.
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
#include "hardware/clock_table.h"
#include "hardware/clock_users.h"
#include "hardware/machine.h"
#include "hardware/metadata.h"
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
    bool mixed;                   /* it had other threads before: their lines may be cached, beside those of this one */
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
    uint64_t busy;                /* a bit for each core that has a thread */
    struct rf_context **contexts; /* by slot */
    uint32_t context_cap;
    struct rf_pool line_pool, many_pool, user_pool;
    struct rf_metadata **found; /* a roll-over's */
    uint32_t found_cap;
    struct rf_layout layout;
    uint32_t clock_limit;
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
    bool write, tracked; /* tracked: neither its site nor its page is free of races */
};

RF_ROOM void rf_radish_init(struct rf_radish *radish, const struct rf_config *config, uint64_t broken,
                            struct rf_memory *memory, struct rf_order *order, struct rf_pages *pages, uint64_t *times);
RF_ROOM void rf_radish_free(struct rf_radish *radish);
/* What the machine tells goes to this copy of the detector (hardware/usual.h). rf_radish_init() does the same. */
RF_ROOM void rf_radish_attach(struct rf_radish *radish);

/* The thread runs on the core from here on, in place of whoever did; NULL: nobody does. */
RF_ROOM void rf_radish_switch(struct rf_radish *radish, uint32_t core, struct rf_thread *thread);
/* The vector clock of the core's thread has changed. */
RF_ROOM void rf_radish_synchronised(struct rf_radish *radish, uint32_t core);
RF_ROOM void rf_radish_access(struct rf_radish *radish, uint32_t core, const struct rf_access *access);

/* LARDISH (4.3.2). `freed`: it is also a write of all of it. */
RF_ROOM void rf_radish_clear(struct rf_radish *radish, uint32_t core, uint64_t addr, uint64_t size, bool freed);
RF_ROOM void rf_radish_copy(struct rf_radish *radish, uint32_t core, uint64_t from, uint64_t to, uint64_t size);

/* ---- for the files of this room, and for tests ---- */

/* lines.c */
RF_ROOM struct rf_context *rf_context_make(struct rf_radish *radish, uint32_t slot);
/* A line for what the core's thread does; and into the lists, once it is in a cache. */
RF_ROOM struct rf_metadata *rf_line_new(struct rf_radish *radish, uint32_t core, uint64_t number);
RF_ROOM void rf_line_link(struct rf_radish *radish, struct rf_metadata *line);
/* Makes a line wide; and all lines of this number. */
RF_ROOM void rf_line_widen(struct rf_radish *radish, struct rf_metadata *line);
RF_ROOM void rf_lines_widen(struct rf_radish *radish, uint64_t number);
/* The machine's `evicted`. */
RF_ROOM void rf_line_evicted(void *radish, struct rf_metadata *line);
RF_ROOM void rf_flush_slot(struct rf_radish *radish, uint32_t slot);
/* Frees clocks of the core's thread. */
RF_ROOM void rf_roll_over(struct rf_radish *radish, uint32_t core);

RF_HOT struct rf_metadata *rf_lines_of(const struct rf_radish *radish, uint64_t number)
{
    return RF_MOSTLY(number < radish->software.record_cap) ? rf_record_at(&radish->software, number)->lines : NULL;
}

/* Whether a row has anything but zeros. */
static inline bool rf_row_is_set(const uint8_t *row, uint32_t width)
{
    uint64_t any = 0;
    for (uint32_t at = 0; at < width; at += 8)
        any |= rf_some_cells(row + at, rf_up_to_eight(width, at));
    return any != 0;
}

/* Whether the line permits anything. */
static inline bool rf_permits(const struct rf_layout *layout, struct rf_metadata *line)
{
    return RF_RARELY(line->wide) ? rf_row_is_set(rf_row_if(layout, line, true, RF_PERMISSIONS), rf_cells(layout))
                                 : rf_row_is_set(rf_row_if(layout, line, false, RF_PERMISSIONS), rf_units(layout));
}

/* A record's `permitting`: coherence asks which cores have permissions on a line of data, and so it need not look at the metadata lines,
 * which are all over the host's memory. Exact, as that decides whether a line is shared. A line permits something; or nothing. */
static inline void rf_line_permits(struct rf_radish *radish, const struct rf_metadata *line)
{
    rf_record_at(&radish->software, line->number)->permitting |= UINT64_C(1) << line->core;
}

static inline void rf_line_permits_nothing(struct rf_radish *radish, const struct rf_metadata *line)
{
    struct rf_record *record = rf_record_at(&radish->software, line->number);
    record->permitting &= ~(UINT64_C(1) << line->core);
    if (__builtin_expect(!radish->cores[line->core].mixed, 1))
        return;
    for (struct rf_metadata *other = record->lines; other; other = other->next)
        if (other != line && other->core == line->core && rf_permits(&radish->layout, other))
            rf_line_permits(radish, other);
}

/* Either, as the row says. */
static inline void rf_permissions_changed(struct rf_radish *radish, struct rf_metadata *line)
{
    if (rf_permits(&radish->layout, line))
        rf_line_permits(radish, line);
    else
        rf_line_permits_nothing(radish, line);
}

/* 9. */
static inline bool rf_line_is_live(const struct rf_radish *radish, const struct rf_metadata *line)
{
    const struct rf_radish_core *core = &radish->cores[line->core];
    return core->thread && core->slot == line->slot;
}

static inline uint32_t rf_time_of(const struct rf_radish *radish, const struct rf_metadata *line, uint8_t clock)
{
    return radish->contexts[line->slot]->clocks.times[clock]; /* of clock 0 it is 0 */
}

static inline void rf_charge(struct rf_radish *radish, uint32_t core, uint64_t cycles)
{
    radish->times[core] += cycles;
}

static inline struct rf_context *rf_context_of(struct rf_radish *radish, uint32_t slot)
{
    struct rf_context *context = slot < radish->context_cap ? radish->contexts[slot] : NULL;
    return __builtin_expect(context != NULL, 1) ? context : rf_context_make(radish, slot);
}

/* Changes the clock of a place, which stands for 1 << shift cells, and what the clock table counts. */
RF_HOT void rf_set_clock(struct rf_context *context, struct rf_metadata *line, uint8_t *place, uint32_t shift,
                         uint32_t clock)
{
    if (*place == clock)
        return;
    rf_clock_loses(&context->clocks, *place, 1u << shift);
    rf_clock_gains(&context->clocks, clock, 1u << shift);
    if (!((line->used | 1) >> clock & 1))
        rf_users_add(&context->users, line, clock);
    *place = (uint8_t)clock;
}

/* The same for up to eight. */
RF_HOT void rf_set_clocks(struct rf_context *context, struct rf_metadata *line, uint8_t *places, uint32_t shift,
                          uint32_t count, uint32_t clock)
{
    uint32_t old = *places;
    if (RF_MOSTLY(count == 1)) {
        rf_set_clock(context, line, places, shift, clock);
        return;
    }
    if (!rf_even(places, count)) {
        for (uint32_t i = 0; i < count; i++)
            rf_set_clock(context, line, &places[i], shift, clock);
        return;
    }
    if (old == clock)
        return;
    rf_clock_loses(&context->clocks, old, count << shift);
    rf_clock_gains(&context->clocks, clock, count << shift);
    if (!((line->used | 1) >> clock & 1))
        rf_users_add(&context->users, line, clock);
    for (uint32_t i = 0; i < count; i++)
        places[i] = (uint8_t)clock;
}

/* The same value for some places, nearly always one. */
static inline void rf_set_places(uint8_t *places, uint32_t count, uint32_t value)
{
    if (RF_MOSTLY(count == 1))
        *places = (uint8_t)value;
    else
        memset(places, (int)value, count);
}

/* Where the cells [cell, cell + count) are; a line of which they are part of a unit becomes wide. */
struct rf_places {
    uint32_t at, count;
};

static inline struct rf_places rf_places_of(struct rf_radish *radish, const struct rf_metadata *line, uint32_t cell,
                                            uint32_t count)
{
    uint32_t bits = rf_unit_bits(&radish->layout);
    if (RF_MOSTLY(!line->wide && !((cell | count) & ((1u << bits) - 1))))
        return (struct rf_places){ cell >> bits, count >> bits };
    if (!line->wide)
        rf_lines_widen(radish, line->number);
    return (struct rf_places){ cell, count };
}

/* Brings a line into the host's caches. */
static inline void rf_line_prefetch(const struct rf_metadata *line)
{
    rf_host_prefetch(line);
}

/* The core's line for this number, NULL if it is in no cache. Only lazy switching needs the thread in the address (3.2.6): with eager
 * flushing what is there is the running thread's. */
RF_HOT struct rf_metadata *rf_line_of(const struct rf_radish *radish, uint32_t core, uint64_t number)
{
    struct rf_metadata *line = rf_lines_of(radish, number);
    while (line && (line->core != core ||
                    (RF_RARELY(line->slot != radish->cores[core].slot) && radish->config->flush == RF_FLUSH_LAZY)))
        line = line->next;
    return line;
}

/* Takes a line out of the caches; its clocks go to the software layer's buffer, or, not persisted, are lost. */
RF_ROOM void rf_evict_line(struct rf_radish *radish, struct rf_metadata *line, bool persist);
/* Reports the bytes of a place of the line that the access is to. */
RF_ROOM void rf_report_place(struct rf_radish *radish, const struct rf_metadata *line, uint32_t place,
                             const struct rf_access *access);
/* Ends the compact encoding of a data line. */
RF_ROOM void rf_split_line(struct rf_radish *radish, struct rf_frame *frame, uint64_t physical);

/* The number of the metadata line for a physical address, and where its cells are there. */
static inline uint64_t rf_number_of(const struct rf_radish *radish, const struct rf_frame *frame, uint64_t physical,
                                    bool *compact)
{
    uint32_t bits = rf_line_bits(&radish->machine);
    *compact = !RF_USUAL && frame->split && !frame->split[(physical & (radish->config->page_bytes - 1)) >> bits];
    return *compact ? physical >> bits << 1 : physical >> (bits - 1);
}

#endif
