/* One trace, what the oracle knows of it, what a detector answers, and whether the two agree.
 *
 * 1. A check returns true if it holds. If not, the subject has its label, and the details for a person to read.
 * 2. Oracles run when they are asked first: most checks need one or two of the five.
 */
#ifndef RF_TESTS_ANSWERS_H
#define RF_TESTS_ANSWERS_H

#include "tests/harness.h"
#include "tests/oracle.h"

/* ---- one trace, and what is known of it ---- */

#define ORDERS (ORACLE_ACCU_VOLATILE + 1)

struct subject {
    const struct trace *trace;
    uint64_t seed;
    uint32_t ops;
    struct oracle oracles[ORDERS];
    bool asked[ORDERS];
    char label[96]; /* of the check that failed; "" while none has */
    char details[400];
};

static struct subject subject;

static inline const struct oracle *truth(enum oracle_order order)
{
    if (!subject.asked[order])
        oracle_run(&subject.oracles[order], subject.trace->events, subject.trace->count, order);
    subject.asked[order] = true;
    return &subject.oracles[order];
}

static inline __attribute__((format(printf, 2, 3))) bool wrong(const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    snprintf(subject.label, sizeof subject.label, "%s", label);
    vsnprintf(subject.details, sizeof subject.details, format, arguments);
    va_end(arguments);
    return false;
}

static inline bool has_op(enum rf_op op)
{
    return subject.ops >> op & 1;
}

/* ---- a detector's answers ---- */

struct answers {
    char label[96];
    const struct rf_detector *detector;
    struct rf_races races;
    uint64_t first[ORACLE_BYTES]; /* by the bytes of the oracle; they are the same in every order */
};

static inline struct rf_options plain_options(void)
{
    return (struct rf_options){ .rate = 1, .seed = subject.seed, .period = 16, .burst = 4 };
}

static inline void answer(struct answers *out, const char *label, const struct manner *manner)
{
    const struct oracle *oracle = truth(ORACLE_SHARED);
    snprintf(out->label, sizeof out->label, "%s", label);
    out->detector = manner->detector;
    out->races = run_detector(manner, subject.trace);
    for (uint32_t byte = 0; byte < oracle->granule_count * RF_GRANULE; byte++)
        out->first[byte] = ORACLE_NEVER;
    for (size_t i = 0; i < out->races.count; i++) {
        const struct rf_race *race = &out->races.list[i];
        for (uint32_t at = 0; at < race->size; at++) {
            uint32_t byte = oracle_byte(oracle, race->addr + at);
            if (byte != UINT32_MAX && race->second.number < out->first[byte])
                out->first[byte] = race->second.number;
        }
    }
}

static inline void answer_end(struct answers *answers)
{
    rf_races_free(&answers->races);
}

/* ---- checks that many detectors share; each is false if it failed ---- */

static inline uint64_t up_to(uint64_t number, uint64_t clean)
{
    return number < clean ? number : ORACLE_NEVER;
}

/* The same variables, and on each the same event. */
static inline bool first_races_equal(const struct answers *got, enum oracle_order order)
{
    const struct oracle *o = truth(order);
    for (uint32_t byte = 0; byte < o->granule_count * RF_GRANULE; byte++) {
        uint64_t expected = up_to(o->first[byte], o->clean[byte]), found = up_to(got->first[byte], o->clean[byte]);
        if (expected != found)
            return wrong(got->label, "first race on 0x%llx: expected at %lld, found at %lld (-1: none)",
                         (unsigned long long)oracle_addr(o, byte), (long long)expected, (long long)found);
    }
    return true;
}

static inline bool same_first_races(const struct answers *a, const struct answers *b)
{
    const struct oracle *o = truth(ORACLE_SHARED);
    for (uint32_t byte = 0; byte < o->granule_count * RF_GRANULE; byte++)
        if (a->first[byte] != b->first[byte])
            return wrong(b->label, "first race on 0x%llx: %s at %lld, here at %lld (-1: none)",
                         (unsigned long long)oracle_addr(o, byte), a->label, (long long)a->first[byte],
                         (long long)b->first[byte]);
    return true;
}

/* Wherever the first has a report, the second has one by then. */
static inline bool contained(const struct answers *small, const struct answers *large)
{
    const struct oracle *o = truth(ORACLE_SHARED);
    for (uint32_t byte = 0; byte < o->granule_count * RF_GRANULE; byte++)
        if (small->first[byte] != ORACLE_NEVER && large->first[byte] > small->first[byte])
            return wrong(small->label, "0x%llx is reported at %lld, but by %s at %lld (-1: not at all)",
                         (unsigned long long)oracle_addr(o, byte), (long long)small->first[byte], large->label,
                         (long long)large->first[byte]);
    return true;
}

