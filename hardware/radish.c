/* See hardware/radish.h. */
#include "hardware/radish.h"

#include "hardware/large.h"

/* ---- what the other lines say ---- */

struct gathered {
    bool late_write, late_read;       /* by a thread that runs, and not before now */
    bool unknown_write, unknown_read; /* 9. */
    bool some_read;                   /* a last read that is before now */
    bool others;                      /* some line of another has a clock */
};

/* Nearly no line is wide. The functions that have `wide` are compiled for the others by themselves: what these do is short. */
#define INLINE static inline __attribute__((always_inline))

INLINE struct gathered gather_if(struct rf_radish *radish, uint32_t core, struct rf_metadata *first, struct rf_metadata *own,
                                 bool wide, uint32_t place)
{
    struct gathered found = { 0 };
    const uint64_t *clock = radish->cores[core].clock;
    size_t reads = rf_row_offset(&radish->layout, wide, RF_READ_CLOCKS) + place;
    size_t writes = rf_row_offset(&radish->layout, wide, RF_WRITE_CLOCKS) + place;
    for (struct rf_metadata *line = first; line; line = line->next) {
        const uint8_t *rows = rf_rows_if(&radish->layout, line, wide);
        uint8_t read = rows[reads], write = rows[writes];
        if (line == own) {
            found.some_read |= read != 0;
            continue;
        }
        if (!read && !write)
            continue;
        found.others = true;
        if (!rf_line_is_live(radish, line) && RF_HOLDS(radish->broken, STRANGERS)) {
            found.unknown_write |= write != 0;
            found.unknown_read |= read != 0;
            continue;
        }
        found.late_write |= rf_time_of(radish, line, write) > clock[line->core];
        if (read && rf_time_of(radish, line, read) > clock[line->core])
            found.late_read = true;
        else if (read)
            found.some_read = true;
    }
    if (!RF_HOLDS(radish->broken, SOME_READ_ORDERED))
        found.some_read |= found.late_read;
    return found;
}

static RF_APART struct gathered gather(struct rf_radish *radish, uint32_t core, struct rf_metadata *first,
                                       struct rf_metadata *own, uint32_t place)
{
    return gather_if(radish, core, first, own, own->wide, place);
}

/* 5. and 7., from what hardware knows. */
static enum rf_permission permission(const struct rf_radish *radish, const struct gathered *found, uint8_t status)
{
    if (!(status & RF_LAST_WRITE) && RF_HOLDS(radish->broken, FILL_STATUS))
        return RF_PERMIT_NONE;
    if ((found->late_write || found->unknown_write) && RF_HOLDS(radish->broken, FILL_ORDER))
        return RF_PERMIT_NONE;
    bool everything = status == RF_EVERYTHING || !RF_HOLDS(radish->broken, FILL_STATUS);
    bool alone = !found->others || !RF_HOLDS(radish->broken, FILL_ORDER);
    if (!RF_HOLDS(radish->broken, WRITE_ALONE))
        alone |= !found->late_read && !found->unknown_read; /* the rule of 3.2.4.2 */
    return everything && alone ? RF_PERMIT_WRITE : RF_PERMIT_READ;
}

/* The clocks of `count` places, up to eight, are alike in each line. */
static bool clocks_even(const struct rf_radish *radish, struct rf_metadata *first, uint32_t place, uint32_t count)
{
    for (struct rf_metadata *line = first; RF_RARELY(line && count > 1); line = line->next)
        if (!rf_even(rf_row(&radish->layout, line, RF_READ_CLOCKS) + place, count) ||
            !rf_even(rf_row(&radish->layout, line, RF_WRITE_CLOCKS) + place, count))
            return false;
    return true;
}

