/* See hardware/radish.h. */
#include "hardware/radish.h"

/* ---- lines ---- */

static struct rf_context *context_of(struct rf_radish *radish, uint32_t slot)
{
    radish->contexts = rf_grow(radish->memory, radish->contexts, &radish->context_cap, (size_t)slot + 1, sizeof(void *));
    if (!radish->contexts[slot])
        radish->contexts[slot] = rf_alloc(radish->memory, sizeof **radish->contexts);
    return radish->contexts[slot];
}

static size_t line_size(const struct rf_radish *radish)
{
    return sizeof(struct rf_metadata) + 4 * (size_t)radish->cells + 8;
}

void rf_set_clock(struct rf_radish *radish, struct rf_metadata *line, uint8_t *cell, uint32_t clock)
{
    struct rf_context *context = radish->contexts[line->slot];
    if (*cell == clock)
        return;
    context->clocks.references[*cell]--;
    context->clocks.references[clock]++; /* of clock 0 nobody asks */
    context->used[line->place] |= UINT64_C(1) << clock;
    *cell = (uint8_t)clock;
}

static void link_line(struct rf_radish *radish, struct rf_metadata *line)
{
    struct rf_context *context = context_of(radish, line->slot);
    radish->lines = rf_grow(radish->memory, radish->lines, &radish->line_cap, (size_t)line->number + 1, sizeof line);
    line->next = radish->lines[line->number];
    radish->lines[line->number] = line;
    context->lines = rf_grow(radish->memory, context->lines, &context->cap, context->count + 1, sizeof line);
    context->used = rf_grow(radish->memory, context->used, &context->used_cap, context->count + 1, sizeof *context->used);
    context->lines[context->count] = line;
    context->used[context->count] = 0;
    line->place = context->count++;
}

static void unlink_line(struct rf_radish *radish, struct rf_metadata *line)
{
    struct rf_metadata **place = &radish->lines[line->number];
    while (*place != line)
        place = &(*place)->next;
    *place = line->next;
    struct rf_context *context = radish->contexts[line->slot];
    struct rf_metadata *last = context->lines[--context->count];
    context->lines[line->place] = last;
    context->used[line->place] = context->used[last->place];
    last->place = line->place;
}

/* Figure 3.4: what `gone` has clocks for is not in hardware any more. */
static void downgrade_status(struct rf_radish *radish, struct rf_metadata *line, struct rf_metadata *gone)
{
    const uint8_t *reads = rf_reads(radish, gone), *writes = rf_writes(radish, gone);
    uint8_t *statuses = rf_statuses(radish, line);
    for (uint32_t cell = 0; cell < radish->cells; cell++) {
        if (reads[cell] && RF_HOLDS(radish->broken, EVICT_READS))
            statuses[cell] &= (uint8_t)~RF_ALL_LAST_READS;
        if (writes[cell] && RF_HOLDS(radish->broken, EVICT_WRITE))
            statuses[cell] &= (uint8_t)~RF_LAST_WRITE;
    }
}

/* The broadcast hides behind the miss that caused the eviction. True: the line had clocks. */
static bool downgrade_statuses(struct rf_radish *radish, struct rf_metadata *line)
{
    bool clocks = false;
    for (uint32_t i = 0; i < 2 * radish->cells; i++) /* reads, then writes */
        clocks |= rf_reads(radish, line)[i] != 0;
    for (struct rf_metadata *other = clocks ? rf_lines_of(radish, line->number) : NULL; other; other = other->next)
        if (other != line)
            downgrade_status(radish, other, line);
    radish->machine.traffic.broadcasts += clocks;
    return clocks;
}

/* The line is in no cache any more. */
static void line_gone(struct rf_radish *radish, struct rf_metadata *line, bool persist)
{
    radish->machine.traffic.metadata_evictions++;
    if (downgrade_statuses(radish, line)) {
        if (persist)
            rf_software_evicted(radish, line);
        for (uint32_t i = 0; i < 2 * radish->cells; i++)
            radish->contexts[line->slot]->clocks.references[rf_reads(radish, line)[i]]--;
    }
    unlink_line(radish, line);
    rf_free(radish->memory, line, line_size(radish));
}

