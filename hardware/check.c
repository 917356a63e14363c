/* The check handler of the software layer: compares an access with the clocks of hardware and of software, and fills the whole line.
 * See hardware/software.h.
 *
 * Each line of hardware and each history of software is gone through once for all places of the line. What is found is kept by place, a
 * byte for each. Nearly always a place is a word: a line that is not wide has no uneven history, and then a history's times are an array by
 * place, of four in the usual machine. The functions that have `words` are compiled for this case by itself.
 */
#include "hardware/radish.h"

#define INLINE static inline __attribute__((always_inline))

/* A line that is checked. */
struct view {
    struct rf_radish *radish;
    struct rf_metadata *first, *own;
    uint32_t core, halves;
    struct rf_record *records[2];         /* one for each half of a compact line */
    uint8_t late[RF_KINDS][RF_MAX_CELLS]; /* by place: some read, or some write, does not happen before now */
};

/* The bit that says that what software knows of this kind is superseded. */
INLINE uint8_t in_hardware(uint32_t kind)
{
    return kind == RF_READS ? RF_ALL_LAST_READS : RF_LAST_WRITE;
}

INLINE uint8_t *statuses_of(const struct view *v)
{
    return rf_row(&v->radish->layout, v->own, RF_STATUSES);
}

/* A history's time for a place. */
INLINE uint32_t time_at(const struct view *v, const struct rf_history *history, uint32_t kind, uint32_t place, bool words)
{
    const struct rf_layout *layout = &v->radish->layout;
    if (words)
        return history->times[kind * rf_units(layout) + place];
    uint32_t byte = place << rf_shift(layout, v->own) << rf_is_compact(v->own);
    return rf_history_get(history, rf_cells(layout), (enum rf_kind)kind, byte & (rf_cells(layout) - 1));
}

/* C_t(slot): the whole vector clock, which software merges from its own and the core's. */
INLINE uint32_t known_time(const struct rf_radish *radish, uint32_t core, uint32_t slot)
{
    if (!RF_HOLDS(radish->broken, SOFTWARE_FULL_CLOCK)) {
        for (uint32_t other = 0; other < radish->config->cores; other++)
            if (radish->cores[other].thread && radish->cores[other].slot == slot)
                return (uint32_t)radish->cores[core].clock[other];
        return UINT32_MAX;
    }
    return rf_clock_get(&radish->cores[core].thread->clock, slot);
}

/* What the lines of other threads that run say. Hardware hands these clocks over. */
INLINE void look_at_hardware(struct view *v, uint32_t width)
{
    struct rf_radish *radish = v->radish;
    for (struct rf_metadata *line = v->first; line && RF_HOLDS(radish->broken, SOFTWARE_SEES_HARDWARE); line = line->next) {
        if (line == v->own || !rf_line_is_live(radish, line))
            continue;
        const uint64_t *times = radish->contexts[line->slot]->clocks.times;
        uint64_t known = known_time(radish, v->core, line->slot);
        for (uint32_t kind = 0; kind < RF_KINDS; kind++) {
            const uint8_t *clocks = rf_row(&radish->layout, line, (enum rf_row)kind);
            for (uint32_t place = 0; place < width; place++)
                v->late[kind][place] |= times[clocks[place]] > known;
        }
    }
}

/* What software's histories say, where hardware does not supersede them. */
INLINE void look_at_software(struct view *v, uint32_t width, bool words)
{
    uint64_t broken = v->radish->broken;
    const uint8_t *statuses = statuses_of(v);
    for (uint32_t half = 0; half < v->halves; half++)
        for (const struct rf_history *history = v->records[half]->histories; history; history = history->next) {
            uint32_t known = known_time(v->radish, v->core, history->slot);
            for (uint32_t kind = 0; kind < RF_KINDS; kind++) {
                if (kind == RF_WRITES ? !RF_HOLDS(broken, SOFTWARE_CHECKS_WRITES) : !RF_HOLDS(broken, SOFTWARE_CHECKS_READS))
                    continue;
                for (uint32_t place = half * width / 2; place < (half + 1) * width / v->halves; place++) {
                    uint32_t time = time_at(v, history, kind, place, words);
                    v->late[kind][place] |= (statuses[place] & in_hardware(kind) ? 0 : time) > known;
                }
            }
        }
}

