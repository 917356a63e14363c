/* See hardware/machine.h. */
#include "hardware/machine.h"

#include "hardware/large.h"
#include "hardware/rules.h"
#include "trace/grow.h"

/* The arrays of one cache, from `*at` on if there is memory; returns how many bytes they take. */
static size_t cache_init(struct rf_cache *cache, char *at, uint64_t bytes, uint64_t ways, uint64_t line)
{
    size_t lines = (size_t)(bytes / line), round = (lines + 15) & ~(size_t)15; /* each array begins at a line of the host's */
    size_t keys = round * sizeof *cache->keys, used = round * sizeof *cache->used, all = keys + used + round * sizeof *cache->lines;
    if (!at)
        return all;
    cache->ways = (uint32_t)ways;
    cache->mask = bytes / (ways * line) - 1;
    cache->keys = (uint64_t *)(void *)at;
    cache->used = (uint32_t *)(void *)(at + keys);
    cache->lines = (struct rf_line *)(void *)(at + keys + used);
    return all;
}

/* All caches are one block: together they are worth large pages. */
static size_t caches_init(struct rf_machine *machine, char *at)
{
    const struct rf_config *config = machine->config;
    size_t done = 0;
    for (uint32_t core = 0; core < config->cores; core++)
        done += cache_init(&machine->l1[core], at ? at + done : NULL, config->l1_bytes, config->l1_ways, config->line_bytes);
    for (uint32_t core = 0; core < config->cores; core++)
        done += cache_init(&machine->l2[core], at ? at + done : NULL, config->l2_bytes, config->l2_ways, config->line_bytes);
    done += cache_init(&machine->llc, at ? at + done : NULL, config->llc_bytes, config->llc_ways, config->line_bytes);
    return done;
}

void rf_machine_init(struct rf_machine *machine, const struct rf_config *config, uint64_t broken)
{
    *machine = (struct rf_machine){ .config = config, .broken = broken };
    machine->line_bits = (uint32_t)__builtin_ctzll(config->line_bytes);
    machine->l1 = rf_zeroed(config->cores, sizeof *machine->l1);
    machine->l2 = rf_zeroed(config->cores, sizeof *machine->l2);
    machine->cache_bytes = caches_init(machine, NULL);
    machine->caches = rf_large_take(machine->cache_bytes);
    caches_init(machine, machine->caches);
}

void rf_machine_free(struct rf_machine *machine)
{
    rf_large_give(machine->caches, machine->cache_bytes);
    free(machine->l1);
    free(machine->l2);
}

/* ---- making room ---- */

static uint32_t core_of(uint64_t key)
{
    return (uint32_t)(key >> (RF_KEY_LINE_BITS + RF_KEY_SLOT_BITS)) & 63;
}

static void drop_private(struct rf_machine *machine, uint64_t sharers, uint64_t key)
{
    for (; sharers; sharers &= sharers - 1) {
        uint32_t core = (uint32_t)__builtin_ctzll(sharers);
        rf_cache_drop(&machine->l1[core], key);
        rf_cache_drop(&machine->l2[core], key);
    }
}

/* The cores whose private caches have a line of the last level. */
static uint64_t holders(uint64_t key, const struct rf_line *line)
{
    return key & RF_KEY_METADATA ? (uint64_t)line->held << core_of(key) : line->sharers;
}

/* The last level is inclusive: what leaves it leaves all. */
static size_t room_in_llc(struct rf_machine *machine, uint64_t key)
{
    struct rf_cache *llc = &machine->llc;
    size_t place = rf_cache_place(llc, key, machine->pinned);
    uint64_t victim = llc->keys[place];
    if (!victim)
        return place;
    struct rf_line line = llc->lines[place];
    drop_private(machine, holders(victim, &line), victim);
    rf_cache_clear(llc, place);
    if (victim & RF_KEY_METADATA) {
        machine->evicted(machine->context, line.metadata);
    } else {
        machine->traffic.data_evictions++;
        machine->traffic.write_backs += line.state == RF_MODIFIED;
    }
    return place;
}

static void fill_l1(struct rf_machine *machine, uint32_t core, uint64_t key, enum rf_mesi state, struct rf_metadata *metadata)
{
    struct rf_cache *l1 = &machine->l1[core];
    rf_cache_put(l1, rf_cache_place(l1, key, 0), key, state, metadata);
}

