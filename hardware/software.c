/* See hardware/software.h. */
#include "hardware/software.h"

#include "hardware/lanes.h"
#include "hardware/radish.h"

/* ---- the variable map ---- */

struct rf_record *rf_software_record(const struct rf_radish *radish, uint64_t number)
{
    const struct rf_software *software = &radish->software;
    return number < software->record_cap && rf_record_at(software, number)->made ? rf_record_at(software, number) : NULL;
}

struct rf_record *rf_software_make(struct rf_radish *radish, uint64_t number)
{
    struct rf_software *software = &radish->software;
    rf_records_reserve(software, radish->memory, number);
    struct rf_record *record = rf_record_at(software, number);
    record->made = true;
    return record;
}

struct rf_history *rf_software_find(const struct rf_record *record, uint32_t slot)
{
    struct rf_history *history = record->histories;
    while (history && history->slot != slot)
        history = history->next;
    return history;
}

struct rf_history *rf_software_history(struct rf_radish *radish, struct rf_record *record, uint32_t slot)
{
    struct rf_history *history = rf_software_find(record, slot);
    if (!history) {
        uint32_t before = record->histories ? record->histories->before + 1 : 0;
        history = before % 2 ? rf_history_second(record->histories, rf_cells(&radish->layout))
                             : rf_pool_take(&radish->software.histories, radish->memory);
        history->slot = slot;
        history->before = before;
        history->next = record->histories;
        record->histories = history;
    }
    return history;
}

/* ---- what it costs ---- */

uint32_t rf_software_core(const struct rf_radish *radish, uint32_t core)
{
    uint32_t least = core;
    for (uint32_t other = 0; RF_RARELY(radish->config->handlers == RF_HANDLERS_OTHER) && other < radish->config->cores;
         other++)
        if (other != core && (least == core || radish->times[other] < radish->times[least]))
            least = other;
    return least;
}

static void touch_line(struct rf_radish *radish, uint32_t core, rf_key key, bool write)
{
    uint64_t cycles = rf_machine_touch(&radish->machine, core, key, write);
    rf_charge(radish, core, cycles);
    radish->software.cycles += cycles;
}

void rf_software_spend(struct rf_radish *radish, uint32_t core, uint64_t cycles)
{
    rf_charge(radish, core, cycles);
    radish->software.cycles += cycles;
}

/* The lines of a record: one for every two histories. The first ones of all records are a region, so are the second ones, and so on;
 * like those of metadata they begin in different sets. */
#define PAIRS_APART (((uint64_t)1 << 24) + RF_CORE_SETS)

static rf_key record_line(const struct rf_radish *radish, uint64_t number, uint32_t pair, uint64_t at)
{
    return rf_key_of(RF_KEY_RECORD, number * radish->config->record_lines + at + pair * PAIRS_APART);
}

/* The line with the byte that says how many histories the record has. */
static rf_key presence_line(const struct rf_radish *radish, uint64_t number)
{
    return rf_key_of(RF_KEY_PRESENCE, number / (2 * rf_cells(&radish->layout)));
}

void rf_software_prefetch(const struct rf_radish *radish, uint64_t number)
{
    const struct rf_record *record = rf_software_record(radish, number);
    rf_machine_prefetch(&radish->machine, presence_line(radish, number));
    if (!record || !record->histories)
        return;
    rf_machine_prefetch(&radish->machine, record_line(radish, number, 0, 0));
    rf_history_prefetch(record->histories);
}

static void touch_pair(struct rf_radish *radish, uint32_t core, uint64_t number, uint32_t pair, bool write)
{
    for (uint64_t i = 0; i < radish->config->record_lines; i++)
        touch_line(radish, core, record_line(radish, number, pair, i), write);
}

void rf_software_touch(struct rf_radish *radish, uint32_t core, uint64_t number, bool write)
{
    const struct rf_record *record = rf_software_record(radish, number);
    touch_line(radish, core, presence_line(radish, number), false);
    for (uint32_t pair = 0; record && record->histories && pair <= record->histories->before / 2; pair++)
        touch_pair(radish, core, number, pair, write);
}

/* An entry of a vector clock takes eight bytes. */
#define VECTOR_ENTRIES (rf_cells(&radish->layout) / 4)

void rf_software_vector(struct rf_radish *radish, uint32_t core, uint64_t object, uint32_t entries)
{
    uint64_t lines = (entries + VECTOR_ENTRIES - 1) / VECTOR_ENTRIES;
    uint64_t first = rf_hash(object) % (1u << 20) * 64;
    for (uint64_t i = 0; i < lines; i++)
        touch_line(radish, core, rf_key_of(RF_KEY_VECTOR, first + i), true);
    rf_software_spend(radish, core, entries * radish->config->entry_cycles);
}

