/* See hardware/machine.h. */
#include "hardware/machine.h"

#include "hardware/large.h"
#include "hardware/rules.h"
#include "trace/grow.h"

/* One cache, its sets at their place if there is memory; returns how many bytes they take. */
static size_t cache_init(struct rf_cache *cache, unsigned char *at, bool last, uint64_t bytes, uint64_t ways,
                         const struct rf_config *config)
{
    size_t sets = (size_t)(bytes / config->line_bytes / ways);
    cache->ways = (uint32_t)ways;
    for (cache->shift = 3; 1u << cache->shift < ways;)
        cache->shift++;
    cache->words = 1u << (cache->shift - 3);
    cache->mask = sets - 1;
    cache->stride = last ? (uint32_t)(config->cores + 7) / 8 : 0;
    size_t block = (sizeof(rf_key) + 2 + cache->stride) << cache->shift; /* cache.h */
    for (cache->block = 6; (size_t)1 << cache->block < block;)
        cache->block++;
    cache->sets = at;
    for (size_t set = 0; at && set < sets; set++)
        for (uint32_t way = 0; way < 8 * cache->words; way++) /* what is no way is no byte of a way either */
            rf_cache_order(cache, last ? RF_COMMON : RF_PRIVATE, set)[way / 8] |= (uint64_t)(way < ways ? way : 255)
                                                                                  << way % 8 * 8;
    return sets << cache->block;
}

/* All caches are one block: together they are worth large pages. The blocks of the last level, the longest, come first, so that each
 * begins at a multiple of its length. */
