/* Small random traces, well-formed, of several shapes; and what can be done with one: print it, make it smaller.
 *
 * 1. A trace is what detectors see: accesses lie inside a granule, barriers are already signals and waits (core/event.h). It
 *    shares nothing with the generator and the resolver in trace/, so that their faults cannot hide here.
 * 2. One seed and one shape make one trace, for ever: a failing seed is a name.
 * 3. Every trace obeys struct rules: who releases a lock holds it, and nobody acts before its fork or after its join.
 */
#ifndef RF_TESTS_RANDOM_TRACE_H
#define RF_TESTS_RANDOM_TRACE_H

#include <stdio.h>
#include <string.h>

#include "core/event.h"

#define TRACE_EVENTS 1024u
#define TRACE_THREADS 16u
#define TRACE_LOCKS 8u
#define TRACE_SITES 8u
#define TRACE_ROUND_KEYS (UINT64_C(1) << 61)

struct trace {
    struct rf_event events[TRACE_EVENTS];
    size_t count;
    uint64_t lines; /* numbers go from 1 to this */
};

/* splitmix64: any seed is a good seed. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)((random_next(state) >> 32) * limit >> 32);
}

/* ---- what is well-formed ---- */

struct rules {
    uint8_t writes[TRACE_LOCKS][TRACE_THREADS], reads[TRACE_LOCKS][TRACE_THREADS]; /* how often a lock is held, by mode */
    bool begun[TRACE_THREADS], ended[TRACE_THREADS];
};

static inline bool rules_others_hold(const struct rules *rules, uint64_t lock, uint32_t thread, bool reading_too)
{
    for (uint32_t other = 0; other < TRACE_THREADS; other++)
        if (other != thread && (rules->writes[lock][other] || (reading_too && rules->reads[lock][other])))
            return true;
    return false;
}

static inline bool rules_holds_any(const struct rules *rules, uint64_t thread)
{
    for (uint32_t lock = 0; lock < TRACE_LOCKS; lock++)
        if (rules->writes[lock][thread] || rules->reads[lock][thread])
            return true;
    return false;
}

static inline bool rules_allow(const struct rules *rules, const struct rf_event *event)
{
    uint32_t thread = event->thread;
    if (rules->ended[thread])
        return false;
    switch ((enum rf_op)event->op) {
    case RF_ACQUIRE:
        return !rules_others_hold(rules, event->addr, thread, true);
    case RF_READ_ACQUIRE:
        return !rules_others_hold(rules, event->addr, thread, false);
    case RF_RELEASE:
        return rules->writes[event->addr][thread] > 0;
    case RF_READ_RELEASE:
        return rules->reads[event->addr][thread] > 0;
    case RF_FORK:
        return event->addr != thread && !rules->begun[event->addr];
    case RF_JOIN:
        return event->addr != thread && rules->begun[event->addr] && !rules_holds_any(rules, event->addr);
    default:
        return true;
    }
}

static inline void rules_take(struct rules *rules, const struct rf_event *event)
{
    uint32_t thread = event->thread;
    rules->begun[thread] = true;
    switch ((enum rf_op)event->op) {
    case RF_ACQUIRE:
        rules->writes[event->addr][thread]++;
        break;
    case RF_READ_ACQUIRE:
        rules->reads[event->addr][thread]++;
        break;
    case RF_RELEASE:
        rules->writes[event->addr][thread]--;
        break;
    case RF_READ_RELEASE:
        rules->reads[event->addr][thread]--;
        break;
    case RF_FORK:
        rules->begun[event->addr] = true;
        break;
    case RF_JOIN:
        rules->ended[event->addr] = true;
        break;
    default:
        break;
    }
}

/* How many events belong together from this one on. */
static inline size_t trace_group(const struct rf_event *event)
{
    return event->op == RF_COMMIT ? 1 + event->size : event->op == RF_COPY ? 2 : 1;
}

/* ---- making one ---- */

struct shape {
    const char *name;
    uint32_t roots, threads; /* those that run from the start, and all that may ever be */
    uint32_t lines;          /* at most, as a rule */
    uint32_t locks, lines_of_memory, sites;
    uint32_t partial; /* per cent of accesses that are not one whole granule */
    uint32_t named;   /* per cent that go to variables without an address */
    uint32_t writes;  /* per cent of accesses */
    /* how often, beside 100 accesses */
    uint32_t lock, read_lock, release, fork, join, vol, signal, barrier, alloc, free, copy, commit, sample;
};