/* 3.2.4.2: when a line comes in, or its thread comes back. */
/* No line of another has a clock. */
static bool others_are_empty(const struct rf_radish *radish, struct rf_metadata *first, const struct rf_metadata *own)
{
    uint64_t any = 0;
    for (struct rf_metadata *line = first; line; line = line->next) {
        const uint8_t *clocks = rf_row(&radish->layout, line, RF_READ_CLOCKS); /* and those of writes behind them */
        uint32_t count = line != own ? 2 * rf_width(&radish->layout, line) : 0;
        for (uint32_t at = 0; at < count; at += 8)
            any |= rf_some_cells(clocks + at, rf_up_to_eight(count, at));
    }
    return !any;
}

static void set_permissions(struct rf_radish *radish, uint32_t core, struct rf_metadata *own)
{
    uint8_t *permissions = rf_row(&radish->layout, own, RF_PERMISSIONS);
    const uint8_t *statuses = rf_row(&radish->layout, own, RF_STATUSES);
    struct rf_metadata *first = rf_lines_of(radish, own->number);
    uint32_t width = rf_width(&radish->layout, own);
    bool alone = others_are_empty(radish, first, own);
    own->generation = radish->cores[core].generation;
    if (alone && rf_all_even(statuses, width)) {
        struct gathered nobody = { 0 };
        memset(permissions, (int)permission(radish, &nobody, *statuses), width);
        rf_permissions_changed(radish, own);
        return;
    }
    for (uint32_t at = 0, count; at < width; at += count) {
        struct gathered found = { 0 };
        bool even =
            RF_RARELY(own->wide) && at % 8 == 0 && rf_even(statuses + at, 8) && (alone || clocks_even(radish, first, at, 8));
        count = even ? 8 : 1;
        if (!alone)
            found = gather(radish, core, first, own, at);
        rf_set_places(permissions + at, count, permission(radish, &found, statuses[at]));
    }
    rf_permissions_changed(radish, own);
}

/* Which cores have permissions on half a line of data. */
static uint64_t permitting(const struct rf_radish *radish, uint64_t number)
{
    return RF_MOSTLY(number < radish->software.record_cap) ? rf_record_at(&radish->software, number)->permitting : 0;
}

/* 8.: another core has permissions on the line. They would be lost if this one could write without a word. */
static bool on_shared(void *context, uint32_t core, uint64_t data_line)
{
    const struct rf_radish *radish = context;
    uint64_t all = permitting(radish, data_line * 2) | permitting(radish, data_line * 2 + 1);
    return (all & ~(UINT64_C(1) << core)) != 0;
}

/* What is left of the thread's own permissions on up to eight places when it becomes the only holder of the data line. Nobody has written
 * since they were given (or they would be gone), but somebody may have read. */
INLINE uint64_t after_reads(struct rf_radish *radish, uint32_t core, struct rf_metadata *first, struct rf_metadata *line,
                            bool wide, uint32_t at, uint32_t some)
{
    const struct rf_layout *layout = &radish->layout;
    uint64_t held = rf_some_cells(rf_row_if(layout, line, wide, RF_PERMISSIONS) + at, some);
    uint64_t status = rf_some_cells(rf_row_if(layout, line, wide, RF_STATUSES) + at, some), reads = 0, writes = 0;
    uint64_t write = held / (RF_PERMIT_WRITE - RF_PERMIT_READ) & RF_EACH_CELL; /* who has WRITE, and who has ORDERED */
    uint64_t ordered = held / (RF_PERMIT_ORDERED - RF_PERMIT_READ) & RF_EACH_CELL;
    if (!(write | ordered) || !RF_HOLDS(radish->broken, OWN_DOWNGRADE))
        return held;
    for (struct rf_metadata *other = first; other; other = other->next) {
        if (other == line)
            continue;
        reads |= rf_some_cells(rf_row_if(layout, other, wide, RF_READ_CLOCKS) + at, some);
        writes |= rf_some_cells(rf_row_if(layout, other, wide, RF_WRITE_CLOCKS) + at, some);
    }
    uint64_t all_reads = status / RF_ALL_LAST_READS & RF_EACH_CELL;
    uint64_t keeps = (write & all_reads & status & ~rf_not_zero(reads | writes)) | (ordered & all_reads);
    for (uint64_t left = ordered & keeps & rf_not_zero(reads); RF_RARELY(left); left &= left - 1) {
        uint32_t bit = (uint32_t)__builtin_ctzll(left);
        struct gathered found = gather(radish, core, first, line, at + bit / 8);
        keeps &= ~((uint64_t)(found.late_read || found.unknown_read) << bit);
    }
    return held & ~(((write | ordered) & ~keeps) * ((RF_PERMIT_WRITE | RF_PERMIT_ORDERED) - RF_PERMIT_READ));
}

