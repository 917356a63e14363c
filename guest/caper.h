/* Caper (Biswas et al., CC 2017, section 5.2): which sites access memory that several threads can reach. `redflag caper` names the file of
 * sites (core/caper.h).
 *
 * 1. Nothing is checked for races: Caper listens at the tap alone, with guest/escape.h to tell what has escaped. A thread's own stack has
 *    not, until a pointer to it has been published.
 * 2. The file is read at the start, and a site is marked by writing one byte to it before the access that showed it happens, so that
 *    nothing is lost if the program is killed then. That it was marked before, or is being marked by somebody else, is no matter.
 *    The file is opened each time, which is once for each site: no descriptor of ours is left for the program to close, and a file that
 *    was cut short or taken away meanwhile is written again, with all that is known. What cannot be written is said once, and tried
 *    again at the end; the program goes on.
 * 3. Calls of hooks that nobody needs are taken out of the code when a module is looked at: entries and exits of functions; accesses at
 *    sites that are in no pair, have escaped in an earlier run, or are asleep (guest/origins.h). What stores eight bytes or more stays, for
 *    it may publish a pointer, unless a static analysis knows better.
 */
#ifndef RF_GUEST_CAPER_H
#define RF_GUEST_CAPER_H

#include "guest/hot.h"
#include "sites/hook.h"
#include "sites/scan.h"

extern bool rf_caper_on RF_OURS; /* set before there are threads */

void rf_caper_begin(char **environment);
void rf_caper_finish(void);
void rf_caper_freed(struct rf_self *self, uintptr_t block, size_t size); /* is about to be: a write to all of it, by who calls */
/* Calls of which there is nothing left to find out, found by where they return to: most, and locks are taken all the time. Whoever finds that
 * out of a call writes it, while its module is there; when another one comes, all are forgotten. */
#define RF_CAPER_SETTLED 1024u
extern uintptr_t rf_caper_settled[RF_CAPER_SETTLED] RF_OURS;
static inline bool rf_caper_is_settled(uintptr_t caller)
{
    return __atomic_load_n(&rf_caper_settled[caller % RF_CAPER_SETTLED], __ATOMIC_RELAXED) == caller;
}
void rf_caper_given(uintptr_t caller, const volatile void *object); /* a function that synchronises, or makes or joins a
                                                                       * thread, is, by who calls */
/* Under the lock of guest/modules.c: the module's sites become known; then, of each of its calls, is it needed? */
void rf_caper_module(const struct rf_image *image, const char *name);
bool rf_caper_needs(const struct rf_hook_call *call, const char *hook_name);

#endif
