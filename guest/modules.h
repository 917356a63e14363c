/* The modules of the process, each of which is looked at once: its calls of hooks are changed.
 *
 * 1. To look at a module again does no harm: calls that were changed do not lead to the PLT any more. So modules are forgotten
 *    whenever one was unloaded, since another may take its place; but not those that could not be changed.
 * 2. Code is changed only while nobody runs it. At the start there is one thread, and it is here. Later each instrumented module calls
 *    __tsan_init from its first constructor, which comes here before the module has run anything but resolvers, on this thread, and
 *    while the loader keeps other threads from loading; so whatever is new and calls hooks has not begun to run. Other threads get to
 *    it only after its constructors or through them, and cannot have fetched the old bytes: a page that is written gets a new place
 *    in memory, for which the kernel first interrupts all cores that know the old one.
 */
#ifndef RF_GUEST_MODULES_H
#define RF_GUEST_MODULES_H

#include "sites/scan.h"

/* Looks at those that are new. Only where nobody runs their code: invariant 2. */
void rf_modules_look(void);
bool rf_modules_are_new(void); /* was any loaded since? */
/* Of those that were looked at, the one that has this address, and the loader's name of it. */
bool rf_modules_has(uintptr_t address, struct rf_image *image, const char **name);

/* What is done with each, one at a time: by guest/near.c, or whatever takes its place in another library of ours. `name` is the
 * loader's, "" for the program. False if the module was left as it is, or some of it. */
bool rf_module_change(const struct rf_image *image, const char *name);

/* Whether a slot with this content leads to our function of that name. A slot that was not bound yet leads back into its module; then
 * the program and what it was loaded with decide: they come first for every module. */
bool rf_module_leads_here(const struct rf_image *image, uintptr_t content, const char *name);

#endif
