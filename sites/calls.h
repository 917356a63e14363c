/* Calls that leave a module, other than those of hooks: through its PLT or its global offset table, or by a pointer. For who must know which
 * lines of a program may access memory in code without hooks.
 *
 * 1. Every direct call that leads to where another module's function is called from is told, also one that is only a part of another
 *    instruction. Of those by a pointer, which have no such target, all that a walk from the beginning of their function comes upon
 *    (sites/instruction.h): in what gcc and clang have compiled, and that alone has lines which may be in pairs, nothing is missed.
 * 2. What a call through the PLT leads to is known by its name; others, and jumps, have none.
 */
#ifndef RF_SITES_CALLS_H
#define RF_SITES_CALLS_H

#include "sites/list.h"

enum rf_callee {
    RF_CALLEE_ANY,   /* may access what it likes, and the runtime need not say so */
    RF_CALLEE_HEARD, /* sites/heard.def */
};

/* `site` has no hook. Lives as long as the call. */
typedef void rf_call_found(void *context, const struct rf_site *site, enum rf_callee callee);
/* False: the module cannot be read again. */
bool rf_site_calls(const struct rf_site_module *module, rf_call_found *found, void *context);

#endif
