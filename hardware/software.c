/* See hardware/software.h. */
#include "hardware/software.h"

#include "hardware/radish.h"

/* ---- the variable map ---- */

struct rf_record *rf_software_record(const struct rf_radish *radish, uint64_t number)
{
    return number < radish->software.record_cap ? radish->software.records[number] : NULL;
}

struct rf_record *rf_software_make(struct rf_radish *radish, uint64_t number)
{
    struct rf_software *software = &radish->software;
    software->records =
        rf_grow(radish->memory, software->records, &software->record_cap, (size_t)number + 1, sizeof *software->records);
    if (!software->records[number]) {
        software->records[number] = rf_alloc(radish->memory, sizeof **software->records);
        software->records[number]->place = software->places++;
    }
    return software->records[number];
}

struct rf_history *rf_software_history(struct rf_radish *radish, struct rf_record *record, uint32_t slot)
{
    struct rf_history *history = record->histories;
    while (history && history->slot != slot)
        history = history->next;
    if (!history) {
        history = rf_alloc(radish->memory, sizeof *history + 2 * radish->cells * sizeof history->times[0]);
        history->slot = slot;
        history->next = record->histories;
        record->histories = history;
    }
    return history;
}

/* ---- what it costs ---- */

uint32_t rf_software_core(const struct rf_radish *radish, uint32_t core)
{
    uint32_t least = core;
    for (uint32_t other = 0; radish->config->handlers == RF_HANDLERS_OTHER && other < radish->config->cores; other++)
        if (other != core && (least == core || radish->times[other] < radish->times[least]))
            least = other;
    return least;
}

static void touch_line(struct rf_radish *radish, uint32_t core, uint64_t line, bool write)
{
    uint64_t cycles = rf_machine_access(&radish->machine, core, RF_SOFTWARE_LINES + line, write);
    rf_charge(radish, core, cycles);
    radish->software.cycles += cycles;
}

static void spend(struct rf_radish *radish, uint32_t core, uint64_t cycles)
{
    rf_charge(radish, core, cycles);
    radish->software.cycles += cycles;
}

/* A directory of eight bytes for each metadata line, found by its number as in shadow memory; then the records; then vectors. */
#define DIRECTORY_ENTRIES (radish->config->line_bytes / 8)
#define RECORD_LINES (UINT64_C(1) << 33)
#define VECTOR_LINES (UINT64_C(1) << 35)

void rf_software_touch(struct rf_radish *radish, uint32_t core, uint64_t number, uint32_t slot, bool write)
{
    const struct rf_record *record = rf_software_record(radish, number);
    touch_line(radish, core, number / DIRECTORY_ENTRIES, false);
    if (!record)
        return;
    for (const struct rf_history *history = record->histories; history; history = history->next)
        for (uint64_t i = 0; i < radish->config->record_lines && (slot == RF_ALL_SLOTS || slot == history->slot); i++)
            touch_line(radish, core, RECORD_LINES + (record->place * 8 + history->slot % 8) * radish->config->record_lines + i,
                       write);
}

void rf_software_vector(struct rf_radish *radish, uint32_t core, uint64_t object, uint32_t entries)
{
    uint64_t lines = (entries * UINT64_C(8) + radish->config->line_bytes - 1) / radish->config->line_bytes;
    uint64_t first = VECTOR_LINES + rf_hash(object) % (1u << 20) * 64;
    for (uint64_t i = 0; i < lines; i++)
        touch_line(radish, core, first + i, true);
    spend(radish, core, entries * radish->config->entry_cycles);
}

/* ---- evictions ---- */

void rf_software_evicted(struct rf_radish *radish, struct rf_metadata *line)
{
    struct rf_software *software = &radish->software;
    uint32_t cells = radish->cells;
    struct rf_evicted *evicted = rf_alloc(radish->memory, sizeof *evicted + 3 * cells * sizeof evicted->times[0]);
    evicted->number = line->number;
    evicted->slot = line->slot;
    evicted->compact = line->compact;
    for (uint32_t cell = 0; cell < cells; cell++) {
        evicted->times[cell] = (uint32_t)rf_time_of(radish, line, rf_reads(radish, line)[cell]);
        evicted->times[cells + cell] = (uint32_t)rf_time_of(radish, line, rf_writes(radish, line)[cell]);
        evicted->times[2 * cells + cell] = rf_statuses(radish, line)[cell];
    }
    if (software->last)
        software->last->next = evicted;
    else
        software->first = evicted;
    software->last = evicted;
    software->waiting++;
}

static void store(struct rf_radish *radish, uint32_t *place, uint32_t time)
{
    if (time > *place || (time && !RF_HOLDS(radish->broken, PERSIST_NEWEST)))
        *place = time;
}

