/* Which allocations of the program make blocks that escape, for Caper: what `redflag caper` knows of each line (static/facts.h) tells
 * which sites can never have accessed such a block. Their hooks are asleep: taken out of the code, although they have not escaped.
 *
 * 1. An origin is the place behind a call of malloc or one of its kin in an instrumented module; the stacks of all threads are one
 *    together. Blocks that others allocate, such as libraries, need not be told: to the facts they have escaped from the start.
 * 2. Before a block counts as escaped, its origin is written to the file of sites, once for each origin: "a SITE", or "! SITE" if hooks
 *    are asleep in this run; then sites of that memory may have escaped without being seen, and count as if they had (cli/caper.c).
 *    Origins that were known when the list of sleepers was made are not written: that list goes by them.
 * 3. A block that is not private from its first moment (guest/escape.h, 1) has escaped when it is allocated.
 */
#ifndef RF_GUEST_ORIGINS_H
#define RF_GUEST_ORIGINS_H

#include "guest/hot.h"
#include "sites/scan.h"

#define RF_ORIGIN_STACK ((uintptr_t)1)
#define RF_ORIGIN_ANY ((uintptr_t)2) /* not known */

extern bool rf_origins_on RF_OURS; /* set before there are threads */

void rf_origins_begin(const char *path, bool sleepers);
void rf_origins_module(const struct rf_image *image, const char *id); /* under the lock of guest/modules.c */
void rf_origins_known(uintptr_t pc);                                  /* the same; or while there is one thread */
void rf_origins_escape(uintptr_t pc);                                 /* a block of it. Any thread, any time */
void rf_origins_escape_note(uint32_t note);                           /* the same, of a block with that note */
uint32_t
rf_origins_note(uintptr_t pc);     /* what a block that is allocated there keeps of it; 0: nothing. Any thread, any time */
void rf_origins_finish(bool lost); /* `lost`: the file is not what it was */

static inline void rf_origin_escapes(uintptr_t pc)
{
    if (__builtin_expect(rf_origins_on, 0))
        rf_origins_escape(pc);
}

static inline void rf_origin_escapes_note(uint32_t note)
{
    if (__builtin_expect(rf_origins_on, 0))
        rf_origins_escape_note(note);
}

#endif
