/* redflag cc --bitcode: beside each object, the same source as LLVM bitcode, for `redflag static`.
 *
 * 1. Whatever compiler makes the object, clang makes the bitcode: $REDFLAG_CLANG, clang, or clang-14. It is given what changes the
 *    meaning of the source (paths, macros, language, target), and nothing that only one compiler knows.
 * 2. The bitcode is not optimised: every access of the source is in it, with its line.
 * 3. FILE.o has FILE.bc; a source that is compiled and linked at once has its own name with .bc, where the compiler runs.
 */
#ifndef RF_CLI_CC_BITCODE_H
#define RF_CLI_CC_BITCODE_H

#include <stdbool.h>

/* 0, or the exit status, when something has been said. */
int rf_cc_bitcode(bool cxx, int argc, char **argv);

#endif