/* One byte of an evicted line. What its status says to be superseded goes first (radish.h, 3.): Table 3.1, last row. */
static void store_byte(struct rf_radish *radish, struct rf_record *record, struct rf_history *own, uint32_t byte,
                       const struct rf_evicted *evicted, uint32_t cell)
{
    uint32_t cells = radish->cells, read = evicted->times[cell], write = evicted->times[cells + cell];
    uint32_t status = evicted->times[2 * cells + cell];
    if (!read && !write)
        return;
    for (struct rf_history *history = record->histories; history && RF_HOLDS(radish->broken, PERSIST_SUPERSEDES);
         history = history->next) {
        if (status & RF_ALL_LAST_READS)
            history->times[byte] = 0;
        if (status & RF_LAST_WRITE)
            history->times[cells + byte] = 0;
    }
    if (RF_HOLDS(radish->broken, PERSIST_READ))
        store(radish, &own->times[byte], read);
    if (RF_HOLDS(radish->broken, PERSIST_WRITE))
        store(radish, &own->times[cells + byte], write);
}

/* The bytes of a compact line are in two records, two bytes a cell. */
static void store_line(struct rf_radish *radish, const struct rf_evicted *evicted)
{
    uint32_t cells = radish->cells, halves = evicted->compact ? 2 : 1;
    for (uint32_t half = 0; half < halves; half++) {
        struct rf_record *record = rf_software_make(radish, evicted->number + half);
        struct rf_history *own = rf_software_history(radish, record, evicted->slot);
        for (uint32_t byte = 0; byte < cells; byte++)
            store_byte(radish, record, own, byte, evicted, (half * cells + byte) / halves);
        if (!rf_lines_of(radish, evicted->number))
            record->cached = false;
    }
}

static void handle_eviction(struct rf_radish *radish, uint32_t runner)
{
    struct rf_software *software = &radish->software;
    struct rf_evicted *evicted = software->first;
    uint32_t cells = radish->cells, halves = evicted->compact ? 2 : 1;
    software->first = evicted->next;
    if (!software->first)
        software->last = NULL;
    software->waiting--;
    software->evicted_lines++;
    store_line(radish, evicted);
    spend(radish, runner, cells * radish->config->entry_cycles);
    for (uint32_t half = 0; half < halves; half++)
        rf_software_touch(radish, runner, evicted->number + half, evicted->slot, true);
    rf_free(radish->memory, evicted, sizeof *evicted + 3 * cells * sizeof evicted->times[0]);
}

/* The handler's own accesses may evict metadata; but they bring in none, so this ends. */
void rf_software_drain(struct rf_radish *radish, uint32_t core)
{
    uint32_t runner = rf_software_core(radish, core);
    if (radish->software.waiting)
        spend(radish, runner, radish->config->enter_cycles);
    while (radish->software.waiting)
        handle_eviction(radish, runner);
}

/* ---- checks ---- */

/* A line that is checked, and what is known of one of its cells: the lines of hardware, the histories of software. */
struct view {
    struct rf_radish *radish;
    struct rf_metadata *first, *own;
    uint32_t core;
    struct rf_record *records[2];
    struct rf_history *owns[2]; /* the thread's in them; NULL: none */
    /* the cell */
    uint32_t cell, byte; /* byte: in the histories */
    struct rf_record *record;
    struct rf_history *mine;
    uint8_t status;
};

static struct view view_of(struct rf_radish *radish, uint32_t core, struct rf_metadata *own)
{
    struct view v = { .radish = radish, .first = rf_lines_of(radish, own->number), .own = own, .core = core };
    for (uint32_t half = 0; half < (own->compact ? 2 : 1); half++) {
        v.records[half] = rf_software_make(radish, own->number + half);
        v.owns[half] = v.records[half]->histories;
        while (v.owns[half] && v.owns[half]->slot != own->slot)
            v.owns[half] = v.owns[half]->next;
    }
    return v;
}

static void view_cell(struct view *v, uint32_t cell)
{
    uint32_t byte = v->own->compact ? cell * 2 : cell, half = byte >= v->radish->cells;
    v->cell = cell;
    v->byte = byte - half * v->radish->cells;
    v->record = v->records[half];
    v->mine = v->owns[half];
    v->status = rf_statuses(v->radish, v->own)[cell];
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
        if (history->times[v->byte + (writes ? radish->cells : 0)] > known_time(radish, v->core, history->slot))
            return true;
    return false;
}

