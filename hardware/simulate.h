/* A recorded execution on two machines at once: one with RADISH, one without.
 *
 * 1. Both machines see the same events in the order of the trace, the same pages, and the same threads on the same cores. They differ
 *    in what is in their caches and in their time.
 * 2. Each core has a time. An access, an operation or a switch adds its cost. Whoever receives (acquires, joins, waits, starts) waits
 *    until what it receives was handed over. A run lasts until the last core is done.
 * 3. A thread runs where it ran last if it can; else on a free core; else it takes the core whose thread has been silent for longest.
 *    A thread that performs for another (`ident`) keeps its core: the other's identity comes there, which RADISH handles as
 *    a context switch (4.3.2) and the machine without it need not.
 * 4. Memory grows with what the program touches, with threads, objects and races, never with the length of the trace.
 */
#ifndef RF_HARDWARE_SIMULATE_H
#define RF_HARDWARE_SIMULATE_H

#include "hardware/ahead.h"
#include "hardware/radish.h"
#include "trace/trace.h"

enum { RF_WITHOUT, RF_WITH, RF_MACHINES };

struct rf_hardware_race {
    uint64_t number, addr;
    uint32_t size, thread, site;
};

/* What accesses of one site, or to one variable, came to. */
struct rf_tally {
    uint64_t key; /* the site, or the address of the granule */
    struct rf_checks checks;
    uint64_t extra_cycles; /* with RADISH over without */
};

struct rf_tallies {
    struct rf_map places; /* key -> place in the list, plus 1 */
    struct rf_tally *list;
    uint32_t count, cap;
};

struct rf_simulated_thread {
    uint32_t core, last_core;
    uint32_t carrier; /* the thread that performs its events: itself, unless another was identified with it */
    uint64_t ready[RF_MACHINES];
};

struct rf_simulated_core {
    uint32_t carrier, thread; /* RF_UNKNOWN: none */
    uint64_t last;            /* event */
};

struct rf_simulation {
    struct rf_config config;
    bool usual; /* its events are run by hardware/usual.c */
    struct rf_memory memory;
    struct rf_options options;
    struct rf_engine engine;
    struct rf_order order;
    struct rf_pages pages;
    struct rf_radish radish;
    struct rf_machine baseline;
    struct rf_ahead ahead;
    uint64_t times[RF_MACHINES][RF_MAX_CORES];
    struct rf_simulated_core cores[RF_MAX_CORES];
    struct rf_simulated_thread *threads;
    uint32_t thread_cap;
    uint32_t placed, placed_core;     /* the thread that acted last, if it is still where it acted; or RF_UNKNOWN */
    struct rf_map objects[RF_SPACES]; /* key -> struct object * */
    uint64_t events, accesses, switches, identities;
    /* races, one a byte */
    struct rf_map racy; /* granule -> its bytes that had a race, a bit each */
    struct rf_hardware_race *races;
    uint32_t race_count, race_cap;
    const struct rf_event *event; /* the present one, and its number */
    uint64_t number;
    /* on request */
    bool tally_sites, tally_variables;
    struct rf_tallies sites, variables;
    const char *(*site_name)(const void *names, uint32_t site);
    const void *names;
    uint8_t *site_tracked; /* 0: not asked yet, 1: tracked, 2: not */
    uint32_t site_cap;
};

/* `broken` rules are for tests; 0. The configuration is copied; rf_config_check() has passed it. */
void rf_simulation_init(struct rf_simulation *simulation, const struct rf_config *config, uint64_t broken);
void rf_simulation_free(struct rf_simulation *simulation);
void rf_simulation_run(struct rf_simulation *simulation, const struct rf_batch *batch);
/* From here on `performer` acts where `thread` is (an `ident` of the trace, which resolving takes away). */
RF_ROOM void rf_simulation_identify(struct rf_simulation *simulation, uint32_t thread, uint32_t performer);

/* ---- for the files of this room ---- */

/* run.c: what is told of races and by the machine comes here; and the events. */
RF_ROOM void rf_events_begin(struct rf_simulation *simulation);
RF_ROOM void rf_events_run(struct rf_simulation *simulation, const struct rf_batch *batch);
/* usual.c: the same, for a machine of the usual form. */
bool rf_is_usual(const struct rf_config *config);
void rf_usual_begin(struct rf_simulation *simulation);
void rf_usual_run(struct rf_simulation *simulation, const struct rf_batch *batch);

/* ---- ---- */

/* Feeds a whole trace to several simulations. `progress` may be NULL. */
typedef void rf_simulate_progress_fn(void *context, const struct rf_reader *reader);
enum rf_trace_status rf_simulate(struct rf_reader *reader, struct rf_simulation *simulations, size_t count,
                                 rf_simulate_progress_fn *progress, void *context);

/* When the last core is done. */
uint64_t rf_simulation_cycles(const struct rf_simulation *simulation, int machine);
/* With over without; 1 for a trace without events. */
double rf_simulation_slowdown(const struct rf_simulation *simulation);

#endif
