/* What detectors want to know of sites: their function (LiteRace) and whether they are one of a pair (LiteHB).
 *
 * 1. The thread that fetches a chunk fills in the sites that the chunk declares, before it hands the chunk on. Blocks never
 *    move. So a worker, which sees a site only in a chunk that was handed to it, reads without a lock.
 */
#ifndef RF_REPLAY_SITES_H
#define RF_REPLAY_SITES_H

#include "trace/trace.h"

#define RF_SITE_BLOCK 4096u
#define RF_SITE_BLOCKS (1u << 20)

struct rf_site_info {
    uint32_t function;
    uint32_t class; /* bit 0: the first of the pair, bit 1: the second */
};

struct rf_function {
    uint32_t number;
    char name[];
};

struct rf_sites {
    const char *pair[2];
    uint32_t known; /* sites filled in */
    struct rf_site_info **blocks;
    struct rf_function **functions; /* a hash table by name */
    uint32_t function_count, function_cap;
};

void rf_sites_init(struct rf_sites *sites, const char *const pair[2]);
void rf_sites_update(struct rf_sites *sites, const struct rf_reader *reader);
void rf_sites_end(struct rf_sites *sites);

/* For struct rf_options. */
uint32_t rf_sites_class(void *sites, uint32_t site);
uint32_t rf_sites_function(void *sites, uint32_t site);

#endif