/* Into both private levels of a core. `place` is where the last level has it; `metadata` is NULL for data. */
static void fill_private(struct rf_machine *machine, uint32_t core, uint64_t key, enum rf_mesi state, size_t place,
                         struct rf_metadata *metadata)
{
    struct rf_cache *l2 = &machine->l2[core], *llc = &machine->llc;
    size_t at = rf_cache_place(l2, key, 0);
    uint64_t victim = l2->keys[at];
    if (victim) {
        struct rf_line *left = &llc->lines[l2->lines[at].below];
        rf_cache_drop(&machine->l1[core], victim);
        if (victim & RF_KEY_METADATA)
            left->held = false;
        else
            left->sharers &= ~(UINT64_C(1) << core);
    }
    rf_cache_put(l2, at, key, state, metadata);
    l2->lines[at].below = (uint32_t)place;
    fill_l1(machine, core, key, state, metadata);
    if (metadata)
        llc->lines[place].held = true;
    else
        llc->lines[place].sharers |= UINT64_C(1) << core;
    rf_cache_touch(llc, place);
}

/* ---- data ---- */

static void set_state(struct rf_machine *machine, uint32_t core, uint64_t key, enum rf_mesi state)
{
    size_t l1 = rf_cache_find(&machine->l1[core], key), l2 = rf_cache_find(&machine->l2[core], key);
    if (l1 != RF_NOWHERE)
        machine->l1[core].lines[l1].state = (uint8_t)state;
    if (l2 != RF_NOWHERE)
        machine->l2[core].lines[l2].state = (uint8_t)state;
}

/* Takes the line from all other cores, or leaves it to them shared; true: one of them had it modified. */
static bool take_from_others(struct rf_machine *machine, uint32_t core, uint64_t key, size_t place, bool write)
{
    struct rf_line *line = &machine->llc.lines[place];
    uint64_t others = line->sharers & ~(UINT64_C(1) << core);
    bool modified = false;
    for (uint64_t left = others; left; left &= left - 1) {
        uint32_t other = (uint32_t)__builtin_ctzll(left);
        struct rf_line *held = &machine->l2[other].lines[rf_cache_find(&machine->l2[other], key)];
        modified |= held->state == RF_MODIFIED;
        if (!write && held->state != RF_SHARED && RF_HOLDS(machine->broken, SHARE))
            set_state(machine, other, key, RF_SHARED);
    }
    if (modified)
        line->state = RF_MODIFIED;
    if (write && RF_HOLDS(machine->broken, INVALIDATE)) {
        drop_private(machine, others, key);
        line->sharers &= ~others;
    }
    return modified;
}

static void alone(struct rf_machine *machine, uint32_t core, uint64_t key)
{
    if (machine->exclusive)
        machine->exclusive(machine->context, core, key & RF_KEY_LINE);
}

/* A write to a line that the core has: from shared it asks the others first. */
static uint32_t write_hit(struct rf_machine *machine, uint32_t core, uint64_t key, enum rf_mesi state)
{
    uint32_t cycles = 0;
    if (state == RF_SHARED) {
        take_from_others(machine, core, key, rf_cache_find(&machine->llc, key), true);
        machine->traffic.upgrades++;
        machine->bus = true;
        cycles = (uint32_t)machine->config->bus_cycles;
    }
    if (state != RF_MODIFIED)
        set_state(machine, core, key, RF_MODIFIED);
    if (state == RF_SHARED)
        alone(machine, core, key);
    return cycles;
}

static uint32_t miss(struct rf_machine *machine, uint32_t core, uint64_t key, bool write)
{
    const struct rf_config *config = machine->config;
    size_t place = rf_cache_find(&machine->llc, key);
    bool found = place != RF_NOWHERE, modified = false;
    if (found) {
        modified = take_from_others(machine, core, key, place, write);
    } else {
        place = room_in_llc(machine, key);
        rf_cache_put(&machine->llc, place, key, RF_SHARED, NULL);
    }
    bool others = (machine->llc.lines[place].sharers & ~(UINT64_C(1) << core)) != 0;
    if (!write && !others && machine->shared)
        others = machine->shared(machine->context, core, key & RF_KEY_LINE);
    enum rf_mesi state = write ? RF_MODIFIED : others ? RF_SHARED : RF_EXCLUSIVE;
    if (write)
        machine->llc.lines[place].state = RF_MODIFIED;
    fill_private(machine, core, key, state, place, NULL);
    machine->bus = true;
    if (state != RF_SHARED)
        alone(machine, core, key);
    if (!found) {
        machine->traffic.memory_reads++;
        return (uint32_t)config->memory_cycles;
    }
    machine->traffic.llc_hits++;
    machine->traffic.transfers += modified;
    return (uint32_t)(config->llc_cycles + (modified ? config->bus_cycles : 0));
}

