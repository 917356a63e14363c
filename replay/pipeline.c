/* One worker reads and analyses in turn. Several share both: any worker may decode the next chunk, each analyses every chunk,
 * in order, for its own share of the variables.
 *
 * 1. Chunks are numbered, and number n has place n of a ring while it is on its way. A load carries one chunk: it is FILLING by one
 *    worker, DECODED, READY, and spare again once every worker has analysed it. The ring, the spare loads and all changes of state
 *    are under `lock`.
 * 2. The worker that takes number n fetches it under `lock` (the input is read in order) and decodes it without. Chunks are
 *    resolved in order, since barriers reach over them: by whoever decodes the one that the others, decoded already, have been
 *    waiting for.
 * 3. No deadlock: a worker waits only if its next chunk is not ready and there is none to fill. Then either another worker is
 *    filling one, and will make all ready that it can, or no place is free because another worker is still analysing.
 * 4. A READY load is read by all and written by none. Who filled it divided its events: each worker has a share of its own, without
 *    gaps, so that nobody loads what is another's. Usually the decoder writes the shares, and there is no whole; where somebody needs
 *    one (barriers, a detector that cannot be sharded, text) they are copied from it.
 * 5. A load always returns to the worker that filled it, and the last to return is the next to be filled: so its memory is still in that
 *    core's cache, and only the shares of the others ever move between cores.
 */
#include "replay/pipeline.h"
#include "trace/grow.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places in the ring beyond two a worker: while the system lets one of them wait, which may be for some milliseconds, the others go on. */
#define AHEAD 12u

enum load_state { FILLING, DECODED, READY };

struct load {
    enum load_state state;
    struct rf_chunk *chunk;
    bool good;  /* all of it could be decoded */
    bool whole; /* batch.events are there, not only the shares */
    struct rf_batch batch;
    struct rf_share *shares; /* one a worker */
    unsigned readers;        /* workers that have yet to analyse it */
    struct worker *filler;
    struct load *next; /* spare */
};

struct worker {
    struct crew *crew;
    unsigned number;
    struct load *spare;
};

struct crew {
    struct rf_pipeline *pipeline;
    unsigned jobs;
    struct worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct load **ring; /* NULL: a place is free */
    unsigned ring_length;
    uint64_t fetched;  /* number of the next chunk to fetch */
    uint64_t resolved; /* number of the next chunk to resolve */
    uint64_t last;     /* number of chunks in all, once it is known */
    bool whole;        /* chunks must be decoded as a whole first */
    enum rf_trace_status status;
    bool start_over;
};

/* `share` is the worker's share of the batch. */
static void analyse(struct rf_pipeline *pipeline, unsigned worker, const struct rf_batch *batch,
                    const struct rf_batch *share)
{
    unsigned jobs = pipeline->plan->jobs;
    for (size_t d = 0; d < pipeline->plan->detector_count; d++) {
        const struct rf_detector *detector = pipeline->plan->detectors[d];
        if (detector->sharded)
            detector->run(&pipeline->replays[d * jobs + worker], share);
        else if (d % jobs == worker)
            detector->run(&pipeline->replays[d * jobs], batch);
    }
}

/* `last` is the number of the last event that was read. */
static void progress(struct rf_pipeline *pipeline, uint64_t last)
{
    const struct rf_plan *plan = pipeline->plan;
    if (plan->progress && last)
        plan->progress(plan->progress_context, pipeline->reader, last);
}

static uint64_t last_number(const struct rf_batch *batch)
{
    return batch->count ? rf_event_number(batch, &batch->events[batch->count - 1]) : 0;
}

static enum rf_trace_status run_alone(struct rf_pipeline *pipeline)
{
    enum rf_trace_status status;
    struct rf_batch batch;
    while ((status = rf_reader_next(pipeline->reader, &batch)) == RF_TRACE_MORE) {
        rf_sites_update(pipeline->sites, pipeline->reader);
        analyse(pipeline, 0, &batch, &batch);
        progress(pipeline, last_number(&batch));
    }
    return status;
}

