/* Rewrites the RAW events, which no detector knows: barriers and identities; and leaves out what a view of the execution leaves out
 * (struct rf_event, the mark `system`; trace.h, enum rf_view).
 *
 * 1. A round of a barrier is the set of threads that arrived since the last round ended. It ends when one of them performs
 *    its next event, or is joined: by then nobody may still be on the way, or the barrier would not have let that thread go.
 * 2. An arrival is a SIGNAL on a key of the round's own; the end of a round is a WAIT on it for every thread, in the order
 *    of arrival, and a FORGET. So all that was before any arrival is before all that is after the round, and nothing else
 *    is.
 * 3. A key is never used again in a trace, and no real or named object has it.
 * 4. A thread is in one round at most, and no round is empty, so there are never more open rounds than threads.
 * 5. Without identities (RF_VIEW_NO_IDENTITY) a fork of a thread that others perform is a SIGNAL to whoever is to perform it first, and
 *    its join a WAIT for all that was performed as it: what the language says of its threads' order is synchronisation like any
 *    other, and is not lost with the identities. Only who acts is.
 */
#include <string.h>

#include "trace/grow.h"
#include "trace/reader.h"

#define ROUND_KEYS (UINT64_C(1) << 61)
#define FORK_KEYS (UINT64_C(1) << 62) /* + the thread: what came before its fork */
#define JOIN_KEYS (UINT64_C(3) << 61) /* + the thread: what was performed as it */
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
        bool performed;     /* it was somebody's identity */
    } * threads;
    size_t threads_capacity;
    size_t identities; /* threads that another performs */
    unsigned view;
    bool leaves_parts; /* of the COMMIT or COPY that was left out */
};

struct rf_resolver *rf_resolver_new(void)
{
    struct rf_resolver *resolver = rf_resize(NULL, sizeof *resolver);
    *resolver = (struct rf_resolver){ 0 };
    return resolver;
}

void rf_resolver_view(struct rf_resolver *resolver, unsigned view)
{
    resolver->view = view;
}

unsigned rf_resolver_viewed(const struct rf_resolver *resolver)
{
    return resolver->view;
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

/* Invariant 5: `thread` goes from one identity to another, and stays who it is. */
static void identify_nobody(struct rf_resolver *resolver, struct rf_chunk *chunk, struct rf_batch *out,
                            struct rf_event event, uint32_t before, uint32_t after)
{
    if (before != NOBODY) {
        event.op = RF_SIGNAL;
        event.addr = JOIN_KEYS + before;
        append(chunk, out, event);
    }
    if (after != NOBODY && !thread_of(resolver, after)->performed) {
        thread_of(resolver, after)->performed = true;
        event.op = RF_WAIT;
        event.addr = FORK_KEYS + after;
        append(chunk, out, event);
    }
}

static void identify(struct rf_resolver *resolver, struct rf_chunk *chunk, struct rf_batch *out,
                     const struct rf_event *event)
{
    struct resolved_thread *thread = thread_of(resolver, event->thread);
    uint32_t performer = event->addr == event->thread ? NOBODY : (uint32_t)event->addr;
    if (resolver->view & RF_VIEW_NO_IDENTITY)
        identify_nobody(resolver, chunk, out, *event, thread->performer, performer);
    thread = thread_of(resolver, event->thread);
    resolver->identities -= thread->performer != NOBODY;
    resolver->identities += performer != NOBODY;
    thread->performer = performer;
}

/* Is the event no part of this view? */
static bool is_left_out(struct rf_resolver *resolver, const struct rf_event *event)
{
    enum rf_op op = (enum rf_op)event->op;
    enum rf_op_kind kind = rf_op_kind(op);
    unsigned view = resolver->view;
    if (kind == RF_PART)
        return resolver->leaves_parts;
    bool out = false;
    if (op == RF_IDENTITY)
        out = false; /* who acts is known of everybody */
    else if (event->system)
        out = !(view & (kind == RF_SYNC || kind == RF_RAW ? RF_VIEW_SYSTEM_SYNC : RF_VIEW_SYSTEM_MEMORY));
    else if (op == RF_COPY)
        out = view & RF_VIEW_NO_COPY;
    else if (kind == RF_MEMORY)
        out = view & RF_VIEW_NO_CLEAR;
    resolver->leaves_parts = out;
    return out;
}

/* Invariant 5, for the thread that a FORK or JOIN is about. Before a JOIN, and after a FORK, so that both say more than the event. */
static void order_identity(struct rf_chunk *chunk, struct rf_batch *out, struct rf_event event)
{
    event.addr += event.op == RF_FORK ? FORK_KEYS : JOIN_KEYS;
    event.op = event.op == RF_FORK ? RF_SIGNAL : RF_WAIT;
    append(chunk, out, event);
}

bool rf_resolves(const struct rf_resolver *resolver, const struct rf_batch *batch)
{
    uint32_t looked_at = RAW_OPS | RF_OPS_SYSTEM;
    if (resolver->view & RF_VIEW_NO_CLEAR)
        looked_at |= 1u << RF_ALLOC | 1u << RF_FREE;
    if (resolver->view & RF_VIEW_NO_COPY)
        looked_at |= 1u << RF_COPY;
    if (resolver->view & RF_VIEW_NO_IDENTITY)
        looked_at |= 1u << RF_FORK | 1u << RF_JOIN;
    return batch->ops & looked_at || resolver->open || resolver->identities;
}

void rf_resolve(struct rf_resolver *resolver, struct rf_chunk *chunk, struct rf_batch *batch)
{
    if (!rf_resolves(resolver, batch))
        return;
    bool identities = !(resolver->view & RF_VIEW_NO_IDENTITY);
    struct rf_batch out = { .base = batch->base };
    for (size_t i = 0; i < batch->count; i++) {
        struct rf_event event = batch->events[i];
        if (is_left_out(resolver, &event))
            continue;
        event.system = 0;
        if (event.op == RF_IDENTITY) {
            identify(resolver, chunk, &out, &event);
            continue;
        }
        uint32_t performer = thread_of(resolver, event.thread)->performer;
        if (performer != NOBODY && identities)
            event.thread = performer;
        if (thread_of(resolver, event.thread)->waits)
            end_round(resolver, chunk, &out, event.thread, event);
        if (event.op == RF_JOIN && thread_of(resolver, (uint32_t)event.addr)->waits)
            end_round(resolver, chunk, &out, (uint32_t)event.addr, event);
        if (event.op == RF_JOIN && !identities)
            order_identity(chunk, &out, event);
        if (event.op == RF_BARRIER)
            arrive(resolver, chunk, &out, event);
        else
            append(chunk, &out, event);
        if (event.op == RF_FORK && !identities)
            order_identity(chunk, &out, event);
    }
    out.events = chunk->resolved;
    *batch = out;
}