/* Brings the thread's own clocks into its line, where its status does not say that they are there. A time that has no clock gets one
 * only while there are clocks to spare: to make room for the past would only bring the next roll-over nearer. */
INLINE void import(struct view *v, uint32_t width, bool words)
{
    struct rf_radish *radish = v->radish;
    struct rf_context *context = radish->contexts[v->own->slot];
    const uint8_t *statuses = statuses_of(v);
    uint32_t shift = rf_shift(&radish->layout, v->own);
    if (!RF_HOLDS(radish->broken, IMPORT) || !rf_clocks_to_spare(&context->clocks, radish->clock_limit))
        return;
    for (uint32_t half = 0; half < v->halves; half++) {
        const struct rf_history *mine = rf_software_find(v->records[half], v->own->slot);
        for (uint32_t place = half * width / 2; mine && place < (half + 1) * width / v->halves; place++)
            for (uint32_t kind = 0; kind < RF_KINDS; kind++) {
                uint8_t *clock = rf_row(&radish->layout, v->own, (enum rf_row)kind) + place;
                uint32_t time = time_at(v, mine, kind, place, words), new = 0;
                if (!(statuses[place] & in_hardware(kind)) && time > context->clocks.times[*clock])
                    new = rf_clock_for(&context->clocks, time, radish->clock_limit, radish->broken);
                if (new)
                    rf_set_clock(context, v->own, clock, shift, new);
            }
    }
}

/* Marks the places for which this history has a time of this kind that is not also, or newer, in hardware. */
INLINE void mark_missing(const struct view *v, const struct rf_history *history, uint32_t kind, uint32_t from, uint32_t end,
                         bool words, uint8_t *missing)
{
    struct rf_radish *radish = v->radish;
    uint8_t absent[RF_MAX_CELLS];
    for (uint32_t place = from; place < end; place++)
        absent[place] = time_at(v, history, kind, place, words) != 0;
    for (struct rf_metadata *line = v->first; line; line = line->next) {
        if (line->slot != history->slot)
            continue;
        const uint64_t *times = radish->contexts[line->slot]->clocks.times;
        const uint8_t *clocks = rf_row(&radish->layout, line, (enum rf_row)kind);
        for (uint32_t place = from; place < end; place++)
            absent[place] &= times[clocks[place]] < time_at(v, history, kind, place, words);
    }
    for (uint32_t place = from; place < end; place++)
        missing[place] |= absent[place];
}

/* 3.2.4.1: where hardware has everything of a kind that software has, its status says so. */
INLINE void raise_statuses(struct view *v, uint32_t width, bool words)
{
    struct rf_radish *radish = v->radish;
    uint8_t missing[RF_KINDS][RF_MAX_CELLS], *statuses = statuses_of(v), raised = 0;
    for (uint32_t kind = 0; kind < RF_KINDS; kind++)
        memset(missing[kind], 0, width);
    for (uint32_t half = 0; half < v->halves; half++)
        for (const struct rf_history *history = v->records[half]->histories; history; history = history->next) {
            if (!RF_HOLDS(radish->broken, IMPORT) && history->slot == v->own->slot)
                continue;
            uint32_t from = half * width / 2, end = (half + 1) * width / v->halves;
            if (RF_HOLDS(radish->broken, UPGRADE_READS))
                mark_missing(v, history, RF_READS, from, end, words, missing[RF_READS]);
            if (RF_HOLDS(radish->broken, UPGRADE_WRITE))
                mark_missing(v, history, RF_WRITES, from, end, words, missing[RF_WRITES]);
        }
    for (uint32_t place = 0; place < width; place++) {
        uint8_t more = (uint8_t)(!missing[RF_READS][place] * RF_ALL_LAST_READS | !missing[RF_WRITES][place] * RF_LAST_WRITE);
        raised |= more & ~statuses[place];
        statuses[place] |= more;
    }
    for (struct rf_metadata *line = v->first; line && raised; line = line->next)
        if (line != v->own)
            memcpy(rf_row(&radish->layout, line, RF_STATUSES), statuses, width);
}

