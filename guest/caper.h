/* Caper (Biswas et al., CC 2017, section 5.2): which sites access memory that several threads can reach. `redflag caper` names the file of
 * sites (core/caper.h).
 *
 * 1. Nothing is checked for races: Caper listens at the tap alone, with guest/escape.h to tell what has escaped. A thread's own stack has
 *    not, until a pointer to it has been published.
 * 2. The file is mapped and shared. A site is marked by one store; that it was marked before, or is being marked by somebody else, is no
 *    matter.
 * 3. Calls of hooks that nobody needs are taken out of the code when a module is looked at: entries and exits of functions, and accesses
 *    at sites that are in no pair, or have escaped in an earlier run. What stores eight bytes or more stays: it may publish a pointer.
 */
#ifndef RF_GUEST_CAPER_H
#define RF_GUEST_CAPER_H

#include "guest/hot.h"
#include "sites/hook.h"
#include "sites/scan.h"

extern bool rf_caper_on RF_OURS; /* set before there are threads */

void rf_caper_begin(char **environment);
/* Under the lock of guest/modules.c: the module's sites become known; then, of each of its calls, is it needed? */
void rf_caper_module(const struct rf_image *image, const char *name);
bool rf_caper_needs(const struct rf_hook_call *call, const char *hook_name);

#endif