static const struct shape trace_shapes[] = {
    { .name = "two threads",
      .roots = 2,
      .threads = 2,
      .lines = 24,
      .locks = 2,
      .lines_of_memory = 1,
      .sites = 4,
      .writes = 40,
      .lock = 20,
      .release = 40,
      .vol = 10 },
    { .name = "plain",
      .roots = 1,
      .threads = 4,
      .lines = 40,
      .locks = 2,
      .lines_of_memory = 1,
      .sites = 6,
      .writes = 30,
      .named = 30,
      .lock = 25,
      .release = 40,
      .fork = 20,
      .join = 8,
      .vol = 8,
      .signal = 5,
      .sample = 3 },
    { .name = "locks",
      .roots = 3,
      .threads = 4,
      .lines = 60,
      .locks = 4,
      .lines_of_memory = 1,
      .sites = 3,
      .writes = 50,
      .lock = 60,
      .release = 70,
      .vol = 4,
      .sample = 6 },
    { .name = "read-write locks",
      .roots = 4,
      .threads = 5,
      .lines = 60,
      .locks = 3,
      .lines_of_memory = 1,
      .sites = 3,
      .writes = 30,
      .lock = 30,
      .read_lock = 40,
      .release = 70,
      .fork = 5,
      .join = 3,
      .vol = 2 },
    { .name = "many threads",
      .roots = 2,
      .threads = 16,
      .lines = 80,
      .locks = 3,
      .lines_of_memory = 2,
      .sites = 8,
      .writes = 15,
      .partial = 5,
      .lock = 15,
      .read_lock = 5,
      .release = 30,
      .fork = 40,
      .join = 25,
      .vol = 10,
      .signal = 5,
      .barrier = 5,
      .sample = 4 },
    { .name = "volatiles",
      .roots = 3,
      .threads = 4,
      .lines = 50,
      .locks = 2,
      .lines_of_memory = 1,
      .sites = 3,
      .writes = 40,
      .lock = 8,
      .release = 20,
      .vol = 60,
      .sample = 5 },
    { .name = "signals and barriers",
      .roots = 4,
      .threads = 6,
      .lines = 60,
      .locks = 2,
      .lines_of_memory = 1,
      .sites = 3,
      .writes = 40,
      .lock = 8,
      .release = 15,
      .fork = 5,
      .join = 5,
      .signal = 30,
      .barrier = 30 },
    { .name = "parts",
      .roots = 3,
      .threads = 4,
      .lines = 50,
      .locks = 2,
      .lines_of_memory = 1,
      .sites = 3,
      .writes = 40,
      .partial = 70,
      .lock = 25,
      .read_lock = 5,
      .release = 40,
      .vol = 8,
      .sample = 5 },
    { .name = "memory",
      .roots = 3,
      .threads = 4,
      .lines = 60,
      .locks = 2,
      .lines_of_memory = 2,
      .sites = 3,
      .writes = 40,
      .partial = 40,
      .named = 10,
      .lock = 25,
      .release = 40,
      .vol = 8,
      .alloc = 10,
      .free = 8,
      .copy = 16,
      .sample = 3 },
    { .name = "transactions",
      .roots = 3,
      .threads = 4,
      .lines = 50,
      .locks = 2,
      .lines_of_memory = 1,
      .sites = 3,
      .writes = 40,
      .partial = 10,
      .lock = 20,
      .release = 40,
      .vol = 5,
      .commit = 60 },
    { .name = "sampling",
      .roots = 2,
      .threads = 4,
      .lines = 60,
      .locks = 2,
      .lines_of_memory = 1,
      .sites = 3,
      .writes = 30,
      .lock = 30,
      .release = 50,
      .fork = 8,
      .join = 8,
      .vol = 10,
      .signal = 4,
      .commit = 4,
      .sample = 25 },
    { .name = "everything",
      .roots = 2,
      .threads = 8,
      .lines = 100,
      .locks = 5,
      .lines_of_memory = 3,
      .sites = 8,
      .writes = 20,
      .partial = 25,
      .named = 15,
      .lock = 30,
      .read_lock = 20,
      .release = 70,
      .fork = 10,
      .join = 4,
      .vol = 15,
      .signal = 8,
      .barrier = 8,
      .alloc = 3,
      .free = 3,
      .copy = 4,
      .commit = 15,
      .sample = 8 },
};
#define TRACE_SHAPES (sizeof trace_shapes / sizeof trace_shapes[0])

