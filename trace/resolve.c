/* Rewrites the RAW events, which no detector knows: barriers and identities.
 *
 * 1. A round of a barrier is the set of threads that arrived since the last round ended. It ends when one of them performs
 *    its next event, or is joined: by then nobody may still be on the way, or the barrier would not have let that thread go.
 * 2. An arrival is a SIGNAL on a key of the round's own; the end of a round is a WAIT on it for every thread, in the order
 *    of arrival, and a FORGET. So all that was before any arrival is before all that is after the round, and nothing else
 *    is.
 * 3. A key is never used again in a trace, and no real or named object has it.
 * 4. A thread is in one round at most, and no round is empty, so there are never more open rounds than threads.
 */
#include <string.h>

#include "trace/grow.h"
#include "trace/reader.h"

#define ROUND_KEYS (UINT64_C(1) << 61)
#define RAW_OPS (1u << RF_BARRIER | 1u << RF_IDENTITY)
#define NOBODY UINT32_MAX

struct arrival {
    uint32_t thread, site;
};

struct round {
    uint64_t barrier, key;
    struct arrival *arrivals;
    size_t count, capacity;
};

struct rf_resolver {
    struct round *rounds; /* the open ones come first; the rest keep their memory for later */
    size_t open, capacity;
    uint64_t keys;
    struct resolved_thread {
        uint32_t performer; /* who performs what the trace writes for it; NOBODY: itself */
        bool waits;         /* in an open round */
    } * threads;
    size_t threads_capacity;
    size_t identities; /* threads that another performs */
};

struct rf_resolver *rf_resolver_new(void)
{
    struct rf_resolver *resolver = rf_resize(NULL, sizeof *resolver);
    *resolver = (struct rf_resolver){ 0 };
    return resolver;
}

void rf_resolver_free(struct rf_resolver *resolver)
{
    if (!resolver)
        return;
    for (size_t i = 0; i < resolver->capacity; i++)
        free(resolver->rounds[i].arrivals);
    free(resolver->rounds);
    free(resolver->threads);
    free(resolver);
}

static struct resolved_thread *thread_of(struct rf_resolver *resolver, uint32_t thread)
{
    size_t known = resolver->threads_capacity;
    if (thread >= known) {
        resolver->threads =
            rf_reserve(resolver->threads, &resolver->threads_capacity, (size_t)thread + 1, sizeof *resolver->threads);
        for (size_t i = known; i < resolver->threads_capacity; i++)
            resolver->threads[i] = (struct resolved_thread){ .performer = NOBODY };
    }
    return &resolver->threads[thread];
}

static struct rf_event *append(struct rf_chunk *chunk, struct rf_batch *batch, struct rf_event event)
{
    chunk->resolved = rf_reserve(chunk->resolved, &chunk->resolved_capacity, batch->count + 1, sizeof *chunk->resolved);
    batch->ops |= 1u << event.op;
    chunk->resolved[batch->count] = event;
    return &chunk->resolved[batch->count++];
}

static struct round *round_of_barrier(struct rf_resolver *resolver, uint64_t barrier)
{
    for (size_t i = 0; i < resolver->open; i++)
        if (resolver->rounds[i].barrier == barrier)
            return &resolver->rounds[i];
    size_t known = resolver->capacity;
    resolver->rounds = rf_reserve(resolver->rounds, &resolver->capacity, resolver->open + 1, sizeof *resolver->rounds);
    if (known < resolver->capacity)
        memset(resolver->rounds + known, 0, (resolver->capacity - known) * sizeof *resolver->rounds);
    struct round *round = &resolver->rounds[resolver->open++];
    round->barrier = barrier;
    round->key = ROUND_KEYS + resolver->keys++;
    round->count = 0;
    return round;
}

static void arrive(struct rf_resolver *resolver, struct rf_chunk *chunk, struct rf_batch *out, struct rf_event event)
{
    struct round *round = round_of_barrier(resolver, event.addr);
    round->arrivals = rf_reserve(round->arrivals, &round->capacity, round->count + 1, sizeof *round->arrivals);
    round->arrivals[round->count++] = (struct arrival){ event.thread, event.site };
    thread_of(resolver, event.thread)->waits = true;
    event.op = RF_SIGNAL;
    event.addr = round->key;
    append(chunk, out, event);
}

/* `cause` is the event that ends the round in which `thread` waits. */
static void end_round(struct rf_resolver *resolver, struct rf_chunk *chunk, struct rf_batch *out, uint32_t thread,
                      struct rf_event cause)
{
    struct round *round = NULL;
    for (size_t i = 0; i < resolver->open && !round; i++)
        for (size_t j = 0; j < resolver->rounds[i].count && !round; j++)
            if (resolver->rounds[i].arrivals[j].thread == thread)
                round = &resolver->rounds[i];
    if (!round)
        return; /* not so: it waits, and whoever waits is in a round */
    struct rf_event event = { .addr = round->key, .number = cause.number, .op = RF_WAIT };
    for (size_t i = 0; i < round->count; i++) {
        event.thread = round->arrivals[i].thread;
        event.site = round->arrivals[i].site;
        append(chunk, out, event);
        thread_of(resolver, event.thread)->waits = false;
    }
    event.op = RF_FORGET;
    append(chunk, out, event);
    struct round ended = *round;
    *round = resolver->rounds[--resolver->open];
    resolver->rounds[resolver->open] = ended;
}

static void identify(struct rf_resolver *resolver, const struct rf_event *event)
{
    struct resolved_thread *thread = thread_of(resolver, event->thread);
    uint32_t performer = event->addr == event->thread ? NOBODY : (uint32_t)event->addr;
    resolver->identities -= thread->performer != NOBODY;
    resolver->identities += performer != NOBODY;
    thread->performer = performer;
}

void rf_resolve(struct rf_resolver *resolver, struct rf_chunk *chunk, struct rf_batch *batch)
{
    if (!(batch->ops & RAW_OPS) && resolver->open == 0 && resolver->identities == 0)
        return;
    struct rf_batch out = { .base = batch->base };
    for (size_t i = 0; i < batch->count; i++) {
        struct rf_event event = batch->events[i];
        if (event.op == RF_IDENTITY) {
            identify(resolver, &event);
            continue;
        }
        uint32_t performer = thread_of(resolver, event.thread)->performer;
        if (performer != NOBODY)
            event.thread = performer;
        if (thread_of(resolver, event.thread)->waits)
            end_round(resolver, chunk, &out, event.thread, event);
        if (event.op == RF_JOIN && thread_of(resolver, (uint32_t)event.addr)->waits)
            end_round(resolver, chunk, &out, (uint32_t)event.addr, event);
        if (event.op == RF_BARRIER)
            arrive(resolver, chunk, &out, event);
        else
            append(chunk, &out, event);
    }
    out.events = chunk->resolved;
    *batch = out;
}
