/* What a policy is given: a place that holds one word, and a step of a detector,  (thread, old word, access) -> (new word, verdict).
 *
 * 1. The policy makes the step atomic: the word that it was given is the word that it replaces. (`none` does not; that is its point.)
 * 2. A step may be called several times for one access. It keeps nothing of a call but the last verdict, in its access.
 * 3. A step that changes nothing returns the old word, and nothing is stored.
 */
#ifndef RF_SYNC_STEP_H
#define RF_SYNC_STEP_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t rf_step_fn(void *access, uint64_t old);

#endif
