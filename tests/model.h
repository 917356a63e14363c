/* Runs a model of a detector, byte by byte, beside the detector itself, over many random traces.
 *
 * 1. A model knows nothing of clocks, slots, granules or interned sets: what happens before what, and which locks protect an
 *    event, it asks the oracle, for accu-hb.
 * 2. A model is a function of one access and the state of one byte. All else (alloc, free, copy, commits) is done here.
 * 3. An epoch of a thread is how often it has ended one; which events do is up to the model's `ticks`.
 * 4. With `first_only`, a byte is compared up to its first race; and a copy carries that freedom on (`clean`).
 */
#ifndef RF_TESTS_MODEL_H
#define RF_TESTS_MODEL_H

#include "tests/harness.h"
#include "tests/oracle.h"

#define MODEL_CELL 4096u

/* An access, as a model sees it. */
struct now {
    const struct oracle *oracle;
    uint32_t node, thread, epoch;
    uint64_t locks; /* that protect it */
    bool write;
};

struct model {
    const char *detector;
    size_t cell;                                     /* at most MODEL_CELL; all zero: never accessed */
    bool (*step)(void *cell, const struct now *now); /* true: a race */
    bool (*ticks)(const struct rf_event *event);     /* after this event its thread's epoch ends */
};

/* Races: which byte, and the number of the event. */
struct found {
    uint64_t addr, number;
};

struct founds {
    struct found *list;
    size_t count, cap;
};

static inline void found_add(struct founds *founds, uint64_t addr, uint64_t number)
{
    if (founds->count == founds->cap) {
        founds->cap = founds->cap ? 2 * founds->cap : 256;
        founds->list = realloc(founds->list, founds->cap * sizeof *founds->list);
        assert_non_null(founds->list);
    }
    founds->list[founds->count++] = (struct found){ addr, number };
}

