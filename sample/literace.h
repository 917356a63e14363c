/* LiteRace's sampler, as PACER's section 5.3 describes it: code that runs often is looked at rarely.
 *
 * 1. Each thread has a rate of its own for each function: 100% at first, then 10%, 1% and 0.1%. A burst of `options.burst`
 *    accesses is looked at; then so many are passed over that the burst was this share of all; the next rate is ten times
 *    lower, down to the last one, which stays.
 * 2. The number passed over is random, within half of its mean on either side, so that several runs with different seeds
 *    look at different accesses.
 * 3. Only accesses are sampled. All synchronisation is tracked, and so are commits and frees: what is reported is a race.
 */
#ifndef RF_SAMPLE_LITERACE_H
#define RF_SAMPLE_LITERACE_H

#include "core/detector.h"
#include "core/map.h"

#define RF_DEFAULT_BURST 1000u
#define LR_LAST_RATE 3u

/* How one thread runs one function. */
struct lr_pace {
    uint32_t burst;  /* accesses that are still looked at */
    uint32_t rate;   /* 0: 100%, 1: 10%, 2: 1%, 3: 0.1% */
    uint64_t passed; /* accesses that are passed over after that */
};

struct literace {
    struct rf_engine *engine;
    uint64_t random;
    uint32_t burst;
    struct rf_map paces;   /* thread and function -> struct lr_pace * */
    uint32_t thread, site; /* of the last access, */
    struct lr_pace *last;  /* and its pace: most accesses are like the one before */
    uint64_t seen, looked;
};

static inline void literace_init(struct literace *sampler, struct rf_engine *engine)
{
    sampler->engine = engine;
    sampler->random = engine->options->seed;
    sampler->burst = engine->options->burst ? engine->options->burst : RF_DEFAULT_BURST;
    rf_map_init(&sampler->paces, engine->memory);
}

static inline uint64_t literace_random(struct literace *sampler)
{
    uint64_t z = sampler->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static __attribute__((noinline, unused)) struct lr_pace *literace_pace(struct literace *sampler, uint32_t thread,
                                                                       uint32_t site)
{
    const struct rf_options *options = sampler->engine->options;
    uint32_t function = options->function_of ? options->function_of(options->names, site) : site;
    uint64_t *place = rf_map_at(&sampler->paces, (uint64_t)thread << 32 | function);
    if (!*place) {
        struct lr_pace *pace = rf_alloc(sampler->engine->memory, sizeof *pace);
        pace->burst = sampler->burst;
        *place = (uint64_t)(uintptr_t)pace;
    }
    sampler->thread = thread;
    sampler->site = site;
    return sampler->last = (struct lr_pace *)(uintptr_t)*place;
}

/* The burst is over: a lower rate, and how many accesses are passed over for it. */
static inline void literace_slow_down(struct literace *sampler, struct lr_pace *pace)
{
    static const uint32_t one_in[LR_LAST_RATE + 1] = { 1, 10, 100, 1000 };
    if (pace->rate < LR_LAST_RATE)
        pace->rate++;
    uint64_t mean = (uint64_t)sampler->burst * (one_in[pace->rate] - 1);
    pace->passed = mean - mean / 2 + literace_random(sampler) % (mean / 2 * 2 + 1);
}

static inline bool literace_look(struct literace *sampler, const struct rf_event *event)
{
    struct lr_pace *pace = sampler->last;
    if (!pace || event->thread != sampler->thread || event->site != sampler->site)
        pace = literace_pace(sampler, event->thread, event->site);
    sampler->seen++;
    if (!pace->burst) {
        if (pace->passed) {
            pace->passed--;
            return false;
        }
        pace->burst = sampler->burst;
    }
    sampler->looked++;
    if (!--pace->burst)
        literace_slow_down(sampler, pace);
    return true;
}

static inline enum rf_op literace_turn(struct literace *sampler, const struct rf_event *event)
{
    (void)sampler, (void)event;
    return RF_OP_COUNT;
}

static inline void literace_statistics(const struct literace *sampler, rf_statistic_fn *emit, void *context)
{
    emit(context, "accesses sampled", sampler->looked);
    emit(context, "accesses", sampler->seen);
}

#endif
