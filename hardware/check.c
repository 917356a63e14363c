/* The check handler of the software layer: compares an access with the clocks of hardware and of software, and fills the whole line.
 * See hardware/software.h.
 */
#include "hardware/radish.h"

/* A line that is checked, and what is known of one of its cells: the lines of hardware, the histories of software. */
struct view {
    struct rf_radish *radish;
    struct rf_metadata *first, *own;
    uint32_t core;
    struct rf_record *records[2];
    struct rf_history *owns[2]; /* the thread's in them; NULL: none */
    /* the cell, and those after it that are like it */
    uint32_t cell, count, byte; /* byte: in the histories */
    struct rf_record *record;
    struct rf_history *mine;
    uint8_t status;
};

static struct view view_of(struct rf_radish *radish, uint32_t core, struct rf_metadata *own)
{
    struct view v = { .radish = radish, .first = rf_lines_of(radish, own->number), .own = own, .core = core };
    for (uint32_t half = own->compact ? 2 : 1; half--;) { /* the later one first: the other stays where it is */
        v.records[half] = rf_software_make(radish, own->number + half);
        v.owns[half] = rf_software_find(v.records[half], own->slot);
    }
    return v;
}

/* `count` cells, in one granule; or all. */
static void view_cells(struct view *v, uint32_t cell, uint32_t count)
{
    uint32_t byte = v->own->compact ? cell * 2 : cell, half = byte >= v->radish->cells;
    v->cell = cell;
    v->count = count;
    v->byte = byte - half * v->radish->cells;
    v->record = v->records[half];
    v->mine = v->owns[half];
    v->status = rf_statuses(v->radish, v->own)[cell];
}

/* These cells, in one granule, have one history in hardware and in software: what is found for the first holds for all. */
static bool view_is_even(const struct view *v, uint32_t cell, uint32_t count)
{
    const struct rf_radish *radish = v->radish;
    uint32_t byte = v->own->compact ? cell * 2 : cell, half = byte >= radish->cells;
    if (!rf_even(rf_statuses(radish, v->own) + cell, count))
        return false;
    for (struct rf_metadata *line = v->first; line; line = line->next)
        if (!rf_even(rf_reads(radish, line) + cell, count) || !rf_even(rf_writes(radish, line) + cell, count))
            return false;
    for (const struct rf_history *history = v->records[half]->histories; history; history = history->next)
        if (!rf_history_even(history, (byte - half * radish->cells) / 8))
            return false;
    return true;
}

/* C_t(slot): the whole vector clock, which software merges from its own and the core's. */
static uint64_t known_time(const struct rf_radish *radish, uint32_t core, uint32_t slot)
{
    if (!RF_HOLDS(radish->broken, SOFTWARE_FULL_CLOCK)) {
        for (uint32_t other = 0; other < radish->config->cores; other++)
            if (radish->cores[other].thread && radish->cores[other].slot == slot)
                return radish->cores[core].clock[other];
        return UINT64_MAX;
    }
    return rf_clock_get(&radish->cores[core].thread->clock, slot);
}

static uint32_t time_in(const struct view *v, const struct rf_history *history, bool writes)
{
    return rf_history_get(history, v->radish->cells, writes ? RF_WRITES : RF_READS, v->byte);
}

/* Some read, or some write, does not happen before now. Hardware hands over the clocks of threads that run. */
static bool late(const struct view *v, bool writes)
{
    struct rf_radish *radish = v->radish;
    for (struct rf_metadata *line = v->first; line && RF_HOLDS(radish->broken, SOFTWARE_SEES_HARDWARE); line = line->next) {
        uint8_t clock = (writes ? rf_writes(radish, line) : rf_reads(radish, line))[v->cell];
        if (line != v->own && rf_line_is_live(radish, line) &&
            rf_time_of(radish, line, clock) > known_time(radish, v->core, line->slot))
            return true;
    }
    if (v->status & (writes ? RF_LAST_WRITE : RF_ALL_LAST_READS))
        return false;
    if (writes ? !RF_HOLDS(radish->broken, SOFTWARE_CHECKS_WRITES) : !RF_HOLDS(radish->broken, SOFTWARE_CHECKS_READS))
        return false;
    for (struct rf_history *history = v->record->histories; history; history = history->next)
        if (time_in(v, history, writes) > known_time(radish, v->core, history->slot))
            return true;
    return false;
}

