/* The check handler of the software layer: compares an access with the clocks of hardware and of software, and fills the whole line.
 * See hardware/software.h.
 */
#include "hardware/radish.h"

/* A line that is checked, and what is known of one of its places: the lines of hardware, the histories of software. Where the lines
 * are not wide, no history is uneven. */
struct view {
    struct rf_radish *radish;
    const struct rf_layout *layout;
    struct rf_metadata *first, *own;
    uint32_t core;
    struct rf_record *records[2];
    struct rf_history *owns[2]; /* the thread's in them; NULL: none */
    /* the place, and those after it that are like it */
    uint32_t place, count, byte; /* byte: in the histories */
    struct rf_record *record;
    struct rf_history *mine;
    uint8_t status;
};

static struct view view_of(struct rf_radish *radish, uint32_t core, struct rf_metadata *own)
{
    struct view v = { .radish = radish, .layout = &radish->layout, .own = own, .core = core };
    uint32_t uneven = 0;
    v.first = rf_lines_of(radish, own->number);
    for (uint32_t half = rf_is_compact(own) ? 2 : 1; half--;) { /* the later one first: the other stays where it is */
        v.records[half] = rf_software_make(radish, (uint64_t)own->number + half);
        v.owns[half] = rf_software_find(v.records[half], own->slot);
        for (const struct rf_history *history = v.records[half]->histories; history; history = history->next)
            uneven |= history->uneven;
    }
    if (uneven && !own->wide)
        rf_lines_widen(radish, own->number);
    return v;
}

/* `count` places, in one granule; or all. */
static void view_places(struct view *v, uint32_t place, uint32_t count)
{
    uint32_t cell = place << rf_shift(v->layout, v->own);
    uint32_t byte = rf_is_compact(v->own) ? cell * 2 : cell, half = byte >= rf_cells(v->layout);
    v->place = place;
    v->count = count;
    v->byte = byte - half * rf_cells(v->layout);
    v->record = v->records[half];
    v->mine = v->owns[half];
    v->status = rf_row(v->layout, v->own, RF_STATUSES)[place];
}

/* These cells of a wide line, in one granule, have one history in hardware and in software: what is found for the first holds for
 * all. */
static bool view_is_even(const struct view *v, uint32_t cell, uint32_t count)
{
    const struct rf_radish *radish = v->radish;
    uint32_t byte = rf_is_compact(v->own) ? cell * 2 : cell, half = byte >= rf_cells(&radish->layout);
    if (!rf_even(rf_row(v->layout, v->own, RF_STATUSES) + cell, count))
        return false;
    for (struct rf_metadata *line = v->first; line; line = line->next)
        if (!rf_even(rf_row(v->layout, line, RF_READ_CLOCKS) + cell, count) ||
            !rf_even(rf_row(v->layout, line, RF_WRITE_CLOCKS) + cell, count))
            return false;
    for (const struct rf_history *history = v->records[half]->histories; history; history = history->next)
        if (!rf_history_even(history, (byte - half * rf_cells(&radish->layout)) / 8))
            return false;
    return true;
}

static uint8_t clock_of(const struct view *v, struct rf_metadata *line, bool writes)
{
    return rf_row(v->layout, line, writes ? RF_WRITE_CLOCKS : RF_READ_CLOCKS)[v->place];
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
    return rf_history_get(history, rf_cells(v->layout), writes ? RF_WRITES : RF_READS, v->byte);
}

