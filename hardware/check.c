/* The check handler of the software layer: compares an access with the clocks of hardware and of software, and fills the whole line.
 * See hardware/software.h.
 *
 * Four places of the line are looked at at once, each in a lane of a vector: the usual machine's lines have no more, unless they are wide.
 * Nearly always a place is a word: a line that is not wide has no uneven history, and then a history's times are an array by place. The
 * functions that have `words` are compiled for this case by itself.
 */
#include "hardware/lanes.h"
#include "hardware/radish.h"

#define INLINE static inline __attribute__((always_inline))

/* A line that is checked. */
struct view {
    struct rf_radish *radish;
    struct rf_metadata *first, *own;
    uint32_t core, halves;
    struct rf_record *records[2]; /* one for each half of a compact line */
    bool import;                  /* the thread's own clocks are brought into the line */
};

/* The bit that says that what software knows of this kind is superseded. */
INLINE uint32_t in_hardware(uint32_t kind)
{
    return kind == RF_READS ? RF_ALL_LAST_READS : RF_LAST_WRITE;
}

INLINE uint8_t *row_of(const struct view *v, struct rf_metadata *line, uint32_t row)
{
    return rf_row(&v->radish->layout, line, (enum rf_row)row);
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

/* The same for four. Lanes behind the last place have anything. */
INLINE rf_lanes times_at(const struct view *v, const struct rf_history *history, uint32_t kind, uint32_t at, bool words)
{
    if (words)
        return rf_lanes_load(history->times + kind * rf_units(&v->radish->layout) + at);
    return (rf_lanes){ time_at(v, history, kind, at, false), time_at(v, history, kind, at + 1, false),
                       time_at(v, history, kind, at + 2, false), time_at(v, history, kind, at + 3, false) };
}

/* The times that a line's clocks stand for. */
INLINE rf_lanes cached_times(const struct view *v, struct rf_metadata *line, uint32_t kind, uint32_t at)
{
    const uint32_t *times = v->radish->contexts[line->slot]->clocks.times;
    const uint8_t *clocks = row_of(v, line, kind) + at;
    return (rf_lanes){ times[clocks[0]], times[clocks[1]], times[clocks[2]], times[clocks[3]] };
}

/* The lanes of the places that this half's record is about. */
INLINE rf_lanes lanes_of(const struct view *v, uint32_t half, uint32_t at, uint32_t width)
{
    rf_lanes place = rf_lanes_all(at) + (rf_lanes){ 0, 1, 2, 3 };
    if (RF_USUAL)
        return rf_lanes_all(UINT32_MAX);
    return (rf_lanes)(place >= half * width / 2) & (rf_lanes)(place < (half + 1) * width / v->halves);
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
INLINE void look_at_hardware(struct view *v, uint32_t at, rf_lanes *late)
{
    struct rf_radish *radish = v->radish;
    for (struct rf_metadata *line = v->first; line && RF_HOLDS(radish->broken, SOFTWARE_SEES_HARDWARE); line = line->next) {
        if (line == v->own || !rf_line_is_live(radish, line))
            continue;
        uint32_t known = known_time(radish, v->core, line->slot);
        for (uint32_t kind = 0; kind < RF_KINDS; kind++)
            late[kind] |= (rf_lanes)(cached_times(v, line, kind, at) > known);
    }
}

/* What software's histories say, where hardware does not supersede them. */
INLINE void look_at_software(struct view *v, uint32_t at, uint32_t width, rf_lanes statuses, bool words, rf_lanes *late)
{
    uint64_t broken = v->radish->broken;
    for (uint32_t half = 0; half < v->halves; half++)
        for (const struct rf_history *history = v->records[half]->histories; history; history = history->next) {
            uint32_t known = known_time(v->radish, v->core, history->slot);
            for (uint32_t kind = 0; kind < RF_KINDS; kind++) {
                if (kind == RF_WRITES ? !RF_HOLDS(broken, SOFTWARE_CHECKS_WRITES) : !RF_HOLDS(broken, SOFTWARE_CHECKS_READS))
                    continue;
                late[kind] |= (rf_lanes)(times_at(v, history, kind, at, words) > known) &
                              (rf_lanes)((statuses & in_hardware(kind)) == 0) & lanes_of(v, half, at, width);
            }
        }
}

/* Brings the thread's own clocks into its line, where its status does not say that they are there. */
INLINE void import(struct view *v, uint32_t width, bool words)
{
    struct rf_radish *radish = v->radish;
    struct rf_context *context = radish->contexts[v->own->slot];
    const uint8_t *statuses = row_of(v, v->own, RF_STATUSES);
    uint32_t shift = rf_shift(&radish->layout, v->own);
    for (uint32_t half = 0; half < v->halves; half++) {
        const struct rf_history *mine = rf_software_find(v->records[half], v->own->slot);
        for (uint32_t place = half * width / 2; mine && place < (half + 1) * width / v->halves; place++)
            for (uint32_t kind = 0; kind < RF_KINDS; kind++) {
                uint8_t *clock = row_of(v, v->own, kind) + place;
                uint32_t time = time_at(v, mine, kind, place, words), new = 0;
                if (!(statuses[place] & in_hardware(kind)) && time > context->clocks.times[*clock])
                    new = rf_clock_for(&context->clocks, time, radish->clock_limit, radish->broken);
                if (new)
                    rf_set_clock(context, v->own, clock, shift, new);
            }
    }
}

/* The places for which this history has a time of this kind that is not also, or newer, in hardware. */
INLINE rf_lanes missing_of(const struct view *v, const struct rf_history *history, uint32_t kind, uint32_t at, bool words)
{
    rf_lanes times = times_at(v, history, kind, at, words), missing = (rf_lanes)(times != 0);
    for (struct rf_metadata *line = v->first; line; line = line->next)
        if (line->slot == history->slot)
            missing &= (rf_lanes)(cached_times(v, line, kind, at) < times);
    return missing;
}

/* 3.2.4.1: where hardware has everything of a kind that software has, its status says so. Returns the statuses. */
INLINE rf_lanes raise_statuses(struct view *v, uint32_t at, uint32_t width, rf_lanes statuses, bool words)
{
    struct rf_radish *radish = v->radish;
    rf_lanes missing[RF_KINDS] = { { 0 }, { 0 } };
    for (uint32_t half = 0; half < v->halves; half++)
        for (const struct rf_history *history = v->records[half]->histories; history; history = history->next) {
            if (!RF_HOLDS(radish->broken, IMPORT) && history->slot == v->own->slot)
                continue;
            rf_lanes about = lanes_of(v, half, at, width);
            if (RF_HOLDS(radish->broken, UPGRADE_READS))
                missing[RF_READS] |= missing_of(v, history, RF_READS, at, words) & about;
            if (RF_HOLDS(radish->broken, UPGRADE_WRITE))
                missing[RF_WRITES] |= missing_of(v, history, RF_WRITES, at, words) & about;
        }
    rf_lanes now = statuses | (~missing[RF_READS] & RF_ALL_LAST_READS) | (~missing[RF_WRITES] & RF_LAST_WRITE);
    if (!rf_lanes_are_set(now ^ statuses))
        return now;
    for (struct rf_metadata *line = v->first; line; line = line->next)
        rf_lanes_to_bytes(row_of(v, line, RF_STATUSES) + at, now, width - at);
    return now;
}

/* 3.2.4.2. WRITE where nobody else has a clock: not in hardware, and where the status is Everything nothing in software counts. */
INLINE void set_new_permissions(struct view *v, uint32_t at, uint32_t width, rf_lanes statuses, const rf_lanes *late)
{
    struct rf_radish *radish = v->radish;
    rf_lanes others = { 0 }, late_write = late[RF_WRITES], late_read = late[RF_READS];
    rf_lanes everything = (rf_lanes)(statuses == RF_EVERYTHING);
    for (struct rf_metadata *line = v->first; line; line = line->next)
        if (line != v->own)
            others |= rf_lanes_of_bytes(row_of(v, line, RF_READ_CLOCKS) + at) |
                      rf_lanes_of_bytes(row_of(v, line, RF_WRITE_CLOCKS) + at);
    if (!RF_HOLDS(radish->broken, SOFTWARE_PERMISSION)) {
        everything = rf_lanes_all(UINT32_MAX);
        late_write = late_read = rf_lanes_all(0);
    }
    rf_lanes own = everything & (rf_lanes)(others == 0);
    rf_lanes ordered = (late_read & RF_PERMIT_READ) | (~late_read & RF_PERMIT_ORDERED);
    rf_lanes permissions = ~late_write & ((own & RF_PERMIT_WRITE) | (~own & ordered));
    rf_lanes_to_bytes(row_of(v, v->own, RF_PERMISSIONS) + at, permissions, width - at);
}

/* Reports the races of an access with what is known of its places, and fills the line. */
INLINE void check_line(struct view *v, struct rf_places places, const struct rf_access *access, uint32_t width, bool words)
{
    for (uint32_t at = 0; at < width; at += RF_LANES) {
        rf_lanes statuses = rf_lanes_of_bytes(row_of(v, v->own, RF_STATUSES) + at), late[RF_KINDS] = { { 0 }, { 0 } };
        look_at_hardware(v, at, late);
        look_at_software(v, at, width, statuses, words, late);
        rf_lanes races = access->write ? late[RF_WRITES] | late[RF_READS] : late[RF_WRITES];
        for (uint32_t i = 0; RF_RARELY(rf_lanes_are_set(races)) && i < RF_LANES; i++)
            if (races[i] && at + i - places.at < places.count)
                rf_report_place(v->radish, v->own, at + i, access);
        if (v->import && !at)
            import(v, width, words);
        set_new_permissions(v, at, width, raise_statuses(v, at, width, statuses, words), late);
    }
    rf_permissions_changed(v->radish, v->own);
}

/* The same for lines of any width. */
static RF_APART void check_places(struct view *v, struct rf_places places, const struct rf_access *access)
{
    check_line(v, places, access, rf_width(&v->radish->layout, v->own), false);
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
    if (RF_RARELY(uneven && !own->wide))
        rf_lines_widen(radish, own->number);
    struct rf_places places = rf_places_of(radish, own, cell, count);
    /* A time that has no clock gets one only while there are clocks to spare: to make room for the past would only bring the next
     * roll-over nearer. */
    v.import =
        RF_HOLDS(radish->broken, IMPORT) && rf_clocks_to_spare(&radish->contexts[own->slot]->clocks, radish->clock_limit);
    uint32_t width = rf_width(&radish->layout, own);
    if (!histories && v.first == own && !own->next) { /* nobody was here: what all of it comes to */
        memset(rf_row(&radish->layout, own, RF_STATUSES), RF_EVERYTHING, width);
        memset(rf_row(&radish->layout, own, RF_PERMISSIONS), RF_PERMIT_WRITE, width);
        rf_line_permits(radish, own);
    } else if (RF_MOSTLY(!own->wide) && rf_unit_bits(&radish->layout) == 3) {
        check_line(&v, places, access, rf_units(&radish->layout), true);
    } else {
        check_places(&v, places, access);
    }
    rf_software_spend(radish, runner,
                      (rf_cells(&radish->layout) + histories * (rf_cells(&radish->layout) / v.halves)) *
                          radish->config->entry_cycles);
}