static inline int found_order(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static inline bool founds_equal(const struct founds *a, const struct founds *b)
{
    return a->count == b->count && (!a->count || !memcmp(a->list, b->list, a->count * sizeof *a->list));
}

/* ---- the model's side ---- */

struct model_run {
    const struct model *model;
    struct oracle *oracle;
    struct founds founds;
    uint32_t epochs[TRACE_THREADS];
    bool raced[ORACLE_BYTES];     /* what is now the past of the byte had a race */
    uint64_t clean[ORACLE_BYTES]; /* up to this number the byte is compared */
    char cells[ORACLE_BYTES][MODEL_CELL] __attribute__((aligned(16)));
};

static inline void model_access(struct model_run *run, uint32_t node, const struct rf_event *event)
{
    const struct oracle_node *n = &run->oracle->nodes[node];
    bool write = rf_op_writes((enum rf_op)event->op);
    struct now now = { run->oracle, node, event->thread, run->epochs[event->thread], write ? n->exclusive : n->any, write };
    for (uint32_t i = 0; i < event->size; i++) {
        uint32_t byte = oracle_byte(run->oracle, event->addr + i);
        if (!run->model->step(run->cells[byte], &now))
            continue;
        run->raced[byte] = true;
        found_add(&run->founds, event->addr + i, event->number);
    }
}

static inline void model_forget(struct model_run *run, const struct rf_event *event)
{
    for (uint32_t i = 0; i < event->size; i++) {
        uint32_t byte = oracle_byte(run->oracle, event->addr + i);
        memset(run->cells[byte], 0, run->model->cell);
        run->raced[byte] = false;
    }
}

static inline void model_move(struct model_run *run, const struct rf_event *event)
{
    static char old[64][MODEL_CELL];
    bool raced[64];
    assert_true(event->size <= 64);
    for (uint32_t i = 0; i < event->size; i++) {
        uint32_t byte = oracle_byte(run->oracle, event[0].addr + i);
        memcpy(old[i], run->cells[byte], run->model->cell);
        raced[i] = run->raced[byte];
    }
    for (uint32_t i = 0; i < event->size; i++) {
        uint32_t byte = oracle_byte(run->oracle, event[1].addr + i);
        memcpy(run->cells[byte], old[i], run->model->cell);
        run->raced[byte] = raced[i];
        if (raced[i] && event->number < run->clean[byte])
            run->clean[byte] = event->number;
    }
}

static inline void model_run(struct model_run *run, const struct model *model, struct oracle *oracle)
{
    assert_true(model->cell <= MODEL_CELL);
    run->model = model;
    run->oracle = oracle;
    run->founds.count = 0;
    memset(run->epochs, 0, sizeof run->epochs);
    for (uint32_t i = 0; i < oracle->granule_count * RF_GRANULE; i++) {
        memset(run->cells[i], 0, model->cell);
        run->raced[i] = false;
        run->clean[i] = ORACLE_NEVER;
    }
    for (uint32_t node = 0; node < oracle->node_count; node++) {
        const struct rf_event *event = oracle->nodes[node].event;
        if (event->op == RF_READ || event->op == RF_WRITE || event->op == RF_FREE)
            model_access(run, node, event);
        for (uint32_t i = 1; event->op == RF_COMMIT && i <= event->size; i++)
            model_access(run, node, event + i);
        if (event->op == RF_ALLOC || event->op == RF_FREE)
            model_forget(run, event);
        if (event->op == RF_COPY)
            model_move(run, event);
        if (model->ticks(event))
            run->epochs[event->thread]++;
    }
}

/* The earlier node happens before now, or belongs to the same thread. */
static inline bool ordered(const struct now *now, uint32_t earlier)
{
    return earlier == now->node || oracle_has(now->oracle->nodes[now->node].before, earlier);
}

/* ---- the detector's side, and the comparison ---- */

static inline void detector_founds(struct founds *founds, const struct manner *manner, const struct trace *trace)
{
    struct rf_races races = run_detector(manner, trace);
    founds->count = 0;
    for (size_t i = 0; i < races.count; i++)
        for (uint32_t byte = 0; byte < races.list[i].size; byte++)
            found_add(founds, races.list[i].addr + byte, races.list[i].second.number);
    rf_races_free(&races);
}

/* The ways in which a detector is run: all must give one result. */
static inline struct manner manner_of(const char *detector, uint64_t seed)
{
    struct manner manner = { .detector = detector_named(detector), .split = seed % 3 ? 0 : seed + 1 };
    assert_non_null(manner.detector);
    manner.options.volatile_as_lock = seed / 3 % 2;
    manner.options.transactions = (enum rf_transactions)(seed / 6 % 3);
    if (seed / 18 % 2) /* narrow cells that must soon widen, and threads that change slots */
        manner.options.slot_limit = 3 + (uint32_t)(seed / 36 % 8), manner.options.time_limit = 5 + (uint32_t)(seed / 36 % 5);
    return manner;
}

/* Sorted, each once; or only the first of each byte, as far as it is binding. */
static inline void founds_settle(struct founds *founds, const struct model_run *run, bool first_only)
{
    size_t kept = 0;
    if (founds->count)
        qsort(founds->list, founds->count, sizeof *founds->list, found_order);
    for (size_t i = 0; i < founds->count; i++) {
        struct found found = founds->list[i];
        bool same_byte = kept && founds->list[kept - 1].addr == found.addr;
        if (same_byte && (first_only || founds->list[kept - 1].number == found.number))
            continue;
        if (!first_only || found.number <= run->clean[oracle_byte(run->oracle, found.addr)])
            founds->list[kept++] = found;
    }
    founds->count = kept;
}

struct comparison {
    const struct model *model;
    struct manner manner;
    bool first_only;
    struct oracle oracle;
    struct model_run run;
    struct founds detector;
    uint64_t races; /* so that a test can see that there were any */
};

static inline bool model_differs(void *context, const struct trace *trace)
{
    struct comparison *c = context;
    oracle_run(&c->oracle, trace->events, trace->count,
               c->manner.options.volatile_as_lock ? ORACLE_ACCU_VOLATILE : ORACLE_ACCU);
    model_run(&c->run, c->model, &c->oracle);
    detector_founds(&c->detector, &c->manner, trace);
    founds_settle(&c->run.founds, &c->run, c->first_only);
    founds_settle(&c->detector, &c->run, c->first_only);
    c->races += c->run.founds.count;
    return !founds_equal(&c->run.founds, &c->detector);
}

static inline void founds_print(const char *who, const struct founds *founds)
{
    for (size_t i = 0; i < founds->count; i++)
        print_error("%s: race at 0x%llx in event %llu\n", who, (unsigned long long)founds->list[i].addr,
                    (unsigned long long)founds->list[i].number);
}

/* Compares the two on `count` random traces; a difference is made small and printed. */
static inline void model_compare(struct comparison *c, uint64_t count)
{
    static struct trace trace;
    for (uint64_t seed = 0; seed < count; seed++) {
        const struct shape *shape = &trace_shapes[seed % (TRACE_SHAPES - 1)];
        if (seed % 64 == 63) /* the large one, now and then */
            shape = &trace_shapes[TRACE_SHAPES - 1];
        c->manner = manner_of(c->model->detector, seed / TRACE_SHAPES);
        trace_make(&trace, shape, seed);
        if (!model_differs(c, &trace))
            continue;
        trace_shrink(&trace, model_differs, c);
        model_differs(c, &trace);
        trace_print(stderr, &trace);
        founds_print("model", &c->run.founds);
        founds_print(c->model->detector, &c->detector);
        fail_msg("%s differs from its model; shape \"%s\", seed %llu", c->model->detector, shape->name,
                 (unsigned long long)seed);
    }
    assert_true(c->races > count); /* traces without races would prove nothing */
    free(c->run.founds.list);
    free(c->detector.list);
    c->run.founds = c->detector = (struct founds){ 0 };
    oracle_end(&c->oracle);
}

/* ---- figures ---- */

/* Memory for a detector that a test drives by itself, to look into its cells. */
static inline void *test_pieces(size_t bytes)
{
    void *piece = calloc(1, bytes);
    assert_non_null(piece);
    return piece;
}

static inline void test_give_back(void *piece, size_t bytes)
{
    (void)bytes;
    free(piece);
}

/* Number of the first racing event on the variable, 0 if there is none. A text without addresses has variables from
 * RF_NAMED_BASE on, in the order of their appearance. */
static inline uint64_t first_race(const char *detector, const char *text, uint32_t variable, struct rf_race *race)
{
    static struct trace trace;
    struct manner manner = { .detector = detector_named(detector) };
    assert_non_null(manner.detector);
    trace_parse(&trace, text);
    struct rf_races races = run_detector(&manner, &trace);
    uint64_t number = 0;
    for (size_t i = 0; i < races.count && !number; i++)
        if (races.list[i].addr == RF_NAMED_BASE + RF_GRANULE * (uint64_t)variable) {
            number = races.list[i].second.number;
            if (race)
                *race = races.list[i];
        }
    if (race)
        race->first.locks = race->second.locks = NULL;
    rf_races_free(&races);
    return number;
}

#endif