/* Some read, or some write, does not happen before now. Hardware hands over the clocks of threads that run. */
static bool late(const struct view *v, bool writes)
{
    struct rf_radish *radish = v->radish;
    for (struct rf_metadata *line = v->first; line && RF_HOLDS(radish->broken, SOFTWARE_SEES_HARDWARE); line = line->next) {
        if (line != v->own && rf_line_is_live(radish, line) &&
            rf_time_of(radish, line, clock_of(v, line, writes)) > known_time(radish, v->core, line->slot))
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

static bool late_read(const struct view *v)
{
    return RF_HOLDS(v->radish->broken, SOFTWARE_PERMISSION) && late(v, false);
}

/* Brings the thread's own clock of one kind into its line, if the clock table has room for the time. */
static void import(const struct view *v, bool writes)
{
    struct rf_radish *radish = v->radish;
    uint8_t *clock = rf_row(v->layout, v->own, writes ? RF_WRITE_CLOCKS : RF_READ_CLOCKS) + v->place;
    struct rf_context *context = radish->contexts[v->own->slot];
    uint32_t time = v->mine ? time_in(v, v->mine, writes) : 0;
    if (time && time > rf_time_of(radish, v->own, *clock) && RF_HOLDS(radish->broken, IMPORT)) {
        uint32_t new = rf_clock_for(&context->clocks, time, radish->clock_limit, radish->broken);
        for (uint32_t i = 0, count = v->count < 8 ? v->count : 8; new &&i < v->count; i += count)
            rf_set_clocks(context, v->own, clock + i, rf_shift(v->layout, v->own), count, new);
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
        for (struct rf_metadata *line = v->first; line && !found; line = line->next)
            found = line->slot == history->slot && rf_time_of(radish, line, clock_of(v, line, writes)) >= time;
        if (!found)
            return false;
    }
    return true;
}

/* Nobody else has a clock, neither in hardware nor, where that counts, in software. */
static bool history_is_own(const struct view *v)
{
    for (struct rf_metadata *line = v->first; line; line = line->next)
        if (line != v->own && (clock_of(v, line, false) || clock_of(v, line, true)))
            return false;
    return true;
}

/* A place of the line that the handler fills, and those like it: clocks, status and permission (3.2.4.1 and 3.2.5). Once it has the status
 * Everything, software has nothing that counts: so `history_is_own` need not look there. */
static void fill_places(struct view *v)
{
    struct rf_radish *radish = v->radish;
    uint8_t status = v->status;
    bool late_write = RF_HOLDS(radish->broken, SOFTWARE_PERMISSION) && late(v, true);
    if (!(status & RF_ALL_LAST_READS))
        import(v, false);
    if (!(status & RF_LAST_WRITE))
        import(v, true);
    if (!(status & RF_ALL_LAST_READS) && in_hardware(v, false))
        status |= RF_ALL_LAST_READS;
    if (!(status & RF_LAST_WRITE) && in_hardware(v, true))
        status |= RF_LAST_WRITE;
    for (struct rf_metadata *line = v->first; line && status != v->status; line = line->next)
        memset(rf_row(v->layout, line, RF_STATUSES) + v->place, status, v->count);
    bool own = (status == RF_EVERYTHING || !RF_HOLDS(radish->broken, SOFTWARE_PERMISSION)) && history_is_own(v);
    enum rf_permission permission = late_write     ? RF_PERMIT_NONE
                                    : own          ? RF_PERMIT_WRITE
                                    : late_read(v) ? RF_PERMIT_READ
                                                   : RF_PERMIT_ORDERED;
    memset(rf_row(v->layout, v->own, RF_PERMISSIONS) + v->place, (int)permission, v->count);
}

/* The whole line has one history. */
static bool line_is_even(const struct view *v)
{
    uint32_t width = rf_width(v->layout, v->own);
    if (rf_is_compact(v->own) || !rf_all_even(rf_row(v->layout, v->own, RF_STATUSES), width))
        return false;
    for (struct rf_metadata *line = v->first; line; line = line->next)
        if (!rf_all_even(rf_row(v->layout, line, RF_READ_CLOCKS), width) ||
            !rf_all_even(rf_row(v->layout, line, RF_WRITE_CLOCKS), width))
            return false;
    for (const struct rf_history *history = v->records[0]->histories; history; history = history->next)
        if (!rf_history_all_even(history, rf_cells(v->layout)))
            return false;
    return true;
}

/* All cells of the line: at once if they are alike, or by units, or by granules and cells. */
static void fill_line(struct view *v)
{
    uint32_t width = rf_width(v->layout, v->own);
    uint32_t granule = !v->own->wide ? 1 : rf_is_compact(v->own) ? 4 : 8;
    if (line_is_even(v)) {
        view_places(v, 0, width);
        fill_places(v);
        return;
    }
    for (uint32_t place = 0; place < width; place += granule) {
        uint32_t count = granule > 1 && view_is_even(v, place, granule) ? granule : 1;
        for (uint32_t i = place; i < place + granule; i += count) {
            view_places(v, i, count);
            fill_places(v);
        }
    }
}

/* Reports the races of an access with what is known of its places. */
static void check_places(struct view *v, struct rf_places places, const struct rf_access *access)
{
    uint32_t step = v->own->wide && view_is_even(v, places.at, places.count) ? places.count : 1;
    for (uint32_t i = places.at; i < places.at + places.count; i += step) {
        view_places(v, i, step);
        if (!late(v, true) && !(access->write && late(v, false)))
            continue;
        for (uint32_t j = i; j < i + step; j++)
            rf_report_place(v->radish, v->own, j, access);
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
    uint32_t runner = rf_software_core(radish, core), halves = rf_is_compact(own) ? 2 : 1;
    /* the handler's accesses must not evict the line that it fills */
    radish->machine.pinned = rf_key_metadata(&radish->machine, own);
    radish->software.check_calls++;
    rf_software_spend(radish, runner, radish->config->enter_cycles);
    for (uint32_t half = 0; half < halves; half++)
        rf_software_touch(radish, runner, (uint64_t)own->number + half, RF_ALL_SLOTS, false);
    struct rf_record *record = rf_software_record(radish, own->number);
    if (record && record->cached && RF_HOLDS(radish->broken, FLUSH_STALE))
        flush_strangers(radish, own->number);
    if (RF_HOLDS(radish->broken, DRAIN))
        rf_software_drain(radish, core);
    radish->machine.pinned = 0;

    struct view v = view_of(radish, core, own);
    uint64_t clocks = 0;
    check_places(&v, rf_places_of(radish, own, cell, count), access);
    if (is_untouched(&v, halves)) { /* what filling comes to */
        memset(rf_row(&radish->layout, own, RF_STATUSES), RF_EVERYTHING, rf_width(&radish->layout, own));
        memset(rf_row(&radish->layout, own, RF_PERMISSIONS), RF_PERMIT_WRITE, rf_width(&radish->layout, own));
    } else {
        fill_line(&v);
    }
    for (uint32_t half = 0; half < halves; half++) {
        v.records[half]->cached = 1;
        for (struct rf_history *history = v.records[half]->histories; history; history = history->next)
            clocks += rf_cells(&radish->layout) / halves;
    }
    rf_software_spend(radish, runner, (rf_cells(&radish->layout) + clocks) * radish->config->entry_cycles);
}