/* What is left of a line's permissions then: the owner's some, others' none. */
INLINE void downgrade(struct rf_radish *radish, uint32_t core, struct rf_metadata *first, struct rf_metadata *line,
                      bool wide, bool own)
{
    uint8_t *permissions = rf_row_if(&radish->layout, line, wide, RF_PERMISSIONS);
    uint32_t width = wide ? rf_cells(&radish->layout) : rf_units(&radish->layout);
    for (uint32_t at = 0; at < width; at += 8) {
        uint32_t some = rf_up_to_eight(width, at);
        rf_put_cells(permissions + at, some, own ? after_reads(radish, core, first, line, wide, at, some) : 0);
    }
}

static RF_APART void downgrade_wide(struct rf_radish *radish, uint32_t core, struct rf_metadata *first,
                                    struct rf_metadata *line, bool own)
{
    downgrade(radish, core, first, line, true, own);
}

/* 8.: a bus transaction has left this core alone with the data line. */
static void on_exclusive(void *context, uint32_t core, uint64_t data_line)
{
    struct rf_radish *radish = context;
    const struct rf_radish_core *owner = &radish->cores[core];
    for (uint64_t number = data_line * 2; number < data_line * 2 + 2; number++) {
        if (!permitting(radish, number))
            continue;
        struct rf_metadata *first = rf_lines_of(radish, number);
        for (struct rf_metadata *line = first; line; line = line->next) {
            bool own = line->core == core && RF_MOSTLY(owner->thread && owner->slot == line->slot);
            if (!own && !RF_HOLDS(radish->broken, REMOTE_DOWNGRADE))
                continue;
            if (RF_RARELY(line->wide))
                downgrade_wide(radish, core, first, line, own);
            else
                downgrade(radish, core, first, line, false, own);
            if (!own)
                rf_line_permits_nothing(radish, line);
        }
    }
}

/* The core's line for this number, from wherever it is; made if it is nowhere. */
static struct rf_metadata *fetch(struct rf_radish *radish, uint32_t core, uint64_t number, bool compact, uint32_t *cycles)
{
    const struct rf_radish_core *here = &radish->cores[core];
    bool on_bus = radish->machine.bus;
    struct rf_metadata *line = rf_line_of(radish, core, number);
    if (line) {
        *cycles += rf_machine_metadata(&radish->machine, line);
        if (RF_RARELY(line->generation != here->generation) && RF_HOLDS(radish->broken, SWITCH_DOWNGRADE)) {
            radish->machine.traffic.broadcasts += !on_bus;
            set_permissions(radish, core, line);
        }
        return line;
    }
    *cycles += (uint32_t)radish->config->llc_cycles; /* to find that out */
    line = rf_line_new(radish, core, number);
    line->compact = compact;
    rf_machine_insert(&radish->machine, line);
    /* Only now: making room may have evicted a line of the same number. What is in no cache is in software. */
    struct rf_metadata *other = rf_lines_of(radish, number);
    if (other) {
        if (RF_RARELY(other->wide))
            rf_line_widen(radish, line);
        memcpy(rf_row(&radish->layout, line, RF_STATUSES), rf_row(&radish->layout, other, RF_STATUSES),
               rf_width(&radish->layout, line));
    }
    rf_line_link(radish, line);
    set_permissions(radish, core, line);
    radish->machine.traffic.broadcasts += !on_bus;
    return line;
}