/* Brings the thread's own clock of one kind into its line, if the clock table has room for the time. */
static void import(const struct view *v, bool writes)
{
    struct rf_radish *radish = v->radish;
    uint8_t *clock = (writes ? rf_writes(radish, v->own) : rf_reads(radish, v->own)) + v->cell;
    struct rf_context *context = radish->contexts[v->own->slot];
    uint32_t time = v->mine ? time_in(v, v->mine, writes) : 0;
    if (time && time > rf_time_of(radish, v->own, *clock) && RF_HOLDS(radish->broken, IMPORT)) {
        uint32_t new = rf_clock_for(&context->clocks, time, radish->clock_limit, radish->broken);
        for (uint32_t i = 0, count = v->count < 8 ? v->count : 8; new &&i < v->count; i += count)
            rf_set_clocks(context, v->own, clock + i, count, new);
    }
}

/* Every clock of this kind that software has is also, or newer, in hardware. */
static bool in_hardware(const struct view *v, bool writes)
{
    struct rf_radish *radish = v->radish;
    if (!(writes ? RF_HOLDS(radish->broken, UPGRADE_WRITE) : RF_HOLDS(radish->broken, UPGRADE_READS)))
        return true;
    for (struct rf_history *history = v->record->histories; history; history = history->next) {
        uint32_t time = time_in(v, history, writes);
        bool found = !time || (!RF_HOLDS(radish->broken, IMPORT) && history->slot == v->own->slot);
        for (struct rf_metadata *line = v->first; line && !found; line = line->next) {
            uint8_t clock = (writes ? rf_writes(radish, line) : rf_reads(radish, line))[v->cell];
            found = line->slot == history->slot && rf_time_of(radish, line, clock) >= time;
        }
        if (!found)
            return false;
    }
    return true;
}

/* Nobody else has a clock, neither in hardware nor, where that counts, in software. */
static bool history_is_own(const struct view *v)
{
    struct rf_radish *radish = v->radish;
    for (struct rf_metadata *line = v->first; line; line = line->next)
        if (line != v->own && (rf_reads(radish, line)[v->cell] || rf_writes(radish, line)[v->cell]))
            return false;
    return true;
}

/* A cell of the line that the handler fills, and those like it: clocks, status and permission (3.2.4.1 and 3.2.5). Once it has the status
 * Everything, software has nothing that counts: so `history_is_own` need not look there. */
static void fill_cells(struct view *v)
{
    struct rf_radish *radish = v->radish;
    uint8_t status = v->status;
    bool late_write = RF_HOLDS(radish->broken, SOFTWARE_PERMISSION) && late(v, true);
    bool late_read = RF_HOLDS(radish->broken, SOFTWARE_PERMISSION) && late(v, false);
    if (!(status & RF_ALL_LAST_READS))
        import(v, false);
    if (!(status & RF_LAST_WRITE))
        import(v, true);
    if (in_hardware(v, false))
        status |= RF_ALL_LAST_READS;
    if (in_hardware(v, true))
        status |= RF_LAST_WRITE;
    for (struct rf_metadata *line = v->first; line; line = line->next)
        memset(rf_statuses(radish, line) + v->cell, status, v->count);
    bool own = (status == RF_EVERYTHING || !RF_HOLDS(radish->broken, SOFTWARE_PERMISSION)) && history_is_own(v);
    enum rf_permission permission = late_write  ? RF_PERMIT_NONE
                                    : own       ? RF_PERMIT_WRITE
                                    : late_read ? RF_PERMIT_READ
                                                : RF_PERMIT_ORDERED;
    memset(rf_permissions(radish, v->own) + v->cell, (int)permission, v->count);
}