struct maker {
    const struct shape *shape;
    struct trace *trace;
    struct rules rules;
    uint64_t random;
    uint64_t round; /* key of the open round of the one barrier */
    uint32_t arrivals[TRACE_THREADS], arrived;
};

static inline bool maker_emit(struct maker *m, enum rf_op op, uint32_t thread, uint64_t addr, uint32_t size, uint32_t site)
{
    struct rf_event event = { .addr = addr,
                              .thread = thread,
                              .site = site,
                              .number = (uint32_t)m->trace->lines,
                              .size = size & 0xffffff,
                              .op = op & 0xff };
    if (!rules_allow(&m->rules, &event))
        return false;
    rules_take(&m->rules, &event);
    m->trace->events[m->trace->count++] = event;
    return true;
}

/* The barrier lets all go as soon as one of them is seen to move on. */
static inline void maker_end_round(struct maker *m)
{
    for (uint32_t i = 0; i < m->arrived; i++)
        maker_emit(m, RF_WAIT, m->arrivals[i], m->round, 0, 0);
    maker_emit(m, RF_FORGET, m->arrivals[0], m->round, 0, 0);
    m->arrived = 0;
    m->round++;
}

static inline bool maker_waits(const struct maker *m, uint32_t thread)
{
    for (uint32_t i = 0; i < m->arrived; i++)
        if (m->arrivals[i] == thread)
            return true;
    return false;
}

/* A range of memory: one whole granule, or any 1 to `most` bytes. */
static inline uint64_t maker_range(struct maker *m, bool partial, uint32_t most, uint32_t *size)
{
    /* Each line lies in another unit of what workers share out (RF_SHARD). */
    uint64_t line = 0x1000 + (65536 + 64) * random_below(&m->random, m->shape->lines_of_memory);
    *size = RF_GRANULE;
    if (!partial)
        return line + RF_GRANULE * random_below(&m->random, 2);
    if (random_below(&m->random, 3) == 0) { /* an aligned half */
        *size = 4;
        return line + 4 * random_below(&m->random, 4);
    }
    *size = 1 + random_below(&m->random, most);
    return line + random_below(&m->random, 16);
}

/* One access, cut at granules. */
static inline void maker_access(struct maker *m, uint32_t thread, uint32_t site, enum rf_op op)
{
    uint32_t size = RF_GRANULE;
    uint64_t addr = RF_NAMED_BASE + RF_GRANULE * random_below(&m->random, 2);
    if (random_below(&m->random, 100) >= m->shape->named)
        addr = maker_range(m, random_below(&m->random, 100) < m->shape->partial, 16, &size);
    while (size) {
        uint32_t room = RF_GRANULE - (uint32_t)(addr % RF_GRANULE), step = room < size ? room : size;
        maker_emit(m, op, thread, addr, step, site);
        addr += step;
        size -= step;
    }
}

static inline void maker_commit(struct maker *m, uint32_t thread, uint32_t site)
{
    size_t head = m->trace->count;
    maker_emit(m, RF_COMMIT, thread, 0, 0, site);
    for (uint32_t i = random_below(&m->random, 4); i; i--)
        maker_access(m, thread, site, random_below(&m->random, 2) ? RF_COMMIT_READ : RF_COMMIT_WRITE);
    m->trace->events[head].size = (m->trace->count - head - 1) & 0xffffff;
}

static inline void maker_release(struct maker *m, uint32_t thread)
{
    uint32_t start = random_below(&m->random, TRACE_LOCKS);
    for (uint32_t i = 0; i < TRACE_LOCKS; i++) {
        uint32_t lock = (start + i) % TRACE_LOCKS;
        if (maker_emit(m, random_below(&m->random, 2) ? RF_RELEASE : RF_READ_RELEASE, thread, lock, 0, 0) ||
            maker_emit(m, RF_RELEASE, thread, lock, 0, 0) || maker_emit(m, RF_READ_RELEASE, thread, lock, 0, 0))
            return;
    }
}