/* ---- evictions ---- */

_Static_assert(2 * RF_MAX_CELLS / 4 <= 64, "the uneven units are bits of one word");

/* Where the times of this unit are, if it is uneven. Few are. */
static uint32_t evicted_uneven(const struct rf_layout *layout, uint64_t uneven, uint32_t unit)
{
    uint32_t before = unit < 64 ? (uint32_t)__builtin_popcountll(uneven & ((UINT64_C(1) << unit) - 1))
                                : (uint32_t)__builtin_popcountll(uneven);
    return 2 * rf_units(layout) + (before << rf_unit_bits(layout));
}

size_t rf_evicted_bytes(const struct rf_layout *layout)
{
    return sizeof(struct rf_evicted) + 2 * rf_units(layout) * sizeof(uint32_t) + rf_units(layout) + 8;
}

static uint8_t *evicted_statuses(struct rf_evicted *evicted, const struct rf_layout *layout)
{
    uint32_t units = 2 * rf_units(layout);
    return (uint8_t *)(evicted->times +
                       (RF_RARELY(evicted->uneven) ? evicted_uneven(layout, evicted->uneven, units) : units));
}

static uint32_t evicted_time(const struct rf_evicted *evicted, const struct rf_layout *layout, enum rf_kind kind,
                             uint32_t cell)
{
    uint32_t unit = kind * rf_units(layout) + (cell >> rf_unit_bits(layout));
    return evicted->uneven >> unit & 1
               ? evicted->times[evicted_uneven(layout, evicted->uneven, unit) + (cell & ((1u << rf_unit_bits(layout)) - 1))]
               : evicted->times[unit];
}

/* The units of a wide line's clocks that are not alike, a bit each. */
static uint64_t uneven_units(const struct rf_layout *layout, const uint8_t *clocks)
{
    uint64_t uneven = 0;
    for (uint32_t unit = 0; unit < 2 * rf_units(layout); unit++)
        uneven |= (uint64_t)!rf_even(clocks + (unit << rf_unit_bits(layout)), 1u << rf_unit_bits(layout)) << unit;
    return uneven;
}

void rf_software_evicted(struct rf_radish *radish, struct rf_metadata *line, const uint8_t *clocks)
{
    struct rf_software *software = &radish->software;
    const struct rf_layout *layout = &radish->layout;
    const uint32_t *times = radish->contexts[line->slot]->clocks.times; /* clock 0 stands for 0 */
    uint64_t uneven = RF_RARELY(line->wide) ? uneven_units(layout, clocks) : 0;
    uint32_t width = rf_width(layout, line), bits = rf_unit_bits(layout), shift = bits - rf_shift(layout, line);
    uint32_t count = RF_RARELY(uneven) ? evicted_uneven(layout, uneven, 2 * rf_units(layout)) : 2 * rf_units(layout);
    size_t bytes = sizeof(struct rf_evicted) + count * sizeof(uint32_t) + width + 8;
    struct rf_evicted *evicted =
        line->wide ? rf_alloc(radish->memory, bytes) : rf_pool_take(&software->evicted, radish->memory);
    evicted->next = NULL;
    evicted->number = line->number;
    evicted->slot = line->slot;
    evicted->bytes = (uint32_t)bytes;
    evicted->uneven = uneven;
    evicted->compact = rf_is_compact(line);
    evicted->wide = line->wide;
    uint32_t unit = 0, units = 2 * rf_units(layout);
    for (; unit + RF_LANES <= units; unit += RF_LANES) { /* the handler reads as many at once */
        const uint8_t *four = clocks + (unit << shift);
        rf_lanes_store(evicted->times + unit,
                       (rf_lanes){ times[four[0]], times[four[(size_t)1 << shift]], times[four[(size_t)2 << shift]],
                                   times[four[(size_t)3 << shift]] });
    }
    for (; unit < units; unit++)
        evicted->times[unit] = times[clocks[unit << shift]];
    for (uint32_t at = 2 * rf_units(layout); uneven; uneven &= uneven - 1) {
        const uint8_t *clock = clocks + ((size_t)__builtin_ctzll(uneven) << bits), *end = clock + ((size_t)1 << bits);
        for (; clock < end; clock++)
            evicted->times[at++] = times[*clock];
    }
    memcpy(evicted_statuses(evicted, layout), rf_row(layout, line, RF_STATUSES), width);
    if (software->last)
        software->last->next = evicted;
    else
        software->first = evicted;
    software->last = evicted;
    software->waiting++;
    const struct rf_record *record = rf_software_record(radish, line->number); /* soon the handler will look there */
    if (RF_MOSTLY(record && record->histories)) {
        rf_machine_prefetch(&radish->machine, record_line(radish, line->number, 0, 0));
        rf_history_prefetch(record->histories);
    }
}