/* Brings the thread's own clock of one kind into its line, if the clock table has room for the time. */
static void import(const struct view *v, bool writes)
{
    struct rf_radish *radish = v->radish;
    uint8_t *clock = (writes ? rf_writes(radish, v->own) : rf_reads(radish, v->own)) + v->cell;
    struct rf_clock_table *table = &radish->contexts[v->own->slot]->clocks;
    uint32_t time = v->mine ? v->mine->times[v->byte + (writes ? radish->cells : 0)] : 0;
    if (time && time > rf_time_of(radish, v->own, *clock) && RF_HOLDS(radish->broken, IMPORT)) {
        uint32_t new = rf_clock_for(table, time, radish->clock_limit, radish->broken);
        if (new)
            rf_set_clock(radish, v->own, clock, new);
    }
}

/* Every clock of this kind that software has is also, or newer, in hardware. */
static bool in_hardware(const struct view *v, bool writes)
{
    struct rf_radish *radish = v->radish;
    if (!(writes ? RF_HOLDS(radish->broken, UPGRADE_WRITE) : RF_HOLDS(radish->broken, UPGRADE_READS)))
        return true;
    for (struct rf_history *history = v->record->histories; history; history = history->next) {
        uint32_t time = history->times[v->byte + (writes ? radish->cells : 0)];
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

/* One cell of the line that the handler fills: clocks, status and permission (3.2.4.1 and 3.2.5). Once it has the status
 * Everything, software has nothing that counts: so `history_is_own` need not look there. */
static void fill_cell(struct view *v)
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
        rf_statuses(radish, line)[v->cell] = status;
    bool own = (status == RF_EVERYTHING || !RF_HOLDS(radish->broken, SOFTWARE_PERMISSION)) && history_is_own(v);
    rf_permissions(radish, v->own)[v->cell] = late_write  ? RF_PERMIT_NONE
                                              : own       ? RF_PERMIT_WRITE
                                              : late_read ? RF_PERMIT_READ
                                                          : RF_PERMIT_ORDERED;
}

/* Nearly always the bytes of a variable have one history. Then what was found for one cell holds for the next. */
static bool like_the_cell_before(const struct view *v, const struct rf_record *record_before)
{
    struct rf_radish *radish = v->radish;
    uint32_t cell = v->cell, byte = v->byte, step = v->own->compact ? 2 : 1;
    if (byte < step || v->record != record_before)
        return false;
    for (struct rf_metadata *line = v->first; line; line = line->next) {
        const uint8_t *reads = rf_reads(radish, line) + cell, *writes = rf_writes(radish, line) + cell;
        if (line != v->own && (reads[0] != reads[-1] || writes[0] != writes[-1]))
            return false;
    }
    for (struct rf_history *history = v->record->histories; history; history = history->next) {
        const uint32_t *reads = history->times + byte, *writes = reads + radish->cells;
        if (reads[0] != *(reads - step) || writes[0] != *(writes - step))
            return false;
    }
    return true;
}

/* All cells of the line. `was`: the own clocks and the status of the cell before, as they were found. */
static void fill_line(struct view *v)
{
    struct rf_radish *radish = v->radish;
    uint8_t *reads = rf_reads(radish, v->own), *writes = rf_writes(radish, v->own);
    struct {
        uint8_t read, write, status;
    } was = { 0, 0, 0 }, is;
    struct rf_record *record = NULL;
    for (uint32_t cell = 0; cell < radish->cells; cell++, was = is) {
        view_cell(v, cell);
        is.read = reads[cell];
        is.write = writes[cell];
        is.status = v->status;
        if (is.read == was.read && is.write == was.write && is.status == was.status && like_the_cell_before(v, record)) {
            rf_set_clock(radish, v->own, &reads[cell], reads[cell - 1]);
            rf_set_clock(radish, v->own, &writes[cell], writes[cell - 1]);
            rf_permissions(radish, v->own)[cell] = rf_permissions(radish, v->own)[cell - 1];
            for (struct rf_metadata *line = v->first; line; line = line->next)
                rf_statuses(radish, line)[cell] = rf_statuses(radish, line)[cell - 1];
        } else {
            fill_cell(v);
        }
        record = v->record;
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
    spend(radish, runner, radish->config->enter_cycles);
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
    for (uint32_t i = cell; i < cell + count; i++) {
        view_cell(&v, i);
        if (late(&v, true) || (access->write && late(&v, false)))
            rf_report_cell(radish, own, i, access);
    }
    if (is_untouched(&v, halves)) { /* what the loop below comes to */
        memset(rf_statuses(radish, own), RF_EVERYTHING, radish->cells);
        memset(rf_permissions(radish, own), RF_PERMIT_WRITE, radish->cells);
    } else {
        fill_line(&v);
    }
    for (uint32_t half = 0; half < halves; half++) {
        v.records[half]->cached = true;
        for (struct rf_history *history = v.records[half]->histories; history; history = history->next)
            clocks += radish->cells / halves;
    }
    spend(radish, runner, (radish->cells + clocks) * radish->config->entry_cycles);
}