/* ---- the three stages ---- */

INLINE bool permitted(const struct rf_radish *radish, struct rf_metadata *line, bool wide, struct rf_places places,
                      bool write)
{
    uint64_t bit = write && RF_HOLDS(radish->broken, PERMISSION_KIND) ? 2 : 1;
    uint64_t wanted = (RF_EACH_CELL * bit) & rf_cells_mask(places.count);
    const uint8_t *permissions = rf_row_if(&radish->layout, line, wide, RF_PERMISSIONS) + places.at;
    return (rf_some_cells(permissions, places.count) & wanted) == wanted;
}

/* 3.3.6.2: the thread's own clocks, and nothing else. */
INLINE void record_own(struct rf_radish *radish, struct rf_metadata *line, bool wide, struct rf_places places, bool write)
{
    struct rf_context *context = radish->contexts[line->slot];
    uint32_t clock = context->clocks.current, shift = wide ? 0 : rf_unit_bits(&radish->layout);
    uint8_t *reads = rf_row_if(&radish->layout, line, wide, RF_READ_CLOCKS) + places.at;
    uint8_t *writes = rf_row_if(&radish->layout, line, wide, RF_WRITE_CLOCKS) + places.at;
    if (RF_MOSTLY(places.count == 1) && (write ? *writes == clock && !*reads : *reads == clock))
        return; /* nothing is new */
    if (write) {
        if (RF_HOLDS(radish->broken, RECORD_WRITE))
            rf_set_clocks(context, line, writes, shift, places.count, clock);
        if (RF_HOLDS(radish->broken, WRITE_CLEARS_OWN_READ))
            rf_set_clocks(context, line, reads, shift, places.count, 0);
    } else if (RF_HOLDS(radish->broken, RECORD_READ)) {
        rf_set_clocks(context, line, reads, shift, places.count, clock);
    }
}

/* 3.2.4.1: after a checked write only this thread's clock is left, in hardware and in the whole system. */
INLINE void record_checked(struct rf_radish *radish, struct rf_metadata *own, bool wide, struct rf_places places, bool write)
{
    struct rf_metadata *first = write ? rf_lines_of(radish, own->number) : NULL;
    uint32_t shift = wide ? 0 : rf_unit_bits(&radish->layout);
    for (struct rf_metadata *line = first; line; line = line->next) {
        uint8_t *reads = rf_row_if(&radish->layout, line, wide, RF_READ_CLOCKS) + places.at;
        uint8_t *writes = rf_row_if(&radish->layout, line, wide, RF_WRITE_CLOCKS) + places.at;
        if (line != own && RF_HOLDS(radish->broken, WRITE_CLEARS_OTHERS)) {
            rf_set_clocks(radish->contexts[line->slot], line, reads, shift, places.count, 0);
            rf_set_clocks(radish->contexts[line->slot], line, writes, shift, places.count, 0);
        }
        if (RF_HOLDS(radish->broken, WRITE_SETS_STATUS))
            rf_set_places(rf_row_if(&radish->layout, line, wide, RF_STATUSES) + places.at, places.count, RF_EVERYTHING);
    }
    record_own(radish, own, wide, places, write);
    if (write) {
        rf_set_places(rf_row_if(&radish->layout, own, wide, RF_PERMISSIONS) + places.at, places.count, RF_PERMIT_WRITE);
        rf_line_permits(radish, own);
    }
}

enum verdict { SAFE, RACE, MAYBE };

