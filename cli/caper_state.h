/* What `redflag caper` (cli/caper.c) knows: pairs, and the file of sites and origins.
 *
 * 1. A line of the file is "- SITE PLACE", or "+ SITE PLACE" once the site was seen to access memory that several threads can reach; "a SITE"
 *    or "! SITE", an origin whose memory has escaped (guest/origins.h), and "p SITE PLACE", where it is; "z": a run has found nothing new;
 *    "c SITE PLACE", a line without a hook that counts as escaped, and "k": there are no others (cli/caper_calls.c).
 * 2. Lines are only ever added, under a lock of the file, but for the runtime's '+', which takes the place of a '-'.
 */
#ifndef RF_CLI_CAPER_STATE_H
#define RF_CLI_CAPER_STATE_H

#include <stdio.h>

#include "cli/caper_facts.h"
#include "cli/pair_list.h"
#include "cli/program_sites.h"
#include "fleet/store.h"

#define RF_CAPER_WHO "redflag caper"

struct rf_caper_site {
    char *name, *place;
    bool escaped;
    bool call; /* no site: a line without a hook that may access memory unheard (cli/caper_calls.c) */
};

/* A line "a SITE" or "! SITE", or "p SITE PLACE" of the state file. */
struct rf_caper_origin {
    char letter, *name, *place;
};

struct rf_caper {
    const char *pairs_path, *where, *facts_path;
    char *state;
    bool show, quiet;
    char **program;
    struct rf_pair_list pairs;
    bool *escaped;               /* by name of these */
    struct rf_caper_site *sites; /* of the state file */
    size_t site_count, site_capacity;
    struct rf_caper_origin *origins; /* of the state file */
    size_t origin_count, origin_capacity;
    bool steady; /* a run has found nothing new */
    bool calls_known;
    struct rf_facts *facts;
    struct rf_store *store;
};

/* -- cli/caper_state.c: what returns an int returns 0, or the status to end with, and has said why -- */

int rf_caper_failed(const char *path); /* says errno */
char *rf_caper_copy(const char *text);
int rf_caper_read_pairs(struct rf_caper *caper);
int rf_caper_pairs_of_store(struct rf_caper *caper);
/* Of an origin, as the file has it; NULL: it does not have it. */
const char *rf_caper_place_of_origin(const struct rf_caper *caper, const char *name);
/* What the file says of memory that has escaped becomes known to the facts. */
void rf_caper_apply_origins(struct rf_caper *caper);
int rf_caper_read_state(struct rf_caper *caper);
/* All sites of the program that a pair names are in the file. */
int rf_caper_add_sites(struct rf_caper *caper, const struct rf_site_list *list);
int rf_caper_by_site(const void *a, const void *b); /* for qsort() and bsearch() of sites */

/* Does a name of a pair mean this site? As sites/list.h has it: by the site's own name, or by the end of its file's path. */
bool rf_caper_means(const char *name, const struct rf_caper_site *site);
/* For qsort(): by what the place of a site and all names for it have in common, the file without its directory, and the line. */
int rf_caper_by_end(const void *a, const void *b);

/* -- cli/caper_calls.c -- */

/* Adds what lines without hooks are to be judged by. hooked: by name of the pairs; known: so many sites were there before, by name. */
void rf_caper_add_calls(struct rf_caper *caper, const struct rf_site_list *list, const bool *hooked, size_t known,
                        FILE *file);

/* -- cli/caper_idle.c -- */

/* Writes it; its path, which the caller frees. NULL: there is none. */
char *rf_caper_write_idle(struct rf_caper *caper, const struct rf_site_list *list);

#endif
