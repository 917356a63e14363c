/* redflag cc --inline: the first look of the hot hooks becomes part of the program's own code.
 *
 * 1. A source is compiled in three steps: clang makes bitcode, with calls of hooks, as it would make code; redflag-inline (inline/main.c)
 *    puts the hooks in; clang makes code of that, with the user's options and no pass of its optimiser. What is seen from
 *    outside is one run of the compiler: the same files are written, with the same names, and nothing else stays.
 * 2. Objects with and without inlined hooks go together: what was compiled otherwise calls hooks, as always.
 * 3. Where an option asks for files that are named after the output of a step, or for something other than code (-flto, --coverage,
 *    -save-temps, -emit-llvm, -E ...), or -c is given a file of another language as well, all is compiled in one step, without
 *    inlining.
 */
#ifndef RF_CLI_CC_INLINE_H
#define RF_CLI_CC_INLINE_H

#include "cli/cc_words.h"

/* `compile` and `link` are the compiler with the options of ours that come before the user's arguments; the second one for a call that links.
 * `every_access`: no check goes because another one finds the same (inline/fewer.h). The exit status of the call, all of which was done; or
 * -1: nothing was done, since invariant 3 holds or there is no source. */
int rf_cc_inline(const struct rf_words *compile, const struct rf_words *link, const struct rf_words *arguments, bool links,
                 bool every_access, const char *who);

#endif