static void on_evicted(void *radish, struct rf_metadata *line)
{
    line_gone(radish, line, true);
}

void rf_evict_line(struct rf_radish *radish, struct rf_metadata *line, bool persist)
{
    rf_machine_remove(&radish->machine, line->key);
    line_gone(radish, line, persist);
}

static void flush_slot(struct rf_radish *radish, uint32_t slot)
{
    struct rf_context *context = context_of(radish, slot);
    while (context->count) {
        rf_evict_line(radish, context->lines[context->count - 1], true);
        radish->counts.flushed_lines++;
    }
}

void rf_split_line(struct rf_radish *radish, struct rf_frame *frame, uint64_t physical)
{
    uint32_t bits = radish->machine.line_bits;
    if (RF_HOLDS(radish->broken, COMPACT_SPLIT))
        for (struct rf_metadata *line; (line = rf_lines_of(radish, physical >> bits << 1));)
            rf_evict_line(radish, line, true);
    frame->split[(physical & (radish->config->page_bytes - 1)) >> bits] = 1;
    radish->counts.splits++;
}

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

/* 3.2.4.2: when a line comes in, or its thread comes back. */
static void set_permissions(struct rf_radish *radish, uint32_t core, struct rf_metadata *own)
{
    uint8_t *permissions = rf_permissions(radish, own);
    const uint8_t *statuses = rf_statuses(radish, own);
    struct rf_metadata *first = rf_lines_of(radish, own->number);
    own->generation = radish->cores[core].generation;
    for (uint32_t cell = 0; cell < radish->cells; cell++) {
        struct gathered found = { 0 };
        if (first != own || own->next)
            found = gather(radish, core, first, own, cell);
        permissions[cell] = (uint8_t)permission(radish, &found, statuses[cell]);
    }
}

/* 8.: another core has permissions on the line. They would be lost if this one could write without a word. */
static bool on_shared(void *context, uint32_t core, uint64_t data_line)
{
    struct rf_radish *radish = context;
    if (data_line >= RF_SOFTWARE_LINES)
        return false;
    for (uint64_t number = data_line * 2; number < data_line * 2 + 2; number++)
        for (struct rf_metadata *line = rf_lines_of(radish, number); line; line = line->next)
            for (uint32_t cell = 0; line->core != core && cell < radish->cells; cell++)
                if (rf_permissions(radish, line)[cell])
                    return true;
    return false;
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
            for (uint32_t cell = 0; own && cell < radish->cells; cell++)
                permissions[cell] = after_reads(radish, core, first, line, cell);
        }
    }
}

/* The core's line for this number, from wherever it is; made if it is nowhere. */
static struct rf_metadata *fetch(struct rf_radish *radish, uint32_t core, uint64_t number, bool compact, uint32_t *cycles)
{
    const struct rf_radish_core *here = &radish->cores[core];
    /* Only lazy switching needs the thread in the address (3.2.6): with eager flushing what is there is the running thread's. */
    uint64_t key = rf_key_metadata(core, radish->config->flush == RF_FLUSH_LAZY ? here->slot : 0, number);
    bool on_bus = radish->machine.bus;
    struct rf_metadata *line = rf_machine_metadata(&radish->machine, core, key, cycles);
    if (line) {
        if (line->generation != here->generation && RF_HOLDS(radish->broken, SWITCH_DOWNGRADE)) {
            radish->machine.traffic.broadcasts += !on_bus;
            set_permissions(radish, core, line);
        }
        return line;
    }
    line = rf_alloc(radish->memory, line_size(radish));
    line->key = key;
    line->number = number;
    line->slot = here->slot;
    line->core = core;
    line->compact = compact;
    rf_machine_insert(&radish->machine, core, key, line);
    /* Only now: making room may have evicted a line of the same number. What is in no cache is in software. */
    struct rf_metadata *other = rf_lines_of(radish, number);
    if (other)
        memcpy(rf_statuses(radish, line), rf_statuses(radish, other), radish->cells);
    link_line(radish, line);
    set_permissions(radish, core, line);
    radish->machine.traffic.broadcasts += !on_bus;
    return line;
}

/* ---- the three stages ---- */

