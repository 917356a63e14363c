/* Traces made from a seed: "program" looks like a program at work and is for measuring, "random" is small and nasty and is
 * for testing.
 *
 * 1. The same options give the same trace on every machine.
 * 2. Every trace is well-formed (see check.h), and its events keep the invariants of core/event.h.
 * 3. Nothing is allocated per event; a trace of any length takes the same memory.
 */
#ifndef RF_TRACE_GENERATE_H
#define RF_TRACE_GENERATE_H

#include "core/event.h"

struct rf_writer;

enum rf_shape { RF_SHAPE_PROGRAM, RF_SHAPE_RANDOM };

#define RF_RANDOM_MAX 64u /* threads, locks and other objects of a random trace; more are taken for this many */
#define RF_RANDOM_MAX_VARIABLES 256u

struct rf_generate_options {
    enum rf_shape shape;
    uint64_t seed;
    uint64_t length;    /* events, at least one fork and join for each thread */
    uint32_t threads;   /* with the first one */
    uint32_t locks;     /* random: also of the other objects, each kind */
    uint32_t variables; /* of 8 bytes */
    uint32_t sites;
    bool numeric_sites; /* named 1, 2, 3, ..., as RAPID wants them */
    /* program */
    double locality;    /* chance that a thread goes on near where it was */
    double reuse;       /* chance that an access goes back to one of the last few words */
    double sharing;     /* chance that a stretch of accesses reads shared data */
    double race_rate;   /* chance that a thread forgets the lock of shared data */
    double write_share; /* of the accesses to a thread's own data and to data under a lock; random: see weights */
    double sync_share;  /* of acquires and releases among the events */
    /* random */
    unsigned weights[RF_OP_COUNT]; /* how often an operation comes up; 0: never. Parts and FORGET have none. */
    bool bytes;                    /* variables overlap: parts of 1, 2, 4 or 8 bytes of granules with addresses, not names */
};

/* Takes an event. false: no more are wanted, and only the few follow that end what was begun. */
typedef bool rf_emit_fn(void *context, uint64_t number, const struct rf_event *event);

void rf_generate_defaults(struct rf_generate_options *options, enum rf_shape shape);
/* Either shape; the numbers of events are 1, 2, 3, ... */
void rf_generate(const struct rf_generate_options *options, rf_emit_fn *emit, void *context);
void rf_generate_program(const struct rf_generate_options *options, rf_emit_fn *emit, void *context);
void rf_generate_random(const struct rf_generate_options *options, rf_emit_fn *emit, void *context);
/* Declares every thread, site, variable and object that the events may name. */
void rf_generate_declare(const struct rf_generate_options *options, struct rf_writer *writer);

#endif
