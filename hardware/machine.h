/* The multicore without its detector: private first and second levels, a shared last level, MESI by broadcast, and time.
 *
 * 1. What is in a first level is in its core's second level; what is in a second level is in the last level, which knows the
 *    cores that may hold a line, and looks there when it matters. (In hardware the broadcast finds them; knowing where to look
 *    only makes the simulation fast.)
 * 2. A core that holds a line exclusive or modified is the only one that holds it. A metadata line is in the private caches of
 *    one core at most: its own.
 * 3. `exclusive` is told whenever a bus transaction leaves a core alone with a data line, before the access goes on. `evicted`
 *    is told when a metadata line has left the last level. `shared` may say that a line which no other core has must be shared all
 *    the same. None of them touches the caches.
 *
 * The cost of an access: the latency of the level that has the line (l1_cycles ... memory_cycles); a line that another core has
 * modified comes from there, for llc_cycles + bus_cycles; an upgrade from shared costs bus_cycles more than the hit. Write-backs
 * and evictions cost no time: they hide behind the miss that causes them. They count as traffic.
 */
#ifndef RF_HARDWARE_MACHINE_H
#define RF_HARDWARE_MACHINE_H

#include "hardware/cache.h"
#include "hardware/config.h"
#include "hardware/host.h"

/* Counted per machine; lines are data and metadata alike unless it says otherwise. */
struct rf_traffic {
    uint64_t l1_hits, l2_hits, llc_hits, memory_reads; /* where accesses found their line */
    uint64_t transfers;                                /* lines that came out of another core's caches */
    uint64_t upgrades;
    uint64_t write_backs;
    uint64_t broadcasts;         /* for metadata alone: fills, hardware checks and downgrades that no data message carried */
    uint64_t metadata_fills;     /* metadata lines that were made in a cache */
    uint64_t metadata_evictions; /* metadata lines that left the last level, for whatever reason */
    uint64_t data_evictions;     /* data lines that left the last level */
};

struct rf_machine {
    const struct rf_config *config;
    uint64_t broken; /* rules, for tests */
    struct rf_cache *l1, *l2, llc;
    void *caches; /* the arrays of all of them */
    size_t cache_bytes;
    uint32_t line_bits;
    struct rf_metadata *lines; /* by the rest of a metadata line's key: its contents */
    rf_key pinned;             /* a key that the last level keeps */
    bool bus;                  /* the last access went over the bus */
    void (*exclusive)(void *context, uint32_t core, uint64_t line);
    bool (*shared)(void *context, uint32_t core, uint64_t line);
    void (*evicted)(void *context, struct rf_metadata *metadata);
    void *context;
    struct rf_traffic traffic;
};

RF_ROOM void rf_machine_init(struct rf_machine *machine, const struct rf_config *config, uint64_t broken);
RF_ROOM void rf_machine_free(struct rf_machine *machine);

static inline uint32_t rf_line_bits(const struct rf_machine *machine)
{
    return RF_USUAL ? (uint32_t)__builtin_ctz(RF_USUAL_LINE) : machine->line_bits;
}

static inline rf_key rf_key_metadata(const struct rf_machine *machine, const struct rf_metadata *line)
{
    return RF_KEY_METADATA | (rf_key)(line - machine->lines);
}

static inline struct rf_metadata *rf_key_contents(const struct rf_machine *machine, rf_key key)
{
    return machine->lines + (key & ~RF_KEY_METADATA);
}

/* Where a line is in any cache, if its mask is applied. */
static inline uint64_t rf_metadata_sets(uint64_t number, uint32_t core)
{
    return number + RF_CORE_SETS * core;
}

/* What is not a simple hit: `at` is where the first level has the line. */
RF_ROOM uint32_t rf_machine_far(struct rf_machine *machine, uint32_t core, rf_key key, bool write, size_t at);
RF_ROOM uint32_t rf_machine_metadata_far(struct rf_machine *machine, struct rf_metadata *line);

/* An access to a line that is not metadata; returns cycles. */
static inline uint32_t rf_machine_touch(struct rf_machine *machine, uint32_t core, rf_key key, bool write)
{
    struct rf_cache *l1 = &machine->l1[core];
    size_t at = rf_cache_find(l1, RF_PRIVATE, key);
    machine->bus = false;
    if (__builtin_expect(at == RF_NOWHERE, 0))
        return rf_machine_far(machine, core, key, write, at);
    if (__builtin_expect(write && *rf_cache_state(l1, RF_PRIVATE, at) != RF_MODIFIED, 0))
        return rf_machine_far(machine, core, key, write, at);
    rf_cache_touch(l1, RF_PRIVATE, at);
    machine->traffic.l1_hits++;
    return (uint32_t)machine->config->l1_cycles;
}

/* The same for a line of the program's, by its number. */
static inline uint32_t rf_machine_access(struct rf_machine *machine, uint32_t core, uint64_t line, bool write)
{
    return rf_machine_touch(machine, core, rf_key_data(line), write);
}

/* Brings what an access will look at in the last level into the host's caches; `sets` is the line's key, or rf_metadata_sets(). Nothing
 * is simulated. */
static inline void rf_machine_prefetch(const struct rf_machine *machine, uint64_t sets)
{
    const struct rf_cache *llc = &machine->llc;
    const unsigned char *block = rf_cache_at(llc, RF_COMMON, sets & llc->mask);
    for (uint32_t at = 0; at < 1u << rf_cache_block(llc, RF_COMMON); at += RF_HOST_LINE)
        rf_host_prefetch(block + at);
}

/* The same for a second level. */
static inline void rf_machine_prefetch_second(const struct rf_machine *machine, uint32_t core, uint64_t sets)
{
    const struct rf_cache *l2 = &machine->l2[core];
    rf_host_prefetch(rf_cache_at(l2, RF_PRIVATE, sets & l2->mask));
}

/* The same for the private caches. What there is of them is small, but not so small that it stays in the host's first level. */
static inline void rf_machine_prefetch_private(const struct rf_machine *machine, uint32_t core, uint64_t sets)
{
    const struct rf_cache *l1 = &machine->l1[core];
    rf_host_prefetch(rf_cache_at(l1, RF_PRIVATE, sets & l1->mask));
    rf_machine_prefetch_second(machine, core, sets);
}

/* An access to a metadata line that is in some cache; returns cycles. */
static inline uint32_t rf_machine_metadata(struct rf_machine *machine, struct rf_metadata *line)
{
    struct rf_cache *l1 = &machine->l1[line->core];
    if (__builtin_expect(*rf_cache_key(l1, RF_PRIVATE, line->l1) != rf_key_metadata(machine, line), 0))
        return rf_machine_metadata_far(machine, line);
    rf_cache_touch(l1, RF_PRIVATE, line->l1);
    return (uint32_t)machine->config->l1_cycles;
}

/* Makes room for a metadata line that is in no cache, and puts it there. */
RF_ROOM void rf_machine_insert(struct rf_machine *machine, struct rf_metadata *line);
/* Takes a metadata line out of all caches, without telling `evicted`. */
RF_ROOM void rf_machine_remove(struct rf_machine *machine, struct rf_metadata *line);

/* All lines that went over a bus or to memory: what "traffic" means in reports. */
RF_ROOM uint64_t rf_traffic_lines(const struct rf_traffic *traffic);

#endif
