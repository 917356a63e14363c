/* Every access is looked at. */
#ifndef RF_SAMPLE_ALWAYS_H
#define RF_SAMPLE_ALWAYS_H

#include "core/detector.h"

struct always {
    char nothing;
};

static inline void always_init(struct always *sampler, struct rf_engine *engine)
{
    (void)sampler, (void)engine;
}

/* Is this access looked at? */
static inline bool always_look(struct always *sampler, const struct rf_event *event)
{
    (void)sampler, (void)event;
    return true;
}

/* Called before every event, until it says RF_OP_COUNT: RF_SAMPLE_BEGIN or RF_SAMPLE_END if a sampling period begins or ends
 * here. There may be several: a worker may see nothing of what lies between them. */
static inline enum rf_op always_turn(struct always *sampler, const struct rf_event *event)
{
    (void)sampler, (void)event;
    return RF_OP_COUNT;
}

static inline void always_statistics(const struct always *sampler, rf_statistic_fn *emit, void *context)
{
    (void)sampler, (void)emit, (void)context;
}

#endif