enum sides { EARLIER, RACING }; /* the first access is an earlier one of another thread; it does race */

/* The first event with a number not below this one. */
static inline size_t events_from(uint64_t number)
{
    size_t low = 0, high = subject.trace->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (subject.trace->events[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline bool is_access(const struct rf_race_access *access, uint64_t addr)
{
    for (size_t i = events_from(access->number); i < subject.trace->count; i++) {
        const struct rf_event *event = &subject.trace->events[i];
        if (event->number != access->number)
            break;
        if (event->thread == access->thread && event->op == access->op && event->site == access->site &&
            addr >= event->addr && addr < event->addr + event->size)
            return true;
    }
    return false;
}

/* Every report names two accesses that are what the detector says they are. The bytes of one report have one past, so it is
 * enough to ask for one of them; which, the seed says. */
static inline bool reports_hold(const struct answers *got, enum oracle_order order, enum sides sides)
{
    const struct oracle *o = truth(order);
    for (size_t i = 0; i < got->races.count; i++) {
        const struct rf_race *race = &got->races.list[i];
        unsigned long long first = race->first.number, second = race->second.number;
        uint64_t addr = race->addr + subject.seed / 7 % race->size;
        if (!is_access(&race->second, addr))
            return wrong(got->label, "report at %llu: it is no such access to 0x%llx", second, (unsigned long long)addr);
        if (!first && sides == EARLIER)
            continue;
        if (!oracle_met(o, addr, first, second))
            return wrong(got->label, "report of %llu and %llu: the first is not in the past of 0x%llx", first, second,
                         (unsigned long long)addr);
        if (sides == RACING && !oracle_races(o, addr, first, second))
            return wrong(got->label, "report of %llu and %llu: they do not race on 0x%llx", first, second,
                         (unsigned long long)addr);
    }
    return true;
}

/* The thread of the first side, where it is told together with a number. */
static inline bool threads_hold(const struct answers *got)
{
    for (size_t i = 0; i < got->races.count; i++) {
        const struct rf_race *race = &got->races.list[i];
        bool found = !race->first.number || race->first.thread == RF_UNKNOWN;
        for (size_t at = events_from(race->first.number); at < subject.trace->count && !found; at++) {
            if (subject.trace->events[at].number != race->first.number)
                break;
            found = subject.trace->events[at].thread == race->first.thread;
        }
        if (!found)
            return wrong(got->label, "report of %llu and %llu: the first is not by thread %u",
                         (unsigned long long)race->first.number, (unsigned long long)race->second.number,
                         race->first.thread);
    }
    return true;
}

typedef bool says_fn(const struct oracle *o, const struct oracle_access *access);

static inline bool says_race(const struct oracle *o, const struct oracle_access *access)
{
    for (uint32_t w = 0; w < o->words; w++)
        if (access->races[w])
            return true;
    return false;
}

/* Every access that a definition names is reported, first or not, and no other. */
static inline bool reports_are(const struct answers *got, enum oracle_order order, says_fn *says)
{
    const struct oracle *o = truth(order);
    static uint64_t reported[ORACLE_BYTES][ORACLE_WORDS]; /* by number */
    memset(reported, 0, o->granule_count * RF_GRANULE * sizeof reported[0]);
    for (size_t i = 0; i < got->races.count; i++) {
        const struct rf_race *race = &got->races.list[i];
        for (uint64_t addr = race->addr; addr < race->addr + race->size; addr++)
            reported[oracle_byte(o, addr)][race->second.number / 64] |= UINT64_C(1) << race->second.number % 64;
    }
    for (uint32_t i = 0; i < o->access_count; i++) {
        const struct oracle_access *access = &o->accesses[i];
        uint64_t number = o->nodes[access->node].event->number;
        bool expected = false; /* a commit may access a byte twice */
        const struct oracle_access *same = oracle_find(o, access->byte, number, NULL);
        for (; same; same = oracle_find(o, access->byte, number, same + 1))
            expected |= says(o, same);
        if (expected != oracle_has(reported[access->byte], (uint32_t)number))
            return wrong(got->label, "access of 0x%llx at %llu: it %s", (unsigned long long)oracle_addr(o, access->byte),
                         (unsigned long long)number,
                         expected ? "races, and is not reported" : "is reported, and does not race");
    }
    return true;
}

#endif