/* Times of one byte of an evicted line, or of all bytes of a granule that is alike; and its status. */
struct arrival {
    uint32_t read, write;
    uint8_t status;
};

static bool replaces(const struct rf_radish *radish, uint32_t time, uint32_t old)
{
    return time > old || (time && !RF_HOLDS(radish->broken, PERSIST_NEWEST));
}

/* What the status says to be superseded goes first (radish.h, 3.): Table 3.1, last row. */
static void store_byte(struct rf_radish *radish, struct rf_record *record, struct rf_history *own, uint32_t byte,
                       const struct arrival *new)
{
    uint32_t cells = rf_cells(&radish->layout);
    if (!new->read && !new->write)
        return;
    for (struct rf_history *history = record->histories; history && RF_HOLDS(radish->broken, PERSIST_SUPERSEDES);
         history = history->next) {
        if (new->status & RF_ALL_LAST_READS)
            rf_history_set(history, radish->memory, cells, RF_READS, byte, 0);
        if (new->status & RF_LAST_WRITE)
            rf_history_set(history, radish->memory, cells, RF_WRITES, byte, 0);
    }
    if (RF_HOLDS(radish->broken, PERSIST_READ) && replaces(radish, new->read, rf_history_get(own, cells, RF_READS, byte)))
        rf_history_set(own, radish->memory, cells, RF_READS, byte, new->read);
    if (RF_HOLDS(radish->broken, PERSIST_WRITE) && replaces(radish, new->write, rf_history_get(own, cells, RF_WRITES, byte)))
        rf_history_set(own, radish->memory, cells, RF_WRITES, byte, new->write);
}

/* The same for eight bytes at once; some time is new, and the thread's own history of them is even. */
static void store_granule(struct rf_radish *radish, struct rf_record *record, struct rf_history *own, uint32_t granule,
                          const struct arrival *new)
{
    uint32_t cells = rf_cells(&radish->layout), *read = &own->times[granule], *write = &own->times[cells / 8 + granule];
    for (struct rf_history *history = record->histories; history && RF_HOLDS(radish->broken, PERSIST_SUPERSEDES);
         history = history->next) {
        if (new->status & RF_ALL_LAST_READS)
            rf_history_set_all(history, cells, RF_READS, granule, 0);
        if (new->status & RF_LAST_WRITE)
            rf_history_set_all(history, cells, RF_WRITES, granule, 0);
    }
    if (RF_HOLDS(radish->broken, PERSIST_READ) && replaces(radish, new->read, *read))
        *read = new->read;
    if (RF_HOLDS(radish->broken, PERSIST_WRITE) && replaces(radish, new->write, *write))
        *write = new->write;
}

/* The newer of two times in each lane. */
static inline rf_lanes newer(const struct rf_radish *radish, rf_lanes time, rf_lanes old)
{
    rf_lanes replaces = RF_HOLDS(radish->broken, PERSIST_NEWEST) ? (rf_lanes)(time > old) : (rf_lanes)(time != 0);
    return (replaces & time) | (~replaces & old);
}

/* The same for four granules of a line that is not wide, from `at` on, where all histories are even. */
static inline void store_granules(struct rf_radish *radish, struct rf_record *record, struct rf_history *own, uint32_t at,
                                  const struct rf_evicted *evicted, const uint8_t *statuses)
{
    uint32_t units = rf_units(&radish->layout), *reads = own->times + at, *writes = own->times + units + at;
    rf_lanes read = rf_lanes_load(evicted->times + at), write = rf_lanes_load(evicted->times + units + at);
    rf_lanes status = rf_lanes_of_bytes(statuses + at), arrives = (rf_lanes)((read | write) != 0);
    rf_lanes old_reads = arrives & (rf_lanes)((status & RF_ALL_LAST_READS) != 0);
    rf_lanes old_writes = arrives & (rf_lanes)((status & RF_LAST_WRITE) != 0);
    for (struct rf_history *history = record->histories; history && RF_HOLDS(radish->broken, PERSIST_SUPERSEDES);
         history = history->next) {
        rf_lanes_store(history->times + at, rf_lanes_load(history->times + at) & ~old_reads);
        rf_lanes_store(history->times + units + at, rf_lanes_load(history->times + units + at) & ~old_writes);
    }
    if (RF_HOLDS(radish->broken, PERSIST_READ))
        rf_lanes_store(reads, newer(radish, read, rf_lanes_load(reads)));
    if (RF_HOLDS(radish->broken, PERSIST_WRITE))
        rf_lanes_store(writes, newer(radish, write, rf_lanes_load(writes)));
}