/* 3.2.4.2. WRITE where nobody else has a clock: not in hardware, and where the status is Everything nothing in software counts. */
INLINE void set_new_permissions(struct view *v, uint32_t width)
{
    struct rf_radish *radish = v->radish;
    uint8_t others[RF_MAX_CELLS], *permissions = rf_row(&radish->layout, v->own, RF_PERMISSIONS);
    const uint8_t *statuses = statuses_of(v);
    bool holds = RF_HOLDS(radish->broken, SOFTWARE_PERMISSION);
    memset(others, 0, width);
    for (struct rf_metadata *line = v->first; line; line = line->next) {
        const uint8_t *reads = rf_row(&radish->layout, line, RF_READ_CLOCKS);
        const uint8_t *writes = rf_row(&radish->layout, line, RF_WRITE_CLOCKS);
        for (uint32_t place = 0; place < width && line != v->own; place++)
            others[place] |= reads[place] | writes[place];
    }
    for (uint32_t place = 0; place < width; place++) {
        bool own = (statuses[place] == RF_EVERYTHING || !holds) && !others[place];
        bool late_write = holds && v->late[RF_WRITES][place], late_read = holds && v->late[RF_READS][place];
        permissions[place] = late_write  ? RF_PERMIT_NONE
                             : own       ? RF_PERMIT_WRITE
                             : late_read ? RF_PERMIT_READ
                                         : RF_PERMIT_ORDERED;
    }
    rf_permissions_changed(radish, v->own);
}

/* Reports the races of an access with what is known of its places, and fills the line. */
INLINE void check_line(struct view *v, struct rf_places places, const struct rf_access *access, uint32_t width, bool words)
{
    for (uint32_t kind = 0; kind < RF_KINDS; kind++)
        memset(v->late[kind], 0, width);
    look_at_hardware(v, width);
    look_at_software(v, width, words);
    for (uint32_t place = places.at; place < places.at + places.count; place++)
        if (v->late[RF_WRITES][place] || (access->write && v->late[RF_READS][place]))
            rf_report_place(v->radish, v->own, place, access);
    import(v, width, words);
    raise_statuses(v, width, words);
    set_new_permissions(v, width);
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
    uint32_t runner = rf_software_core(radish, core), uneven = 0;
    uint64_t histories = 0;
    struct view v;
    v.radish = radish;
    v.own = own;
    v.core = core;
    v.halves = rf_is_compact(own) ? 2 : 1;
    /* the handler's accesses must not evict the line that it fills */
    radish->machine.pinned = rf_key_metadata(&radish->machine, own);
    radish->software.check_calls++;
    rf_software_spend(radish, runner, radish->config->enter_cycles);
    for (uint32_t half = 0; half < v.halves; half++)
        rf_software_touch(radish, runner, (uint64_t)own->number + half, false);
    struct rf_record *record = rf_software_record(radish, own->number);
    if (record && record->cached && RF_HOLDS(radish->broken, FLUSH_STALE))
        flush_strangers(radish, own->number);
    if (RF_HOLDS(radish->broken, DRAIN))
        rf_software_drain(radish, core);
    radish->machine.pinned = 0;

    for (uint32_t half = v.halves; half--;) { /* the later one first: the other stays where it is */
        v.records[half] = rf_software_make(radish, (uint64_t)own->number + half);
        v.records[half]->cached = true;
        for (const struct rf_history *history = v.records[half]->histories; history; history = history->next) {
            uneven |= history->uneven;
            histories++;
        }
    }
    v.first = rf_lines_of(radish, own->number);
    if (uneven && !own->wide)
        rf_lines_widen(radish, own->number);
    struct rf_places places = rf_places_of(radish, own, cell, count);
    uint32_t width = rf_width(&radish->layout, own);
    if (!histories && v.first == own && !own->next) { /* nobody was here: what all of it comes to */
        memset(rf_row(&radish->layout, own, RF_STATUSES), RF_EVERYTHING, width);
        memset(rf_row(&radish->layout, own, RF_PERMISSIONS), RF_PERMIT_WRITE, width);
        rf_line_permits(radish, own);
    } else if (!own->wide && rf_unit_bits(&radish->layout) == 3) {
        check_line(&v, places, access, rf_units(&radish->layout), true);
    } else {
        check_line(&v, places, access, width, false);
    }
    rf_software_spend(radish, runner,
                      (rf_cells(&radish->layout) + histories * (rf_cells(&radish->layout) / v.halves)) *
                          radish->config->entry_cycles);
}