static inline void maker_fork(struct maker *m, uint32_t thread)
{
    for (uint32_t child = 0; child < m->shape->threads; child++)
        if (maker_emit(m, RF_FORK, thread, child, 0, 0))
            return;
}

static inline void maker_join(struct maker *m, uint32_t thread)
{
    uint32_t child = random_below(&m->random, m->shape->threads), running = 0;
    for (uint32_t i = 0; i < m->shape->threads; i++)
        running += m->rules.begun[i] && !m->rules.ended[i];
    if (running <= 2 && !m->rules.ended[child]) /* somebody must stay to race with */
        return;
    if (maker_waits(m, child))
        maker_end_round(m);
    maker_emit(m, RF_JOIN, thread, child, 0, 0);
}

static inline void maker_memory(struct maker *m, enum rf_op op, uint32_t thread, uint32_t site)
{
    uint32_t size, ignored;
    uint64_t addr = maker_range(m, random_below(&m->random, 2), 24, &size);
    maker_emit(m, op, thread, addr, size, site);
    if (op == RF_COPY)
        maker_emit(m, RF_COPY_TO, thread, maker_range(m, random_below(&m->random, 2), 16, &ignored), size, site);
}

static inline void maker_arrive(struct maker *m, uint32_t thread)
{
    maker_emit(m, RF_SIGNAL, thread, m->round, 0, 0);
    m->arrivals[m->arrived++] = thread;
}

/* Takes `weight` off the choice; true if it fell on it. */
static inline bool chosen(uint32_t *choice, uint32_t weight)
{
    if (*choice < weight) {
        *choice = UINT32_MAX;
        return true;
    }
    if (*choice != UINT32_MAX)
        *choice -= weight;
    return false;
}

static inline void maker_line(struct maker *m, uint32_t thread)
{
    const struct shape *s = m->shape;
    uint32_t total = 100 + s->lock + s->read_lock + s->release + s->fork + s->join + s->vol + s->signal + s->barrier +
                     s->alloc + s->free + s->copy + s->commit + s->sample;
    uint32_t choice = random_below(&m->random, total), site = 1 + random_below(&m->random, s->sites);
    bool coin = random_below(&m->random, 2);
    uint64_t object = random_below(&m->random, 2);
    if (maker_waits(m, thread))
        maker_end_round(m);
    if (chosen(&choice, s->lock))
        maker_emit(m, RF_ACQUIRE, thread, random_below(&m->random, s->locks), 0, site);
    else if (chosen(&choice, s->read_lock))
        maker_emit(m, RF_READ_ACQUIRE, thread, random_below(&m->random, s->locks), 0, site);
    else if (chosen(&choice, s->release))
        maker_release(m, thread);
    else if (chosen(&choice, s->fork))
        maker_fork(m, thread);
    else if (chosen(&choice, s->join))
        maker_join(m, thread);
    else if (chosen(&choice, s->vol))
        maker_emit(m, coin ? RF_VOLATILE_READ : RF_VOLATILE_WRITE, thread, object, 0, site);
    else if (chosen(&choice, s->signal))
        maker_emit(m, coin ? RF_SIGNAL : RF_WAIT, thread, object, 0, site);
    else if (chosen(&choice, s->barrier))
        maker_arrive(m, thread);
    else if (chosen(&choice, s->alloc))
        maker_memory(m, RF_ALLOC, thread, site);
    else if (chosen(&choice, s->free))
        maker_memory(m, RF_FREE, thread, site);
    else if (chosen(&choice, s->copy))
        maker_memory(m, RF_COPY, thread, site);
    else if (chosen(&choice, s->commit))
        maker_commit(m, thread, site);
    else if (chosen(&choice, s->sample))
        maker_emit(m, coin ? RF_SAMPLE_BEGIN : RF_SAMPLE_END, thread, 0, 0, 0);
    else
        maker_access(m, thread, site, random_below(&m->random, 100) < s->writes ? RF_WRITE : RF_READ);
}

