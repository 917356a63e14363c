/* Is a trace one that an execution could have made? Locks are held by one thread, threads act between their fork and their
 * join, freed memory is left alone. Detectors do not depend on it, but what they say about a trace that is not is worth
 * little.
 */
#ifndef RF_TRACE_CHECK_H
#define RF_TRACE_CHECK_H

#include "core/event.h"

struct rf_check;

/* Told of each violation, in order. The event is in the batch that is being checked. */
typedef void rf_violation_fn(void *context, uint64_t number, const struct rf_event *event, const char *reason);

struct rf_check *rf_check_new(rf_violation_fn *report, void *context);
void rf_check_free(struct rf_check *check);
/* Events as they are in the file, before they are resolved. */
void rf_check_batch(struct rf_check *check, const struct rf_batch *batch);
uint64_t rf_check_violations(const struct rf_check *check);

#endif