/* 3.2.5. A clock in hardware is never superseded (2. and 3.), so one that is late is a race whatever software knows. */
static enum verdict check_cell(const struct rf_radish *radish, const struct gathered *found, uint8_t status, bool write)
{
    uint64_t broken = radish->broken;
    if (!write) {
        if (found->late_write && RF_HOLDS(broken, CHECK_READ_ORDER))
            return RACE;
        bool last_write = (status & RF_LAST_WRITE) || !RF_HOLDS(broken, CHECK_READ_STATUS);
        return (last_write && !found->unknown_write) || found->some_read ? SAFE : MAYBE;
    }
    if ((found->late_write && RF_HOLDS(broken, CHECK_WRITE_WRITES)) ||
        (found->late_read && RF_HOLDS(broken, CHECK_WRITE_READS)))
        return RACE;
    bool everything = status == RF_EVERYTHING || !RF_HOLDS(broken, CHECK_WRITE_STATUS);
    return everything && !found->unknown_write && !found->unknown_read ? SAFE : MAYBE;
}

RF_APART void rf_report_place(struct rf_radish *radish, const struct rf_metadata *line, uint32_t place,
                              const struct rf_access *access)
{
    uint64_t grain = rf_is_compact(line) ? 2 : 1, mask = rf_cells(&radish->layout) * grain - 1;
    uint32_t shift = rf_shift(&radish->layout, line);
    uint64_t begin = access->addr - (access->physical & mask) + ((uint64_t)place << shift) * grain;
    for (uint64_t addr = begin; addr < begin + (grain << shift); addr++)
        radish->race(radish->race_context, addr);
}

/* The hardware check of an access. MAYBE: nothing was done, and software must decide. */
INLINE enum verdict check_in_hardware(struct rf_radish *radish, uint32_t core, struct rf_metadata *line, bool wide,
                                      struct rf_places places, const struct rf_access *access)
{
    struct rf_metadata *first = rf_lines_of(radish, line->number);
    const uint8_t *statuses = rf_row_if(&radish->layout, line, wide, RF_STATUSES) + places.at;
    uint8_t *held = rf_row_if(&radish->layout, line, wide, RF_PERMISSIONS) + places.at, permissions[8];
    enum verdict verdicts[8], worst = SAFE;
    bool once = RF_RARELY(places.count > 1) && rf_even(held, places.count) && rf_even(statuses, places.count) &&
                clocks_even(radish, first, places.at, places.count); /* then one answer holds for all */
    for (uint32_t i = 0; i < places.count; i++) {
        if (once && i) {
            verdicts[i] = verdicts[0];
            permissions[i] = permissions[0];
            continue;
        }
        struct gathered found = gather_if(radish, core, first, line, wide, places.at + i);
        verdicts[i] = access->write && held[i] == RF_PERMIT_ORDERED ? SAFE /* 6. */
                                                                    : check_cell(radish, &found, statuses[i], access->write);
        bool alone = statuses[i] == RF_EVERYTHING && !found.others;
        permissions[i] = alone ? RF_PERMIT_WRITE : RF_PERMIT_READ;
        worst = verdicts[i] > worst ? verdicts[i] : worst;
    }
    if (worst == MAYBE)
        return MAYBE;
    for (uint32_t i = 0; i < places.count; i++) {
        if (RF_RARELY(verdicts[i] == RACE))
            rf_report_place(radish, line, places.at + i, access);
        if (!access->write)
            held[i] = verdicts[i] == RACE ? RF_PERMIT_NONE : permissions[i];
    }
    if (!access->write)
        rf_permissions_changed(radish, line);
    record_checked(radish, line, wide, places, access->write);
    return worst;
}

/* A clock for a time that has none. */
static RF_APART void new_clock(struct rf_radish *radish, uint32_t core, struct rf_clock_table *table, uint64_t now)
{
    table->current = 0;
    table->current = rf_clock_for(table, now, radish->clock_limit, radish->broken);
    if (table->current)
        return;
    if (RF_HOLDS(radish->broken, ROLL_OVER)) {
        rf_roll_over(radish, core);
        table->current = rf_clock_for(table, now, radish->clock_limit, radish->broken);
    } else {
        table->current = 1;
        rf_clock_assign(table, 1, now);
    }
}

