/* What the analysis knows of single lines, for `redflag caper`: which memory each may access, which stores may publish a pointer, and which
 * lines make memory. A text, a fact in a line:
 *
 *     made KIND FILE:LINE          blocks of the heap that are allocated there are of this kind, a number; '-': a library's own
 *     read FILE:LINE KINDS         the memory that a read there may access: numbers, and letters, with commas between them
 *     write FILE:LINE KINDS        the same for a write
 *     publish FILE:LINE KINDS      a write that may make a block or a stack known to another thread
 *     call FILE:LINE               a function that is called there accesses memory other than a stream, which a compiler may do without a
 *                                  call
 *
 * Letters: g memory that several threads can reach from the start, or that nothing is known of; s a stack. A line may be there several
 * times: all of it holds. What can only be read has no kind. A line whose path has a blank in it is left out, so nothing is known of it.
 */
#ifndef RF_STATIC_FACTS_H
#define RF_STATIC_FACTS_H

#include "static/pairs.h"

bool rf_static_facts_write(const struct rf_program_ir *program, const char *path);

#endif