static size_t caches_init(struct rf_machine *machine, unsigned char *at)
{
    const struct rf_config *config = machine->config;
    size_t done = cache_init(&machine->llc, at, true, config->llc_bytes, config->llc_ways, config);
    for (uint32_t core = 0; core < config->cores; core++)
        done += cache_init(&machine->l1[core], at ? at + done : NULL, false, config->l1_bytes, config->l1_ways, config);
    for (uint32_t core = 0; core < config->cores; core++)
        done += cache_init(&machine->l2[core], at ? at + done : NULL, false, config->l2_bytes, config->l2_ways, config);
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

/* The set of a cache for a line that `outer` has in this set: which says it, if it has as many. */
static uint64_t set_from(const struct rf_machine *machine, const struct rf_cache *cache, const struct rf_cache *outer,
                         uint64_t set, rf_key key)
{
    if (__builtin_expect(cache->mask <= outer->mask, 1))
        return set & cache->mask;
    if (!(key & RF_KEY_METADATA))
        return key & cache->mask;
    const struct rf_metadata *line = rf_key_contents(machine, key);
    return rf_metadata_sets(line->number, line->core) & cache->mask;
}

/* Takes a line from a core of which the second level has it at this place. */
static void drop_from(struct rf_machine *machine, uint32_t core, rf_key key, size_t at)
{
    struct rf_cache *l1 = &machine->l1[core], *l2 = &machine->l2[core];
    rf_cache_drop(l1, RF_PRIVATE, set_from(machine, l1, l2, rf_cache_set_at(l2, RF_PRIVATE, at), key), key);
    rf_cache_clear(l2, RF_PRIVATE, at);
}

/* Takes a line of the last level from private caches. */
static void drop_private(struct rf_machine *machine, uint64_t sharers, size_t place)
{
    rf_key key = *rf_cache_key(&machine->llc, RF_COMMON, place);
    uint64_t set = rf_cache_set_at(&machine->llc, RF_COMMON, place);
    for (; sharers; sharers &= sharers - 1) {
        const struct rf_cache *l2 = &machine->l2[__builtin_ctzll(sharers)];
        size_t at = rf_cache_find_in(l2, RF_PRIVATE, set_from(machine, l2, &machine->llc, set, key), key);
        if (RF_RARELY(at != RF_NOWHERE)) /* or it is not in the first level either */
            drop_from(machine, (uint32_t)__builtin_ctzll(sharers), key, at);
    }
}

/* The last level is inclusive: what leaves it leaves all. */
static __attribute__((noinline)) size_t room_in_llc(struct rf_machine *machine, uint64_t sets)
{
    struct rf_cache *llc = &machine->llc;
    size_t place = rf_cache_place(llc, RF_COMMON, sets & llc->mask, machine->pinned);
    rf_key victim = *rf_cache_key(llc, RF_COMMON, place);
    if (!victim)
        return place;
    if (victim & RF_KEY_METADATA)
        rf_host_prefetch(rf_key_contents(machine, victim));
    drop_private(machine, rf_cache_sharers(llc, RF_COMMON, place), place);
    rf_cache_clear(llc, RF_COMMON, place);
    if (victim & RF_KEY_METADATA) {
        machine->evicted(machine->context, rf_key_contents(machine, victim));
    } else {
        machine->traffic.data_evictions++;
        machine->traffic.write_backs += *rf_cache_state(llc, RF_COMMON, place) == RF_MODIFIED;
    }
    return place;
}

/* These are in the way of every miss. */
#define INLINE static inline __attribute__((always_inline))

/* `sets`: see rf_machine_prefetch(). */
INLINE size_t fill_l1(struct rf_machine *machine, uint32_t core, uint64_t sets, rf_key key, enum rf_mesi state)
{
    struct rf_cache *l1 = &machine->l1[core];
    rf_key victim;
    return rf_cache_replace(l1, sets & l1->mask, key, state, &victim);
}

/* Into the second level of a core, of which the first then may have it; `place` is where the last level has it. */
INLINE size_t fill_l2(struct rf_machine *machine, uint32_t core, uint64_t sets, rf_key key, enum rf_mesi state, size_t place)
{
    struct rf_cache *l1 = &machine->l1[core], *l2 = &machine->l2[core], *llc = &machine->llc;
    rf_key victim;
    uint64_t set = sets & l2->mask;
    size_t at = rf_cache_replace(l2, set, key, state, &victim);
    if (RF_MOSTLY(victim))
        rf_cache_drop(l1, RF_PRIVATE, set_from(machine, l1, l2, set, victim), victim);
    rf_cache_share(llc, RF_COMMON, place, core);
    rf_cache_touch(llc, RF_COMMON, place);
    return at;
}

/* ---- data ---- */

/* In both levels of a core, of which the second has the line at this place. */
static void set_states(struct rf_machine *machine, uint32_t core, rf_key key, size_t at, enum rf_mesi state)
{
    struct rf_cache *l1 = &machine->l1[core], *l2 = &machine->l2[core];
    size_t first = rf_cache_find(l1, RF_PRIVATE, key);
    if (first != RF_NOWHERE)
        *rf_cache_state(l1, RF_PRIVATE, first) = (uint8_t)state;
    *rf_cache_state(l2, RF_PRIVATE, at) = (uint8_t)state;
}

/* Takes the line from all other cores, or leaves it to them shared; true: one of them had it modified. Afterwards the last level
 * knows exactly who of the others has it (machine.h, 1.). */
static __attribute__((noinline)) bool take_from_others(struct rf_machine *machine, uint32_t core, rf_key key, size_t place,
                                                       bool write)
{
    bool modified = false;
    for (uint64_t left = rf_cache_sharers(&machine->llc, RF_COMMON, place) & ~(UINT64_C(1) << core); left;
         left &= left - 1) {
        uint32_t other = (uint32_t)__builtin_ctzll(left);
        size_t at = rf_cache_find(&machine->l2[other], RF_PRIVATE, key);
        if (at == RF_NOWHERE) {
            rf_cache_unshare(&machine->llc, RF_COMMON, place, other);
            continue;
        }
        enum rf_mesi state = (enum rf_mesi) * rf_cache_state(&machine->l2[other], RF_PRIVATE, at);
        modified |= state == RF_MODIFIED;
        if (!write && state != RF_SHARED && RF_HOLDS(machine->broken, SHARE))
            set_states(machine, other, key, at, RF_SHARED);
        if (write && RF_HOLDS(machine->broken, INVALIDATE)) {
            drop_from(machine, other, key, at);
            rf_cache_unshare(&machine->llc, RF_COMMON, place, other);
        }
    }
    if (modified)
        *rf_cache_state(&machine->llc, RF_COMMON, place) = RF_MODIFIED;
    return modified;
}

static void alone(struct rf_machine *machine, uint32_t core, rf_key key)
{
    if (machine->exclusive && rf_key_is_data(key))
        machine->exclusive(machine->context, core, rf_key_line(key));
}

/* A write to a line that the core has, not modified: from shared it asks the others first. `first` and `second` are where its levels
 * have it. */
static __attribute__((noinline)) uint32_t write_hit(struct rf_machine *machine, uint32_t core, rf_key key,
                                                    enum rf_mesi state, size_t first, size_t second)
{
    uint32_t cycles = 0;
    if (state == RF_SHARED) {
        take_from_others(machine, core, key, rf_cache_find(&machine->llc, RF_COMMON, key), true);
        machine->traffic.upgrades++;
        machine->bus = true;
        cycles = (uint32_t)machine->config->bus_cycles;
    }
    *rf_cache_state(&machine->l1[core], RF_PRIVATE, first) = RF_MODIFIED;
    *rf_cache_state(&machine->l2[core], RF_PRIVATE, second) = RF_MODIFIED;
    if (state == RF_SHARED)
        alone(machine, core, key);
    return cycles;
}

INLINE uint32_t miss(struct rf_machine *machine, uint32_t core, rf_key key, bool write)
{
    const struct rf_config *config = machine->config;
    size_t place = rf_cache_find(&machine->llc, RF_COMMON, key);
    bool found = place != RF_NOWHERE, modified = false;
    if (found) {
        if (rf_cache_sharers(&machine->llc, RF_COMMON, place) & ~(UINT64_C(1) << core))
            modified = take_from_others(machine, core, key, place, write);
    } else {
        place = room_in_llc(machine, key);
        rf_cache_put(&machine->llc, RF_COMMON, place, key, RF_SHARED);
    }
    uint32_t others = (rf_cache_sharers(&machine->llc, RF_COMMON, place) & ~(UINT64_C(1) << core)) != 0;
    if (rf_key_is_data(key) & !write & !others && machine->shared)
        others = machine->shared(machine->context, core, rf_key_line(key));
    /* arithmetic, where a host that had to guess would often be wrong: a write is RF_MODIFIED, what others have is RF_SHARED */
    enum rf_mesi state = (enum rf_mesi)(RF_EXCLUSIVE + write - (others & !write));
    *rf_cache_state(&machine->llc, RF_COMMON, place) |= (uint8_t)(write * RF_MODIFIED);
    fill_l2(machine, core, key, key, state, place);
    fill_l1(machine, core, key, key, state);
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

uint32_t rf_machine_far(struct rf_machine *machine, uint32_t core, rf_key key, bool write, size_t at)
{
    const struct rf_config *config = machine->config;
    struct rf_cache *l1 = &machine->l1[core], *l2 = &machine->l2[core];
    size_t second = rf_cache_find(l2, RF_PRIVATE, key);
    if (at != RF_NOWHERE) { /* a write to a line that is not modified */
        rf_cache_touch(l1, RF_PRIVATE, at);
        machine->traffic.l1_hits++;
        return (uint32_t)config->l1_cycles +
               write_hit(machine, core, key, (enum rf_mesi) * rf_cache_state(l1, RF_PRIVATE, at), at, second);
    }
    if (second != RF_NOWHERE) {
        enum rf_mesi state = (enum rf_mesi) * rf_cache_state(l2, RF_PRIVATE, second);
        rf_cache_touch(l2, RF_PRIVATE, second);
        machine->traffic.l2_hits++;
        at = fill_l1(machine, core, key, key, state);
        return (uint32_t)config->l2_cycles +
               (write && state != RF_MODIFIED ? write_hit(machine, core, key, state, at, second) : 0);
    }
    return miss(machine, core, key, write);
}

/* ---- metadata ---- */

static void fill_private(struct rf_machine *machine, struct rf_metadata *line, uint64_t sets, rf_key key)
{
    line->l2 = (uint32_t)fill_l2(machine, line->core, sets, key, RF_EXCLUSIVE, line->llc);
    line->l1 = (uint32_t)fill_l1(machine, line->core, sets, key, RF_EXCLUSIVE);
}

uint32_t rf_machine_metadata_far(struct rf_machine *machine, struct rf_metadata *line)
{
    const struct rf_config *config = machine->config;
    struct rf_cache *l2 = &machine->l2[line->core];
    uint64_t sets = rf_metadata_sets(line->number, line->core);
    rf_key key = rf_key_metadata(machine, line);
    if (*rf_cache_key(l2, RF_PRIVATE, line->l2) == key) {
        rf_cache_touch(l2, RF_PRIVATE, line->l2);
        line->l1 = (uint32_t)fill_l1(machine, line->core, sets, key, RF_EXCLUSIVE);
        return (uint32_t)config->l2_cycles;
    }
    fill_private(machine, line, sets, key);
    return (uint32_t)config->llc_cycles;
}

void rf_machine_insert(struct rf_machine *machine, struct rf_metadata *line)
{
    uint64_t sets = rf_metadata_sets(line->number, line->core);
    rf_key key = rf_key_metadata(machine, line);
    line->llc = (uint32_t)room_in_llc(machine, sets);
    rf_cache_put(&machine->llc, RF_COMMON, line->llc, key, RF_EXCLUSIVE);
    fill_private(machine, line, sets, key);
    machine->traffic.metadata_fills++;
}

void rf_machine_remove(struct rf_machine *machine, struct rf_metadata *line)
{
    drop_private(machine, UINT64_C(1) << line->core, line->llc);
    rf_cache_clear(&machine->llc, RF_COMMON, line->llc);
}

uint64_t rf_traffic_lines(const struct rf_traffic *traffic)
{
    return traffic->llc_hits + traffic->memory_reads + traffic->upgrades + traffic->write_backs + traffic->broadcasts +
           traffic->metadata_fills;
}
