/* How much waiting a run may do, and when: RaceChaser's sampling policy (Biswas et al., CC 2017, section 4.2).
 *
 *   P_freq   = 1 / freq(s1, T)         freq: which sample of thread T this would be: 1 for its first
 *   P_budget = 1 - (t_waited + t_delay) / ((max(t_min, t_total) + t_delay) * r_max)
 *
 * A thread at s1 waits with probability P_freq * P_budget. P_freq is the thread's own business and comes first; P_budget needs a clock
 * and what is shared, and is asked for only with probability P_freq.
 *
 * 1. t_waited is the time in which one thread waited, or several: overlapped waits count once. A wait that is not over counts up to now.
 * 2. At all times  t_waited <= r_max * max(t_min, t_total).  So a wait begins only if this will hold at its end, even if it ends as
 *    late as the latest did so far. Only a thread that the kernel lets sleep longer than any before can break it, by that much;
 *    no wait begins until it holds again.
 * 3. Times are nanoseconds of one clock that never goes back. Nothing here reads it, or locks: the caller holds the lock.
 */
#ifndef RF_GUEST_CHASE_BUDGET_H
#define RF_GUEST_CHASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct rf_budget {
    double rate;      /* r_max */
    uint64_t delay;   /* t_delay */
    uint64_t least;   /* t_min */
    uint64_t started; /* when t_total began */
    uint64_t waited;  /* of stretches that are over */
    uint64_t since;   /* when the present stretch began, if somebody waits */
    uint64_t late;    /* by how much a wait was longer than it should be, at most */
    uint32_t waiters; /* who wait now */
    uint64_t waits;   /* that have begun */
};

static inline uint64_t rf_budget_waited(const struct rf_budget *budget, uint64_t now)
{
    return budget->waited + (budget->waiters ? now - budget->since : 0);
}

static inline uint64_t rf_budget_total(const struct rf_budget *budget, uint64_t now)
{
    uint64_t total = now - budget->started;
    return total > budget->least ? total : budget->least;
}

/* Does invariant 2 hold now? */
static inline bool rf_budget_holds(const struct rf_budget *budget, uint64_t now)
{
    return (double)rf_budget_waited(budget, now) <= budget->rate * (double)rf_budget_total(budget, now);
}

/* Will it hold at the end of a wait that begins now? */
static inline bool rf_budget_allows(const struct rf_budget *budget, uint64_t now)
{
    uint64_t wait = budget->delay + budget->late;
    return (double)(rf_budget_waited(budget, now) + wait) <= budget->rate * (double)rf_budget_total(budget, now + wait);
}

/* P_budget; 0 where it would be negative, or the wait is not allowed. */
static inline double rf_budget_probability(const struct rf_budget *budget, uint64_t now)
{
    if (!(budget->rate > 0) || !rf_budget_allows(budget, now))
        return 0;
    double waited = (double)(rf_budget_waited(budget, now) + budget->delay);
    double probability = 1 - waited / ((double)(rf_budget_total(budget, now) + budget->delay) * budget->rate);
    return probability > 0 ? probability : 0;
}

/* A wait begins; it shall end at the time that is returned. Who waits alone waits for all of t_delay. Threads that do the same come to s1
 * together, and if both stood there equally long none would go on to s2 in time: so who comes while another waits has a part of it,
 * `uniform`, from 0 on, below 1. */
static inline uint64_t rf_budget_begin(struct rf_budget *budget, uint64_t now, double uniform)
{
    double part = budget->waiters ? uniform : 1;
    if (!budget->waiters++)
        budget->since = now;
    budget->waits++;
    return now + (uint64_t)((double)budget->delay * part);
}

/* ... and is over. `until` is when it should have ended. */
static inline void rf_budget_end(struct rf_budget *budget, uint64_t now, uint64_t until)
{
    if (now > until && now - until > budget->late)
        budget->late = now - until;
    if (!--budget->waiters)
        budget->waited += now - budget->since;
}

/* -- a thread's own part --------------------------------------------------------------------------------------------------------- */

/* P_freq of a thread that has taken `samples`. */
static inline double rf_chance_frequency(uint64_t samples)
{
    return 1 / (double)(samples + 1);
}

/* Of a random 64-bit number: a number from 0 on, below 1. */
static inline double rf_chance_uniform(uint64_t random)
{
    return (double)(random >> 11) * 0x1p-53;
}

static inline uint64_t rf_chance_next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The binary logarithm by the processor's own instruction: there is no libm here. */
static inline double rf_chance_log2(double x)
{
    long double result;
    __asm__("fyl2x" : "=t"(result) : "0"((long double)x), "u"(1.0L) : "st(1)");
    return (double)result;
}

/* How many instances are passed over before the next that P_freq chooses: to draw this number once is to draw with probability P_freq
 * at each instance. `uniform` is from 0 on, below 1. */
static inline uint32_t rf_chance_skip(uint64_t samples, double uniform)
{
    if (!samples)
        return 0;
    double skip = rf_chance_log2(1 - uniform) / rf_chance_log2(1 - rf_chance_frequency(samples));
    return skip < 0x1p30 ? (uint32_t)skip : 1u << 30;
}

#endif