uint32_t rf_machine_access(struct rf_machine *machine, uint32_t core, uint64_t line, bool write)
{
    const struct rf_config *config = machine->config;
    struct rf_cache *l1 = &machine->l1[core], *l2 = &machine->l2[core];
    uint64_t key = rf_key_data(line);
    machine->bus = false;
    size_t at = rf_cache_find(l1, key);
    if (__builtin_expect(at != RF_NOWHERE, 1)) {
        enum rf_mesi state = (enum rf_mesi)l1->lines[at].state;
        rf_cache_touch(l1, at);
        machine->traffic.l1_hits++;
        return (uint32_t)config->l1_cycles + (write && state != RF_MODIFIED ? write_hit(machine, core, key, state) : 0);
    }
    at = rf_cache_find(l2, key);
    if (at != RF_NOWHERE) {
        enum rf_mesi state = (enum rf_mesi)l2->lines[at].state;
        rf_cache_touch(l2, at);
        machine->traffic.l2_hits++;
        fill_l1(machine, core, key, state, NULL);
        return (uint32_t)config->l2_cycles + (write && state != RF_MODIFIED ? write_hit(machine, core, key, state) : 0);
    }
    return miss(machine, core, key, write);
}

/* ---- metadata ---- */

struct rf_metadata *rf_machine_metadata(struct rf_machine *machine, uint32_t core, uint64_t key, uint32_t *cycles)
{
    const struct rf_config *config = machine->config;
    struct rf_cache *l1 = &machine->l1[core], *l2 = &machine->l2[core];
    size_t at = rf_cache_find(l1, key);
    if (__builtin_expect(at != RF_NOWHERE, 1)) {
        rf_cache_touch(l1, at);
        *cycles += (uint32_t)config->l1_cycles;
        return l1->lines[at].metadata;
    }
    at = rf_cache_find(l2, key);
    if (at != RF_NOWHERE) {
        struct rf_metadata *metadata = l2->lines[at].metadata;
        rf_cache_touch(l2, at);
        fill_l1(machine, core, key, RF_EXCLUSIVE, metadata);
        *cycles += (uint32_t)config->l2_cycles;
        return metadata;
    }
    at = rf_cache_find(&machine->llc, key);
    *cycles += (uint32_t)config->llc_cycles; /* also to find out that it is not there */
    if (at == RF_NOWHERE)
        return NULL;
    struct rf_metadata *metadata = machine->llc.lines[at].metadata;
    fill_private(machine, core, key, RF_EXCLUSIVE, at, metadata);
    return metadata;
}

void rf_machine_insert(struct rf_machine *machine, uint32_t core, uint64_t key, struct rf_metadata *metadata)
{
    size_t place = room_in_llc(machine, key);
    rf_cache_put(&machine->llc, place, key, RF_EXCLUSIVE, metadata);
    fill_private(machine, core, key, RF_EXCLUSIVE, place, metadata);
    machine->traffic.metadata_fills++;
}

uint32_t rf_machine_remove(struct rf_machine *machine, uint64_t key)
{
    size_t place = rf_cache_find(&machine->llc, key);
    if (place == RF_NOWHERE)
        return 0;
    uint64_t sharers = holders(key, &machine->llc.lines[place]);
    drop_private(machine, sharers, key);
    rf_cache_clear(&machine->llc, place);
    return (uint32_t)(sharers ? machine->config->l2_cycles : machine->config->llc_cycles);
}

uint64_t rf_traffic_lines(const struct rf_traffic *traffic)
{
    return traffic->llc_hits + traffic->memory_reads + traffic->upgrades + traffic->write_backs + traffic->broadcasts +
           traffic->metadata_fills;
}