/* The whole line has one history. */
static bool line_is_even(const struct view *v)
{
    const struct rf_radish *radish = v->radish;
    if (v->own->compact || !rf_all_even(rf_statuses(radish, v->own), radish->cells))
        return false;
    for (struct rf_metadata *line = v->first; line; line = line->next)
        if (!rf_all_even(rf_reads(radish, line), radish->cells) || !rf_all_even(rf_writes(radish, line), radish->cells))
            return false;
    for (const struct rf_history *history = v->records[0]->histories; history; history = history->next)
        if (!rf_history_all_even(history, radish->cells))
            return false;
    return true;
}

/* All cells of the line: at once if they are alike, or by granules. */
static void fill_line(struct view *v)
{
    if (line_is_even(v)) {
        view_cells(v, 0, v->radish->cells);
        fill_cells(v);
        return;
    }
    uint32_t granule = v->own->compact ? 4 : 8;
    for (uint32_t cell = 0; cell < v->radish->cells; cell += granule) {
        uint32_t count = view_is_even(v, cell, granule) ? granule : 1;
        for (uint32_t i = cell; i < cell + granule; i += count) {
            view_cells(v, i, count);
            fill_cells(v);
        }
    }
}

/* Reports the races of an access with what is known of its cells. */
static void check_cells(struct view *v, uint32_t cell, uint32_t count, const struct rf_access *access)
{
    uint32_t step = view_is_even(v, cell, count) ? count : 1;
    for (uint32_t i = cell; i < cell + count; i += step) {
        view_cells(v, i, step);
        if (!late(v, true) && !(access->write && late(v, false)))
            continue;
        for (uint32_t j = i; j < i + step; j++)
            rf_report_cell(v->radish, v->own, j, access);
    }
}

/* The first access to a line of memory: there is no history at all. */
static bool is_untouched(const struct view *v, uint32_t halves)
{
    return !v->records[0]->histories && (halves == 1 || !v->records[1]->histories) && v->first == v->own && !v->own->next;
}

/* Lines of threads that run no more, at least not there, give their clocks up (3.2.6, lazy flushing). */
static void flush_strangers(struct rf_radish *radish, uint64_t number)
{
    for (struct rf_metadata *line = rf_lines_of(radish, number), *next; line; line = next) {
        next = line->next;
        if (!rf_line_is_live(radish, line)) {
            rf_evict_line(radish, line, true);
            radish->counts.flushed_lines++;
        }
    }
}

void rf_software_check(struct rf_radish *radish, uint32_t core, struct rf_metadata *own, uint32_t cell, uint32_t count,
                       const struct rf_access *access)
{
    uint32_t runner = rf_software_core(radish, core), halves = own->compact ? 2 : 1;
    radish->machine.pinned = own->key; /* the handler's accesses must not evict the line that it fills */
    radish->software.check_calls++;
    rf_software_spend(radish, runner, radish->config->enter_cycles);
    for (uint32_t half = 0; half < halves; half++)
        rf_software_prefetch(radish, runner, own->number + half, RF_ALL_SLOTS);
    for (uint32_t half = 0; half < halves; half++)
        rf_software_touch(radish, runner, own->number + half, RF_ALL_SLOTS, false);
    struct rf_record *record = rf_software_record(radish, own->number);
    if (record && record->cached && RF_HOLDS(radish->broken, FLUSH_STALE))
        flush_strangers(radish, own->number);
    if (RF_HOLDS(radish->broken, DRAIN))
        rf_software_drain(radish, core);
    radish->machine.pinned = 0;

    struct view v = view_of(radish, core, own);
    uint64_t clocks = 0;
    check_cells(&v, cell, count, access);
    if (is_untouched(&v, halves)) { /* what filling comes to */
        memset(rf_statuses(radish, own), RF_EVERYTHING, radish->cells);
        memset(rf_permissions(radish, own), RF_PERMIT_WRITE, radish->cells);
    } else {
        fill_line(&v);
    }
    for (uint32_t half = 0; half < halves; half++) {
        v.records[half]->cached = 1;
        for (struct rf_history *history = v.records[half]->histories; history; history = history->next)
            clocks += radish->cells / halves;
    }
    rf_software_spend(radish, runner, (radish->cells + clocks) * radish->config->entry_cycles);
}
