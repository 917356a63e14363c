/* See hardware/radish.h. */
#include "hardware/radish.h"

/* ---- what the other lines say ---- */

struct gathered {
    bool late_write, late_read;       /* by a thread that runs, and not before now */
    bool unknown_write, unknown_read; /* 9. */
    bool some_read;                   /* a last read that is before now */
    bool others;                      /* some line of another has a clock */
};

static struct gathered gather(struct rf_radish *radish, uint32_t core, struct rf_metadata *first, struct rf_metadata *own,
                              uint32_t cell)
{
    struct gathered found = { 0 };
    const uint64_t *clock = radish->cores[core].clock;
    for (struct rf_metadata *line = first; line; line = line->next) {
        uint8_t read = rf_reads(radish, line)[cell], write = rf_writes(radish, line)[cell];
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

/* The clocks of `count` cells, up to eight, are alike in each line. */
static bool clocks_even(const struct rf_radish *radish, struct rf_metadata *first, uint32_t cell, uint32_t count)
{
    for (struct rf_metadata *line = first; line; line = line->next)
        if (!rf_even(rf_reads(radish, line) + cell, count) || !rf_even(rf_writes(radish, line) + cell, count))
            return false;
    return true;
}

/* 3.2.4.2: when a line comes in, or its thread comes back. */
static void set_permissions(struct rf_radish *radish, uint32_t core, struct rf_metadata *own)
{
    uint8_t *permissions = rf_permissions(radish, own);
    const uint8_t *statuses = rf_statuses(radish, own);
    struct rf_metadata *first = rf_lines_of(radish, own->number);
    bool alone = first == own && !own->next;
    own->generation = radish->cores[core].generation;
    if (alone && rf_all_even(statuses, radish->cells)) {
        struct gathered nobody = { 0 };
        memset(permissions, (int)permission(radish, &nobody, *statuses), radish->cells);
        return;
    }
    for (uint32_t cell = 0, count; cell < radish->cells; cell += count) {
        struct gathered found = { 0 };
        count = cell % 8 == 0 && rf_even(statuses + cell, 8) && (alone || clocks_even(radish, first, cell, 8)) ? 8 : 1;
        if (!alone)
            found = gather(radish, core, first, own, cell);
        memset(permissions + cell, (int)permission(radish, &found, statuses[cell]), count);
    }
}

/* 8.: another core has permissions on the line. They would be lost if this one could write without a word. */
static bool on_shared(void *context, uint32_t core, uint64_t data_line)
{
    struct rf_radish *radish = context;
    uint64_t any = 0;
    if (data_line >= RF_SOFTWARE_LINES)
        return false;
    for (uint64_t number = data_line * 2; number < data_line * 2 + 2; number++)
        for (struct rf_metadata *line = rf_lines_of(radish, number); line; line = line->next)
            for (uint32_t cell = 0; line->core != core && cell < radish->cells; cell += 8)
                any |= rf_some_cells(rf_permissions(radish, line) + cell, 8);
    return any != 0;
}

/* What is left of the thread's own permission when it becomes the only holder of the data line. Nobody has written since the
 * permission was given (or it would be gone), but somebody may have read. */
static uint8_t after_reads(struct rf_radish *radish, uint32_t core, struct rf_metadata *first, struct rf_metadata *line,
                           uint32_t cell)
{
    uint8_t held = rf_permissions(radish, line)[cell], status = rf_statuses(radish, line)[cell];
    if (held <= RF_PERMIT_READ || !RF_HOLDS(radish->broken, OWN_DOWNGRADE))
        return held;
    struct gathered found = gather(radish, core, first, line, cell);
    if (held == RF_PERMIT_WRITE)
        return status == RF_EVERYTHING && !found.others ? RF_PERMIT_WRITE : RF_PERMIT_READ;
    return (status & RF_ALL_LAST_READS) && !found.late_read && !found.unknown_read ? RF_PERMIT_ORDERED : RF_PERMIT_READ;
}

/* 8.: a bus transaction has left this core alone with the data line. */
static void on_exclusive(void *context, uint32_t core, uint64_t data_line)
{
    struct rf_radish *radish = context;
    const struct rf_radish_core *owner = &radish->cores[core];
    if (data_line >= RF_SOFTWARE_LINES)
        return;
    for (uint64_t number = data_line * 2; number < data_line * 2 + 2; number++) {
        struct rf_metadata *first = rf_lines_of(radish, number);
        for (struct rf_metadata *line = first; line; line = line->next) {
            uint8_t *permissions = rf_permissions(radish, line);
            bool own = line->core == core && owner->thread && owner->slot == line->slot;
            if (!own && RF_HOLDS(radish->broken, REMOTE_DOWNGRADE))
                memset(permissions, RF_PERMIT_NONE, radish->cells);
            for (uint32_t cell = 0, count; own && cell < radish->cells; cell += count) {
                bool even = cell % 8 == 0 && rf_even(permissions + cell, 8) && rf_even(rf_statuses(radish, line) + cell, 8);
                count = even && (permissions[cell] <= RF_PERMIT_READ || clocks_even(radish, first, cell, 8)) ? 8 : 1;
                memset(permissions + cell, after_reads(radish, core, first, line, cell), count);
            }
        }
    }
}

/* The core's line for this number, from wherever it is; made if it is nowhere. */
static struct rf_metadata *fetch(struct rf_radish *radish, uint32_t core, uint64_t number, bool compact, uint32_t *cycles)
{
    const struct rf_radish_core *here = &radish->cores[core];
    uint64_t key = rf_metadata_key(radish, core, number);
    bool on_bus = radish->machine.bus;
    struct rf_metadata *line = rf_machine_metadata(&radish->machine, core, key, cycles);
    if (line) {
        if (line->generation != here->generation && RF_HOLDS(radish->broken, SWITCH_DOWNGRADE)) {
            radish->machine.traffic.broadcasts += !on_bus;
            set_permissions(radish, core, line);
        }
        return line;
    }
    rf_software_prefetch(radish, core, number, RF_ALL_SLOTS); /* what is in no cache will be asked of software */
    line = rf_line_new(radish, core, key, number);
    line->compact = compact;
    rf_machine_insert(&radish->machine, core, key, line);
    /* Only now: making room may have evicted a line of the same number. What is in no cache is in software. */
    struct rf_metadata *other = rf_lines_of(radish, number);
    if (other)
        memcpy(rf_statuses(radish, line), rf_statuses(radish, other), radish->cells);
    rf_line_link(radish, line);
    set_permissions(radish, core, line);
    radish->machine.traffic.broadcasts += !on_bus;
    return line;
}

/* ---- the three stages ---- */

static bool permitted(const struct rf_radish *radish, struct rf_metadata *line, uint32_t cell, uint32_t count, bool write)
{
    uint64_t bit = write && RF_HOLDS(radish->broken, PERMISSION_KIND) ? 2 : 1;
    uint64_t wanted = (RF_EACH_CELL * bit) & rf_cells_mask(count);
    return (rf_some_cells(rf_permissions(radish, line) + cell, count) & wanted) == wanted;
}

/* 3.3.6.2: the thread's own clocks, and nothing else. */
static void record_own(struct rf_radish *radish, struct rf_metadata *line, uint32_t cell, uint32_t count, bool write)
{
    struct rf_context *context = radish->contexts[line->slot];
    uint32_t clock = context->clocks.current;
    uint8_t *reads = rf_reads(radish, line) + cell, *writes = rf_writes(radish, line) + cell;
    if (write) {
        if (RF_HOLDS(radish->broken, RECORD_WRITE))
            rf_set_clocks(context, line, writes, count, clock);
        if (RF_HOLDS(radish->broken, WRITE_CLEARS_OWN_READ))
            rf_set_clocks(context, line, reads, count, 0);
    } else if (RF_HOLDS(radish->broken, RECORD_READ)) {
        rf_set_clocks(context, line, reads, count, clock);
    }
}

/* 3.2.4.1: after a checked write only this thread's clock is left, in hardware and in the whole system. */
static void record_checked(struct rf_radish *radish, struct rf_metadata *own, uint32_t cell, uint32_t count, bool write)
{
    struct rf_metadata *first = write ? rf_lines_of(radish, own->number) : NULL;
    for (struct rf_metadata *line = first; line; line = line->next) {
        uint8_t *reads = rf_reads(radish, line) + cell, *writes = rf_writes(radish, line) + cell;
        if (line != own && RF_HOLDS(radish->broken, WRITE_CLEARS_OTHERS)) {
            rf_set_clocks(radish->contexts[line->slot], line, reads, count, 0);
            rf_set_clocks(radish->contexts[line->slot], line, writes, count, 0);
        }
        if (RF_HOLDS(radish->broken, WRITE_SETS_STATUS))
            memset(rf_statuses(radish, line) + cell, RF_EVERYTHING, count);
    }
    record_own(radish, own, cell, count, write);
    if (write)
        memset(rf_permissions(radish, own) + cell, RF_PERMIT_WRITE, count);
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

void rf_report_cell(struct rf_radish *radish, const struct rf_metadata *line, uint32_t cell, const struct rf_access *access)
{
    uint64_t grain = line->compact ? 2 : 1, mask = radish->cells * grain - 1;
    uint64_t begin = access->addr - (access->physical & mask) + cell * grain;
    for (uint64_t addr = begin; addr < begin + grain; addr++)
        radish->race(radish->race_context, addr);
}

/* The hardware check of an access. MAYBE: nothing was done, and software must decide. */
static enum verdict check_in_hardware(struct rf_radish *radish, uint32_t core, struct rf_metadata *line, uint32_t cell,
                                      uint32_t count, const struct rf_access *access)
{
    struct rf_metadata *first = rf_lines_of(radish, line->number);
    const uint8_t *statuses = rf_statuses(radish, line);
    enum verdict verdicts[8], worst = SAFE;
    uint8_t permissions[8];
    bool once = rf_even(rf_permissions(radish, line) + cell, count) && rf_even(statuses + cell, count) &&
                clocks_even(radish, first, cell, count); /* then one answer holds for all */
    for (uint32_t i = 0; i < count; i++) {
        if (once && i) {
            verdicts[i] = verdicts[0];
            permissions[i] = permissions[0];
            continue;
        }
        struct gathered found = gather(radish, core, first, line, cell + i);
        verdicts[i] = access->write && rf_permissions(radish, line)[cell + i] == RF_PERMIT_ORDERED
                          ? SAFE /* 6. */
                          : check_cell(radish, &found, statuses[cell + i], access->write);
        bool alone = statuses[cell + i] == RF_EVERYTHING && !found.others;
        permissions[i] = alone ? RF_PERMIT_WRITE : RF_PERMIT_READ;
        worst = verdicts[i] > worst ? verdicts[i] : worst;
    }
    if (worst == MAYBE)
        return MAYBE;
    for (uint32_t i = 0; i < count; i++) {
        if (verdicts[i] == RACE)
            rf_report_cell(radish, line, cell + i, access);
        if (!access->write)
            rf_permissions(radish, line)[cell + i] = verdicts[i] == RACE ? RF_PERMIT_NONE : permissions[i];
    }
    record_checked(radish, line, cell, count, access->write);
    return worst;
}

/* A clock for now. Before the line is fetched, since it may be among those that a roll-over evicts. */
static void choose_clock(struct rf_radish *radish, uint32_t core)
{
    const struct rf_radish_core *here = &radish->cores[core];
    struct rf_clock_table *table = &rf_context_of(radish, here->slot)->clocks;
    uint64_t now = rf_epoch_time(here->thread->epoch);
    if (__builtin_expect(table->current && table->times[table->current] == now, 1))
        return;
    table->current = 0;
    table->current = rf_clock_for(table, now, radish->clock_limit, radish->broken);
    if (table->current)
        return;
    if (RF_HOLDS(radish->broken, ROLL_OVER)) {
        rf_roll_over(radish, core);
        table->current = rf_clock_for(table, now, radish->clock_limit, radish->broken);
    } else {
        table->current = 1;
        table->times[1] = now;
    }
}

/* Figure 3.5. */
void rf_radish_access(struct rf_radish *radish, uint32_t core, const struct rf_access *access)
{
    struct rf_machine *machine = &radish->machine;
    uint32_t data = rf_machine_access(machine, core, access->physical >> machine->line_bits, access->write), metadata = 0;
    bool on_bus = machine->bus, compact;
    if (!access->tracked || access->frame->race_free) {
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
    uint32_t cell = (uint32_t)(access->physical & (radish->config->line_bytes / (compact ? 1 : 2) - 1)) >> compact;
    uint32_t count = access->size >> compact;
    struct rf_metadata *line = fetch(radish, core, number, compact, &metadata);
    rf_charge(radish, core, (data > metadata ? data : metadata) + radish->config->work_cycles);
    if (__builtin_expect(permitted(radish, line, cell, count, access->write), 1)) {
        record_own(radish, line, cell, count, access->write);
        radish->counts.checks.permission++;
    } else {
        if (!on_bus) {
            rf_charge(radish, core, radish->config->bus_cycles);
            machine->traffic.broadcasts++;
        }
        if (check_in_hardware(radish, core, line, cell, count, access) != MAYBE) {
            radish->counts.checks.hardware++;
        } else {
            radish->counts.checks.software++;
            rf_software_check(radish, core, line, cell, count, access);
            record_checked(radish, line, cell, count, access->write);
        }
    }
    if (__builtin_expect(radish->software.waiting > radish->config->buffer_lines, 0))
        rf_software_drain(radish, core);
}

/* ---- threads ---- */

static void bring_clock(struct rf_radish *radish, uint32_t core, uint32_t other)
{
    const struct rf_radish_core *there = &radish->cores[other];
    struct rf_radish_core *here = &radish->cores[core];
    if (here->thread && there->thread)
        here->clock[other] = rf_clock_get(&here->thread->clock, there->slot);
}

void rf_radish_synchronised(struct rf_radish *radish, uint32_t core)
{
    for (uint32_t other = 0; other < radish->config->cores && RF_HOLDS(radish->broken, SYNC_CLOCKS); other++)
        bring_clock(radish, core, other);
}

/* 3.2.6. The kernel's work is charged by whoever switches. */
void rf_radish_switch(struct rf_radish *radish, uint32_t core, struct rf_thread *thread)
{
    struct rf_radish_core *here = &radish->cores[core];
    if (here->thread && radish->config->flush == RF_FLUSH_EAGER && RF_HOLDS(radish->broken, EAGER_FLUSH)) {
        rf_flush_slot(radish, here->slot);
        rf_software_drain(radish, core);
    }
    here->thread = thread;
    here->generation = ++radish->generation;
    if (!thread)
        return;
    here->slot = thread->slot;
    rf_context_of(radish, here->slot);
    for (uint32_t other = 0; other < radish->config->cores; other++) {
        bring_clock(radish, core, other);
        if (RF_HOLDS(radish->broken, SWITCH_CLOCKS))
            bring_clock(radish, other, core);
    }
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
    radish->cells = (uint32_t)config->line_bytes / 2;
    radish->clock_limit = 1u << config->clock_bits;
    rf_pool_init(&radish->line_pool, sizeof(struct rf_metadata) + 4 * (size_t)radish->cells + 8);
    rf_pool_init(&radish->software.histories, rf_history_bytes(radish->cells));
    rf_machine_init(&radish->machine, config, broken);
    radish->machine.exclusive = on_exclusive;
    radish->machine.shared = on_shared;
    radish->machine.evicted = rf_line_evicted;
    radish->machine.context = radish;
}

void rf_radish_free(struct rf_radish *radish)
{
    rf_machine_free(&radish->machine);
}