/* A clock for now. Before the line is fetched, since it may be among those that a roll-over evicts. */
static void choose_clock(struct rf_radish *radish, uint32_t core)
{
    const struct rf_radish_core *here = &radish->cores[core];
    struct rf_clock_table *table = &rf_context_of(radish, here->slot)->clocks;
    uint64_t now = rf_epoch_time(here->thread->epoch);
    if (!__builtin_expect(table->current && table->times[table->current] == now, 1))
        new_clock(radish, core, table, now);
}

/* The line has become wide in the software layer. */
static RF_APART void record_widened(struct rf_radish *radish, struct rf_metadata *line, uint32_t cell, uint32_t count,
                                    const struct rf_access *access)
{
    record_checked(radish, line, true, rf_places_of(radish, line, cell, count), access->write);
}

/* The three stages for places of the core's line. */
INLINE void check(struct rf_radish *radish, uint32_t core, struct rf_metadata *line, bool wide, struct rf_places places,
                  const struct rf_access *access, bool on_bus, uint32_t cell, uint32_t count)
{
    if (__builtin_expect(permitted(radish, line, wide, places, access->write), 1)) {
        record_own(radish, line, wide, places, access->write);
        radish->counts.checks.permission++;
        return;
    }
    if (!on_bus) {
        rf_charge(radish, core, radish->config->bus_cycles);
        radish->machine.traffic.broadcasts++;
    }
    if (check_in_hardware(radish, core, line, wide, places, access) != MAYBE) {
        radish->counts.checks.hardware++;
        return;
    }
    radish->counts.checks.software++;
    rf_software_check(radish, core, line, cell, count, access);
    if (RF_MOSTLY(line->wide == wide))
        record_checked(radish, line, wide, places, access->write);
    else
        record_widened(radish, line, cell, count, access);
}

static RF_APART void check_wide(struct rf_radish *radish, uint32_t core, struct rf_metadata *line, struct rf_places places,
                                const struct rf_access *access, bool on_bus, uint32_t cell, uint32_t count)
{
    check(radish, core, line, true, places, access, on_bus, cell, count);
}

/* Figure 3.5. */
void rf_radish_access(struct rf_radish *radish, uint32_t core, const struct rf_access *access)
{
    struct rf_machine *machine = &radish->machine;
    uint32_t data = rf_machine_access(machine, core, access->physical >> rf_line_bits(machine), access->write), metadata = 0;
    bool on_bus = machine->bus, compact;
    if (RF_RARELY(!access->tracked)) {
        radish->counts.checks.untracked++;
        rf_charge(radish, core, data + radish->config->work_cycles);
        return;
    }
    choose_clock(radish, core);
    uint64_t number = rf_number_of(radish, access->frame, access->physical, &compact);
    if (compact && ((access->physical | access->size) & 1)) {
        rf_split_line(radish, access->frame, access->physical);
        number = rf_number_of(radish, access->frame, access->physical, &compact);
    }
    uint32_t cell = (uint32_t)(access->physical & (rf_cells(&radish->layout) * (compact ? 2 : 1) - 1)) >> compact;
    uint32_t count = access->size >> compact;
    struct rf_metadata *line = fetch(radish, core, number, compact, &metadata);
    rf_charge(radish, core, (data > metadata ? data : metadata) + radish->config->work_cycles);
    struct rf_places places = rf_places_of(radish, line, cell, count);
    if (RF_RARELY(line->wide)) {
        check_wide(radish, core, line, places, access, on_bus, cell, count);
    } else {
        if (RF_USUAL) /* an access is inside a granule (core/event.h, 1.), which is a unit there: so it is one place, and no loop */
            places.count = 1;
        check(radish, core, line, false, places, access, on_bus, cell, count);
    }
    if (__builtin_expect(radish->software.waiting > radish->config->buffer_lines, 0))
        rf_software_drain(radish, core);
}

/* ---- threads ---- */

static void bring_clock(struct rf_radish *radish, uint32_t core, uint32_t other)
{
    const struct rf_radish_core *there = &radish->cores[other];
    struct rf_radish_core *here = &radish->cores[core];
    if (RF_MOSTLY(here->thread && there->thread))
        here->clock[other] = rf_clock_get(&here->thread->clock, there->slot);
}

