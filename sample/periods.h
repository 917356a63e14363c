/* PACER's sampling periods (section 4): global, chosen at random, for a rate that the user gives.
 *
 * 1. A decision lasts `options.period` events: period n is the events with numbers n * period to (n + 1) * period - 1.
 * 2. Whether a period is sampled depends on the seed, on its number and on the synchronisation before it, which every worker
 *    sees; so workers with different shares of the accesses decide alike. Periods count from number 0, wherever a worker begins.
 * 3. Work is measured in synchronisation operations. Let s and o be what a sampled period and another one hold on
 *    average: if periods are sampled with probability p, a share p*s / (p*s + (1-p)*o) of the work is. That share is the
 *    rate r for p = r*o / (r*o + (1-r)*s). Both averages start from PRIOR periods of the average over all, so that a few
 *    odd periods cannot throw p off; while s = o, p is r.
 * 4. A rate of 1 or more samples all, 0 nothing; below 0 the trace's own SAMPLE_BEGIN and SAMPLE_END rule, and this is
 *    silent.
 */
#ifndef RF_SAMPLE_PERIODS_H
#define RF_SAMPLE_PERIODS_H

#include "core/detector.h"

#define RF_DEFAULT_PERIOD 1000u
#define RF_PERIODS_PRIOR 16.0

struct periods {
    uint64_t seed;
    double rate;
    uint32_t period;
    bool sampling;
    uint64_t number;            /* of the last event */
    uint64_t next;              /* the first number of the next period */
    uint64_t work[2], count[2]; /* synchronisation operations and finished periods, not sampled and sampled */
};

static inline void periods_init(struct periods *sampler, struct rf_engine *engine)
{
    const struct rf_options *options = engine->options;
    sampler->seed = options->seed;
    sampler->rate = options->rate;
    sampler->period = options->period ? options->period : RF_DEFAULT_PERIOD;
}

/* A number in [0, 1) for each period: splitmix64, entered at this place. */
static inline double periods_random(uint64_t seed, uint64_t period)
{
    uint64_t z = seed + (period + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 2; i++) { /* twice, since neighbouring seeds must not give shifted copies of one sequence */
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        z += seed;
    }
    return (double)(z >> 11) * 0x1p-53;
}

/* Invariant 3. */
static inline double periods_probability(const struct periods *sampler)
{
    double r = sampler->rate;
    double work = (double)(sampler->work[0] + sampler->work[1]), count = (double)(sampler->count[0] + sampler->count[1]);
    if (work == 0)
        return r;
    double prior = RF_PERIODS_PRIOR * work / count;
    double o = ((double)sampler->work[0] + prior) / ((double)sampler->count[0] + RF_PERIODS_PRIOR);
    double s = ((double)sampler->work[1] + prior) / ((double)sampler->count[1] + RF_PERIODS_PRIOR);
    return r * o / (r * o + (1 - r) * s);
}

static inline void periods_decide(struct periods *sampler, uint64_t period)
{
    double rate = sampler->rate;
    sampler->sampling = rate >= 1 || (rate > 0 && periods_random(sampler->seed, period) < periods_probability(sampler));
}

static __attribute__((noinline, unused)) void periods_next(struct periods *sampler)
{
    if (sampler->next) /* before period 0 there was none */
        sampler->count[sampler->sampling]++;
    periods_decide(sampler, sampler->next / sampler->period);
    sampler->next += sampler->period;
}

static inline enum rf_op periods_turn(struct periods *sampler, const struct rf_event *event)
{
    if (sampler->rate < 0)
        return RF_OP_COUNT;
    sampler->number += (uint32_t)(event->number - (uint32_t)sampler->number);
    while (__builtin_expect(sampler->number >= sampler->next, 0)) {
        bool before = sampler->sampling;
        periods_next(sampler);
        if (sampler->sampling != before)
            return sampler->sampling ? RF_SAMPLE_BEGIN : RF_SAMPLE_END;
    }
    if (event->op > RF_WRITE && rf_op_kind((enum rf_op)event->op) == RF_SYNC)
        sampler->work[sampler->sampling]++;
    return RF_OP_COUNT;
}

/* The detector sees every access: what is not sampled may still race with what was. */
static inline bool periods_look(struct periods *sampler, const struct rf_event *event)
{
    (void)sampler, (void)event;
    return true;
}

static inline void periods_statistics(const struct periods *sampler, rf_statistic_fn *emit, void *context)
{
    if (sampler->rate < 0)
        return;
    emit(context, "periods sampled", sampler->count[1] + sampler->sampling);
    emit(context, "periods", sampler->count[0] + sampler->count[1] + (sampler->next != 0));
}

#endif