/* Copies the shares from the whole: accesses go to the worker that has the variable, everything else to all. */
static void divide(struct load *load, unsigned jobs)
{
    const struct rf_batch *batch = &load->batch;
    for (unsigned w = 0; w < jobs; w++) { /* any of them may get all */
        struct rf_share *share = &load->shares[w];
        share->events = rf_reserve(share->events, &share->capacity, batch->count, sizeof *share->events);
        share->count = 0;
    }
    for (size_t i = 0; i < batch->count; i++) {
        bool access = batch->events[i].op <= RF_WRITE;
        unsigned first = access ? rf_shard_of(batch->events[i].addr, jobs) : 0;
        unsigned end = access ? first + 1 : jobs;
        for (unsigned w = first; w < end; w++)
            load->shares[w].events[load->shares[w].count++] = batch->events[i];
    }
}

static struct rf_batch share_of(const struct load *load, unsigned worker)
{
    struct rf_batch share = load->batch;
    share.events = load->shares[worker].events;
    share.count = load->shares[worker].count;
    return share;
}

/* It is the first that is not resolved. Called with the lock held. */
static void resolve(struct crew *crew, struct load *load)
{
    struct rf_reader *reader = crew->pipeline->reader;
    if (rf_reader_resolves(reader, &load->batch)) {
        crew->whole = true; /* from now on: where a barrier is there will be more */
        if (!load->whole)
            load->good = rf_chunk_decode(reader, load->chunk, &load->batch);
        load->whole = true;
        rf_reader_resolve(reader, load->chunk, &load->batch);
        divide(load, crew->jobs);
    }
    if (load->batch.ops & 1u << RF_COPY)
        crew->start_over = true;
    if (!load->good) {
        crew->status = rf_reader_damaged(reader, load->chunk);
        crew->last = crew->resolved + 1;
    }
    uint64_t last = 0;
    for (unsigned w = 0; w < crew->jobs; w++) {
        struct rf_batch share = share_of(load, w);
        uint64_t number = last_number(&share);
        last = number > last ? number : last;
    }
    progress(crew->pipeline, last);
}

/* Makes ready, in order, what is decoded. Called with the lock held. */
static void settle(struct crew *crew)
{
    for (struct load *load; (load = crew->ring[crew->resolved % crew->ring_length]) && load->state == DECODED;
         crew->resolved++) {
        if (crew->resolved < crew->last) /* else an earlier chunk was damaged, and the trace ends there */
            resolve(crew, load);
        load->readers = crew->jobs;
        load->state = READY;
    }
    pthread_cond_broadcast(&crew->changed);
}

static struct load *spare_load(struct worker *worker)
{
    struct load *load = worker->spare;
    if (load) {
        worker->spare = load->next;
        return load;
    }
    load = rf_zeroed(1, sizeof *load);
    load->chunk = rf_chunk_new();
    load->shares = rf_zeroed(worker->crew->jobs, sizeof *load->shares);
    load->filler = worker;
    return load;
}

static void put_back(struct load *load)
{
    load->next = load->filler->spare;
    load->filler->spare = load;
}