static uint64_t some_cells(const uint8_t *cells, uint32_t count)
{
    uint64_t word;
    memcpy(&word, cells, sizeof word);
    return count == 8 ? word : word & ((UINT64_C(1) << 8 * count) - 1);
}

#define EACH_CELL UINT64_C(0x0101010101010101)

static bool permitted(const struct rf_radish *radish, struct rf_metadata *line, uint32_t cell, uint32_t count, bool write)
{
    uint64_t bit = write && RF_HOLDS(radish->broken, PERMISSION_KIND) ? 2 : 1;
    uint64_t wanted = count == 8 ? EACH_CELL * bit : (EACH_CELL * bit) & ((UINT64_C(1) << 8 * count) - 1);
    return (some_cells(rf_permissions(radish, line) + cell, count) & wanted) == wanted;
}

/* 3.3.6.2: the thread's own clocks, and nothing else. */
static void record_own(struct rf_radish *radish, struct rf_metadata *line, uint32_t cell, uint32_t count, bool write)
{
    uint32_t clock = radish->contexts[line->slot]->clocks.current;
    uint8_t *reads = rf_reads(radish, line) + cell, *writes = rf_writes(radish, line) + cell;
    if (!write) {
        if (count == 8 && some_cells(reads, 8) == EACH_CELL * clock)
            return;
        for (uint32_t i = 0; i < count && RF_HOLDS(radish->broken, RECORD_READ); i++)
            rf_set_clock(radish, line, &reads[i], clock);
        return;
    }
    if (count == 8 && some_cells(writes, 8) == EACH_CELL * clock && !some_cells(reads, 8))
        return;
    for (uint32_t i = 0; i < count; i++) {
        if (RF_HOLDS(radish->broken, RECORD_WRITE))
            rf_set_clock(radish, line, &writes[i], clock);
        if (RF_HOLDS(radish->broken, WRITE_CLEARS_OWN_READ))
            rf_set_clock(radish, line, &reads[i], 0);
    }
}