/* The cells [first, first + count) of an evicted line, in one granule, are alike. */
static bool evicted_even(const struct rf_evicted *evicted, const struct rf_layout *layout, const uint8_t *statuses,
                         uint32_t first, uint32_t count)
{
    uint32_t shift = evicted->wide ? 0 : rf_unit_bits(layout), from = first >> rf_unit_bits(layout);
    if (!rf_even(statuses + (first >> shift), count >> shift))
        return false;
    for (uint32_t unit = from; unit < (first + count) >> rf_unit_bits(layout); unit++)
        for (uint32_t at = unit; at < 2 * rf_units(layout); at += rf_units(layout)) /* reads, then writes */
            if (evicted->uneven >> at & 1 || evicted->times[at] != evicted->times[at - unit + from])
                return false;
    return true;
}

/* A record's part of an evicted line: granule by granule, and byte by byte where these are not alike. */
static RF_APART void store_half(struct rf_radish *radish, struct rf_record *record, struct rf_history *own,
                                struct rf_evicted *evicted, uint32_t half, uint32_t halves)
{
    const struct rf_layout *layout = &radish->layout;
    uint32_t cells = rf_cells(layout), count = 8 / halves, shift = evicted->wide ? 0 : rf_unit_bits(layout);
    const uint8_t *statuses = evicted_statuses(evicted, layout);
    for (uint32_t granule = 0; granule < cells / 8; granule++) {
        uint32_t first = half * cells / 2 + granule * count;
        bool even = rf_history_even(own, granule) && evicted_even(evicted, layout, statuses, first, count);
        for (uint32_t byte = 0; byte < 8; byte++) {
            uint32_t cell = first + byte / halves;
            struct arrival new = { evicted_time(evicted, layout, RF_READS, cell),
                                   evicted_time(evicted, layout, RF_WRITES, cell), statuses[cell >> shift] };
            if (even) {
                if (new.read | new.write)
                    store_granule(radish, record, own, granule, &new);
                break;
            }
            store_byte(radish, record, own, granule * 8 + byte, &new);
        }
    }
}

/* The bytes of a compact line are in two records, two bytes a cell. */
static void store_line(struct rf_radish *radish, uint32_t runner, struct rf_evicted *evicted)
{
    const struct rf_layout *layout = &radish->layout;
    uint32_t cells = rf_cells(&radish->layout), halves = !RF_USUAL && evicted->compact ? 2 : 1;
    const uint8_t *statuses = evicted_statuses(evicted, layout);
    for (uint32_t half = 0; half < halves; half++) {
        struct rf_record *record = rf_software_make(radish, evicted->number + half);
        const struct rf_history *latest = record->histories;
        struct rf_history *own = rf_software_history(radish, record, evicted->slot);
        if (record->histories != latest)
            touch_line(radish, runner, presence_line(radish, evicted->number + half), true);
        /* units are granules, and come in fours */
        bool simple = !evicted->wide && rf_unit_bits(layout) == 3 && rf_units(layout) % RF_LANES == 0;
        for (const struct rf_history *history = record->histories; history; history = history->next)
            simple &= !history->uneven;
        for (uint32_t granule = 0; RF_MOSTLY(simple) && granule < cells / 8; granule += RF_LANES)
            store_granules(radish, record, own, granule, evicted, statuses);
        if (RF_RARELY(!simple))
            store_half(radish, record, own, evicted, half, halves);
        if (!rf_lines_of(radish, evicted->number))
            record->cached = false;
        touch_pair(radish, runner, evicted->number + half, own->before / 2, true);
    }
}

static void handle_eviction(struct rf_radish *radish, uint32_t runner)
{
    struct rf_software *software = &radish->software;
    struct rf_evicted *evicted = software->first;
    software->first = evicted->next;
    if (!software->first)
        software->last = NULL;
    software->waiting--;
    software->evicted_lines++;
    store_line(radish, runner, evicted);
    rf_software_spend(radish, runner, rf_cells(&radish->layout) * radish->config->entry_cycles);
    if (RF_RARELY(evicted->wide))
        rf_free(radish->memory, evicted, evicted->bytes);
    else
        rf_pool_give(&software->evicted, evicted);
}

/* The handler's own accesses may evict metadata; but they bring in none, so this ends. */
void rf_software_drain(struct rf_radish *radish, uint32_t core)
{
    uint32_t runner = rf_software_core(radish, core);
    if (radish->software.waiting)
        rf_software_spend(radish, runner, radish->config->enter_cycles);
    while (radish->software.waiting)
        handle_eviction(radish, runner);
}