/* Takes the next chunk through its filling. Called with the lock held, returns with it held. */
static void fill(struct worker *worker)
{
    struct crew *crew = worker->crew;
    struct rf_reader *reader = crew->pipeline->reader;
    struct load *load = spare_load(worker);
    enum rf_trace_status status = rf_reader_fetch(reader, load->chunk);
    if (status != RF_TRACE_MORE) {
        put_back(load);
        crew->status = status;
        crew->last = crew->fetched;
        pthread_cond_broadcast(&crew->changed);
        return;
    }
    rf_sites_update(crew->pipeline->sites, reader);
    load->state = FILLING;
    load->whole = crew->whole;
    crew->ring[crew->fetched++ % crew->ring_length] = load;
    pthread_mutex_unlock(&crew->lock);

    if (load->whole) {
        load->good = rf_chunk_decode(reader, load->chunk, &load->batch);
        divide(load, crew->jobs); /* in vain if it must be resolved, which nobody knows yet */
    } else {
        load->good = rf_chunk_decode_shares(load->chunk, &load->batch, load->shares, crew->jobs);
    }

    pthread_mutex_lock(&crew->lock);
    load->state = DECODED;
    settle(crew);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct crew *crew = worker->crew;
    uint64_t next = 0;
    pthread_mutex_lock(&crew->lock);
    while (!crew->start_over && next < crew->last) {
        struct load **place = &crew->ring[next % crew->ring_length], *mine = *place;
        /* Place and number belong together: a place is not free before this worker has analysed what is there. */
        if (next < crew->fetched && mine->state == READY) {
            pthread_mutex_unlock(&crew->lock);
            struct rf_batch share = share_of(mine, worker->number);
            analyse(crew->pipeline, worker->number, &mine->batch, &share);
            pthread_mutex_lock(&crew->lock);
            next++;
            if (!--mine->readers) {
                *place = NULL;
                put_back(mine);
                pthread_cond_broadcast(&crew->changed);
            }
        } else if (crew->last == UINT64_MAX && !crew->ring[crew->fetched % crew->ring_length]) {
            fill(worker);
        } else {
            pthread_cond_wait(&crew->changed, &crew->lock);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static bool needs_whole(const struct rf_pipeline *pipeline)
{
    bool whole = rf_reader_format(pipeline->reader) != RF_FORMAT_RFT;
    for (size_t d = 0; d < pipeline->plan->detector_count; d++)
        whole |= !pipeline->plan->detectors[d]->sharded;
    return whole;
}

static void free_load(struct load *load, unsigned jobs)
{
    for (unsigned w = 0; w < jobs; w++)
        free(load->shares[w].events);
    free(load->shares);
    rf_chunk_free(load->chunk);
    free(load);
}

static enum rf_trace_status run_crew(struct rf_pipeline *pipeline)
{
    unsigned jobs = pipeline->plan->jobs;
    struct crew crew = { .pipeline = pipeline,
                         .jobs = jobs,
                         .last = UINT64_MAX,
                         .ring_length = 2 * jobs + AHEAD,
                         .whole = needs_whole(pipeline) };
    pthread_mutexattr_t brief; /* it is held for microseconds: to be woken takes longer than to look again a few times */
    pthread_mutexattr_init(&brief);
    pthread_mutexattr_settype(&brief, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&crew.lock, &brief);
    pthread_cond_init(&crew.changed, NULL);
    crew.ring = rf_zeroed(crew.ring_length, sizeof(struct load *));
    crew.workers = rf_zeroed(jobs, sizeof *crew.workers);
    pthread_t *threads = rf_resize(NULL, jobs * sizeof *threads);
    for (unsigned w = 0; w < jobs; w++)
        crew.workers[w] = (struct worker){ .crew = &crew, .number = w };
    for (unsigned w = 1; w < jobs; w++)
        if (pthread_create(&threads[w], NULL, work, &crew.workers[w])) {
            fprintf(stderr, "redflag: cannot start %u threads; try a smaller --jobs\n", jobs);
            exit(2);
        }
    work(&crew.workers[0]);
    for (unsigned w = 1; w < jobs; w++)
        pthread_join(threads[w], NULL);
    for (unsigned i = 0; i < crew.ring_length; i++) /* those behind a damage were not analysed by all */
        if (crew.ring[i])
            free_load(crew.ring[i], jobs);
    for (unsigned w = 0; w < jobs; w++)
        for (struct load *load = crew.workers[w].spare, *next; load; load = next) {
            next = load->next;
            free_load(load, jobs);
        }
    free(crew.ring);
    free(crew.workers);
    free(threads);
    return crew.start_over ? RF_TRACE_MORE : crew.status;
}

enum rf_trace_status rf_pipeline_run(struct rf_pipeline *pipeline)
{
    return pipeline->plan->jobs > 1 ? run_crew(pipeline) : run_alone(pipeline);
}
