/* A check: a call of a hook, as gcc -fsanitize=thread puts it before an access, and the bytes that it is about.
 *
 * 1. Where the bytes lie is a sum,  offset + coefficient * value + ... , modulo 2^64, whose values never change once they are defined. Two checks
 *    with equal terms lie at a distance that is known.
 * 2. Between two statements that may synchronise a thread's accesses are all of one epoch: the same happens before each of them, and each
 *    happens before the same. So it does not matter which of them is looked at first, or in the place of an equal one.
 */
#ifndef RF_PLUGIN_CHECK_H
#define RF_PLUGIN_CHECK_H

#include <utility>
#include <vector>

#include "plugin/gcc.h"

/* Which value, and how often. Sorted. */
typedef std::vector<std::pair<uint64_t, HOST_WIDE_INT>> rf_terms;

struct rf_check {
    rf_terms terms;
    HOST_WIDE_INT offset, size;
    bool write;
    HOST_WIDE_INT align; /* of the address, as far as the hook knows it */
};

/* Is it the check of so many bytes, a constant? Those of volatile variables are not: they may be somebody's way to synchronise. */
bool rf_check_of(gimple *statement, rf_check *check);

/* As types promise it, which is enough to guess by. */
HOST_WIDE_INT rf_check_alignment(const rf_check *check);

/* A call that checks these bytes, at an address that is a multiple of `align`. */
gimple *rf_check_call(tree pointer, tree size, HOST_WIDE_INT align, bool write, location_t place);

/* May the thread synchronise with another one here? */
bool rf_synchronises(gimple *statement);

/* The function does nowhere, and comes back: what calls it from now on need not expect otherwise. */
void rf_function_is_quiet(tree function);

void rf_check_remove(gimple_stmt_iterator *at);

/* Hooks that gcc has no name for live as long as the compiler. */
void rf_check_roots(const char *plugin);

/* The passes, one after the other. The first one makes checks, the others leave them out. */
void rf_check_copies(function *function);
void rf_join_neighbours(function *function);
bool rf_leave_loops(void);                   /* true: each of them has an end */
bool rf_remove_repeated(function *function); /* true: nothing synchronises */
void rf_prefetch_histories(function *function);

#endif