/* 3.2.4.1: after a checked write only this thread's clock is left, in hardware and in the whole system. */
static void record_checked(struct rf_radish *radish, struct rf_metadata *own, uint32_t cell, uint32_t count, bool write)
{
    struct rf_metadata *first = write ? rf_lines_of(radish, own->number) : NULL;
    for (struct rf_metadata *line = first; line; line = line->next) {
        uint8_t *reads = rf_reads(radish, line) + cell, *writes = rf_writes(radish, line) + cell;
        bool clear = line != own && (some_cells(reads, count) || some_cells(writes, count));
        for (uint32_t i = 0; i < count && clear && RF_HOLDS(radish->broken, WRITE_CLEARS_OTHERS); i++) {
            rf_set_clock(radish, line, &reads[i], 0);
            rf_set_clock(radish, line, &writes[i], 0);
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

/* All eight cells of a granule are alike in all lines, as they nearly always are: one answer holds for all. */
static bool alike(const struct rf_radish *radish, struct rf_metadata *first, struct rf_metadata *own, uint32_t cell, uint32_t count)
{
    const uint8_t *permissions = rf_permissions(radish, own) + cell, *statuses = rf_statuses(radish, own) + cell;
    if (count != 8 || some_cells(permissions, 8) != EACH_CELL * *permissions || some_cells(statuses, 8) != EACH_CELL * *statuses)
        return false;
    for (struct rf_metadata *line = first; line; line = line->next) {
        const uint8_t *reads = rf_reads(radish, line) + cell, *writes = rf_writes(radish, line) + cell;
        if (some_cells(reads, 8) != EACH_CELL * *reads || some_cells(writes, 8) != EACH_CELL * *writes)
            return false;
    }
    return true;
}

/* The hardware check of an access. MAYBE: nothing was done, and software must decide. */
static enum verdict check_in_hardware(struct rf_radish *radish, uint32_t core, struct rf_metadata *line, uint32_t cell,
                                      uint32_t count, const struct rf_access *access)
{
    struct rf_metadata *first = rf_lines_of(radish, line->number);
    const uint8_t *statuses = rf_statuses(radish, line);
    enum verdict verdicts[8], worst = SAFE;
    uint8_t permissions[8];
    bool once = alike(radish, first, line, cell, count);
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

/* The quarter of the clocks that fewest cells refer to: what is evicted then is little, and enough epochs can follow. */
static uint64_t clocks_to_free(const struct rf_clock_table *table, uint32_t limit)
{
    uint64_t chosen = 0;
    for (uint32_t wanted = (limit - 1) / 4 ? (limit - 1) / 4 : 1; wanted; wanted--) {
        uint32_t least = 0;
        for (uint32_t clock = 1; clock < limit; clock++)
            if (!(chosen >> clock & 1) && (!least || table->references[clock] < table->references[least]))
                least = clock;
        chosen |= UINT64_C(1) << least;
    }
    return chosen;
}

/* Hands the clocks of a line that are in `chosen` to software, as an eviction would, but keeps the line and what it permits: that
 * depends on the order of accesses, not on where their clocks are. Returns the clocks that are left. */
static uint64_t clean_line(struct rf_radish *radish, struct rf_metadata *line, uint64_t chosen)
{
    uint32_t cells = radish->cells;
    uint8_t *clocks = rf_reads(radish, line), kept[2 * RF_MAX_CELLS]; /* of reads, then of writes */
    uint64_t found = 0, left = 0;
    for (uint32_t i = 0; i < 2 * cells; i++) {
        bool goes = chosen >> clocks[i] & 1;
        kept[i] = goes ? 0 : clocks[i];
        found |= goes;
        left |= UINT64_C(1) << kept[i];
    }
    if (!found)
        return left;
    for (uint32_t i = 0; i < 2 * cells; i++)
        clocks[i] ^= kept[i]; /* those that go, for a moment */
    rf_software_evicted(radish, line);
    for (struct rf_metadata *other = rf_lines_of(radish, line->number); other; other = other->next)
        downgrade_status(radish, other, line);
    for (uint32_t i = 0; i < 2 * cells; i++) {
        uint8_t *permission = &rf_permissions(radish, line)[i % cells];
        if (clocks[i] && *permission == RF_PERMIT_WRITE)
            *permission = RF_PERMIT_ORDERED;
        radish->contexts[line->slot]->clocks.references[clocks[i]]--;
        radish->contexts[line->slot]->clocks.references[0]++;
    }
    memcpy(clocks, kept, 2 * (size_t)cells);
    radish->machine.traffic.broadcasts++;
    radish->counts.flushed_lines++;
    return left;
}

/* clock_table.h, 2. */
static void roll_over(struct rf_radish *radish, uint32_t core)
{
    struct rf_context *context = context_of(radish, radish->cores[core].slot);
    uint64_t chosen = clocks_to_free(&context->clocks, radish->clock_limit);
    radish->counts.roll_overs++;
    rf_charge(radish, core, radish->config->enter_cycles);
    for (uint32_t i = 0; i < context->count; i++)
        if (context->used[i] & chosen)
            context->used[i] = clean_line(radish, context->lines[i], chosen);
}

/* A clock for now. Before the line is fetched, since it may be among those that a roll-over evicts. */
static void choose_clock(struct rf_radish *radish, uint32_t core)
{
    const struct rf_radish_core *here = &radish->cores[core];
    struct rf_clock_table *table = &context_of(radish, here->slot)->clocks;
    uint64_t now = rf_epoch_time(here->thread->epoch);
    if (__builtin_expect(table->current && table->times[table->current] == now, 1))
        return;
    table->current = 0;
    table->current = rf_clock_for(table, now, radish->clock_limit, radish->broken);
    if (table->current)
        return;
    if (RF_HOLDS(radish->broken, ROLL_OVER)) {
        roll_over(radish, core);
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
        flush_slot(radish, here->slot);
        rf_software_drain(radish, core);
    }
    here->thread = thread;
    here->generation = ++radish->generation;
    if (!thread)
        return;
    here->slot = thread->slot;
    context_of(radish, here->slot);
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
    rf_machine_init(&radish->machine, config, broken);
    radish->machine.exclusive = on_exclusive;
    radish->machine.shared = on_shared;
    radish->machine.evicted = on_evicted;
    radish->machine.context = radish;
}

void rf_radish_free(struct rf_radish *radish)
{
    rf_machine_free(&radish->machine);
}