void rf_radish_synchronised(struct rf_radish *radish, uint32_t core)
{
    for (uint64_t left = RF_HOLDS(radish->broken, SYNC_CLOCKS) ? radish->busy : 0; left; left &= left - 1)
        bring_clock(radish, core, (uint32_t)__builtin_ctzll(left));
}

/* 3.2.6. The kernel's work is charged by whoever switches. */
RF_APART void rf_radish_switch(struct rf_radish *radish, uint32_t core, struct rf_thread *thread)
{
    struct rf_radish_core *here = &radish->cores[core];
    if (here->thread && radish->config->flush == RF_FLUSH_EAGER && RF_HOLDS(radish->broken, EAGER_FLUSH)) {
        rf_flush_slot(radish, here->slot);
        rf_software_drain(radish, core);
    }
    here->thread = thread;
    here->mixed |= here->generation && thread && thread->slot != here->slot;
    here->generation = ++radish->generation;
    radish->busy &= ~(UINT64_C(1) << core);
    if (!thread)
        return;
    radish->busy |= UINT64_C(1) << core;
    here->slot = thread->slot;
    rf_context_of(radish, here->slot);
    for (uint32_t other = 0; other < radish->config->cores; other++) {
        bring_clock(radish, core, other);
        if (RF_HOLDS(radish->broken, SWITCH_CLOCKS))
            bring_clock(radish, other, core);
    }
}

void rf_radish_attach(struct rf_radish *radish)
{
    radish->machine.exclusive = on_exclusive;
    radish->machine.shared = on_shared;
    radish->machine.evicted = rf_line_evicted;
    radish->machine.context = radish;
}

/* A cached line has a place in the last level, so there are no more lines than places, and one that is being made. */
static size_t line_bytes(const struct rf_radish *radish)
{
    const struct rf_cache *llc = &radish->machine.llc;
    return (((llc->mask + 1) << llc->shift) + 1) * sizeof(struct rf_metadata);
}

static void make_lines(struct rf_radish *radish)
{
    struct rf_pool *pool = &radish->line_pool;
    radish->machine.lines = rf_large_take(line_bytes(radish));
    rf_pool_init(pool, sizeof(struct rf_metadata), sizeof(struct rf_metadata));
    pool->next = (char *)radish->machine.lines;
    pool->end = pool->next + line_bytes(radish);
}

void rf_radish_init(struct rf_radish *radish, const struct rf_config *config, uint64_t broken, struct rf_memory *memory,
                    struct rf_order *order, struct rf_pages *pages, uint64_t *times)
{
    memset(radish, 0, sizeof *radish);
    radish->config = config;
    radish->broken = broken;
    radish->memory = memory;
    radish->order = order;
    radish->pages = pages;
    radish->times = times;
    radish->clock_limit = 1u << config->clock_bits;
    radish->layout = (struct rf_layout){ .cells = (uint32_t)config->line_bytes / 2,
                                         .unit_bits = config->encoding == RF_ENCODING_COMPACT ? 2 : 3 };
    radish->layout.units = radish->layout.cells >> radish->layout.unit_bits;
    rf_pool_init(&radish->many_pool, rf_many_bytes(&radish->layout), RF_ROWS * rf_units(&radish->layout));
    size_t pair = 2 * rf_history_bytes(radish->layout.cells);
    rf_pool_init(&radish->software.histories, pair, pair);
    rf_pool_init(&radish->user_pool, sizeof(struct rf_users_chunk), 0);
    rf_pool_init(&radish->software.evicted, rf_evicted_bytes(&radish->layout), 0);
    rf_machine_init(&radish->machine, config, broken);
    make_lines(radish);
    rf_radish_attach(radish);
}

void rf_radish_free(struct rf_radish *radish)
{
    rf_large_give(radish->machine.lines, line_bytes(radish));
    rf_machine_free(&radish->machine);
}