static inline void trace_make(struct trace *trace, const struct shape *shape, uint64_t seed)
{
    struct maker m = { .shape = shape, .trace = trace, .random = seed, .round = TRACE_ROUND_KEYS };
    trace->count = 0;
    trace->lines = 0;
    for (uint32_t i = 0; i < shape->roots; i++)
        m.rules.begun[i] = true;
    uint32_t lines = shape->lines / 4 + random_below(&m.random, shape->lines - shape->lines / 4);
    if (random_below(&m.random, 64) == 0)
        lines *= 3; /* a long one now and then */
    uint32_t thread = 0;
    while (trace->lines < lines && trace->count + 2 * TRACE_THREADS + 16 < TRACE_EVENTS) {
        if (random_below(&m.random, 3)) /* threads run in short stretches */
            do
                thread = random_below(&m.random, shape->threads);
            while (!m.rules.begun[thread] || m.rules.ended[thread]);
        if (m.rules.ended[thread])
            continue;
        trace->lines++;
        maker_line(&m, thread);
    }
}

/* ---- printing and shrinking ---- */

static inline void trace_print_variable(FILE *out, const struct rf_event *event)
{
    if (event->addr >= RF_NAMED_BASE)
        fprintf(out, "v%u", (unsigned)((event->addr - RF_NAMED_BASE) / RF_GRANULE));
    else
        fprintf(out, "0x%llx:%u", (unsigned long long)event->addr, (unsigned)event->size);
}

static inline void trace_print_argument(FILE *out, const struct rf_event *event)
{
    switch ((enum rf_op)event->op) {
    case RF_READ:
    case RF_WRITE:
    case RF_ALLOC:
    case RF_FREE:
        trace_print_variable(out, event);
        break;
    case RF_COPY:
        fprintf(out, "0x%llx,", (unsigned long long)event->addr);
        trace_print_variable(out, event + 1);
        break;
    case RF_COMMIT:
        for (uint32_t i = 1; i <= event->size; i++) {
            fprintf(out, "%s%s",
                    i == 1                           ? ""
                    : event[i].op == event[i - 1].op ? ","
                                                     : ";",
                    i > 1 && event[i].op == event[i - 1].op ? ""
                    : event[i].op == RF_COMMIT_READ         ? "r:"
                                                            : "w:");
            trace_print_variable(out, event + i);
        }
        break;
    case RF_FORK:
    case RF_JOIN:
        fprintf(out, "T%llu", (unsigned long long)event->addr);
        break;
    case RF_SAMPLE_BEGIN:
    case RF_SAMPLE_END:
        break;
    default:
        if (event->addr >= TRACE_ROUND_KEYS)
            fprintf(out, "round%llu", (unsigned long long)(event->addr - TRACE_ROUND_KEYS));
        else
            fprintf(out, "o%llu", (unsigned long long)event->addr);
    }
}

/* As STD text, with each line's number behind it. */
static inline void trace_print(FILE *out, const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i += trace_group(&trace->events[i])) {
        const struct rf_event *event = &trace->events[i];
        const char *word = rf_op_text((enum rf_op)event->op);
        fprintf(out, "%sT%u|%s(", *word ? "" : "# ", event->thread, *word ? word : "forget");
        trace_print_argument(out, event);
        fprintf(out, ")|s%u  # %u\n", event->site, event->number);
    }
}

/* The trace without events [from, to), and without those that the rules forbid once they are gone. */
static inline void trace_without(struct trace *out, const struct trace *trace, size_t from, size_t to)
{
    struct rules rules = { 0 };
    out->count = 0;
    out->lines = trace->lines;
    for (size_t i = 0, group; i < trace->count; i += group) {
        group = trace_group(&trace->events[i]);
        if ((i >= from && i < to) || !rules_allow(&rules, &trace->events[i]))
            continue;
        rules_take(&rules, &trace->events[i]);
        memcpy(&out->events[out->count], &trace->events[i], group * sizeof *out->events);
        out->count += group;
    }
}

typedef bool trace_fails_fn(void *context, const struct trace *trace);

/* Removes what can be removed while the trace still fails: long stretches first, then single events, until nothing helps. */
static inline void trace_shrink(struct trace *trace, trace_fails_fn *fails, void *context)
{
    static struct trace smaller;
    for (bool again = true; again;) {
        again = false;
        for (size_t length = trace->count / 2 + 1; length; length /= 2)
            for (size_t at = 0; at < trace->count;) {
                trace_without(&smaller, trace, at, at + length);
                if (smaller.count < trace->count && fails(context, &smaller)) {
                    *trace = smaller;
                    again = true;
                } else {
                    at += length > 1 ? length : trace_group(&trace->events[at]);
                }
            }
    }
}

#endif
