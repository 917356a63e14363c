/* One worker reads and analyses in turn. Several share both: any worker may decode the next chunk, each analyses every chunk,
 * in order, for its own share of the variables.
 *
 * 1. A chunk lives in a slot of a ring. It is EMPTY, then FILLING by one worker, DECODED, READY, and EMPTY again once every
 *    worker has analysed it. All changes of state are made under `lock`.
 * 2. Chunks are numbered. The worker that takes number n fetches it under `lock` (the input is read in order) and decodes it
 *    without. Chunks are resolved in order, since barriers reach over them: by whoever decodes the one that the others, decoded
 *    already, have been waiting for.
 * 3. No deadlock: a worker waits only if its next chunk is not ready and there is none to fill. Then either another worker is
 *    filling one, and will make all ready that it can, or no slot is empty because another worker is still analysing.
 * 4. A READY slot is read by all and written by none. Who filled it also wrote down, as ranges, which of its events each worker
 *    must look at: few ranges, since neighbours have one owner, and the others' events are never even loaded.
 */
#include "replay/pipeline.h"
#include "trace/grow.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum slot_state { EMPTY, FILLING, DECODED, READY };

struct slot {
    enum slot_state state;
    struct rf_chunk *chunk;
    bool good; /* all of it could be decoded */
    struct rf_batch batch;
    struct share {
        struct rf_range *ranges;
        size_t count, capacity;
    } * shares;       /* one a worker */
    unsigned readers; /* workers that have yet to analyse it */
    uint32_t *seams;  /* those of batch, where share_out() had to find them */
    size_t seam_capacity;
};

struct crew {
    struct rf_pipeline *pipeline;
    unsigned jobs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot *slots;
    unsigned slot_count;
    uint64_t fetched;  /* number of the next chunk to fetch */
    uint64_t resolved; /* number of the next chunk to resolve */
    uint64_t last;     /* number of chunks in all, once it is known */
    enum rf_trace_status status;
    bool start_over;
};

struct worker {
    struct crew *crew;
    unsigned number;
};

/* `share` is the batch with the worker's ranges. */
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

static void progress(struct rf_pipeline *pipeline, const struct rf_batch *batch)
{
    const struct rf_plan *plan = pipeline->plan;
    if (plan->progress && batch->count)
        plan->progress(plan->progress_context, pipeline->reader, rf_event_number(batch, &batch->events[batch->count - 1]));
}

static enum rf_trace_status run_alone(struct rf_pipeline *pipeline)
{
    enum rf_trace_status status;
    struct rf_batch batch;
    while ((status = rf_reader_next(pipeline->reader, &batch)) == RF_TRACE_MORE) {
        rf_sites_update(pipeline->sites, pipeline->reader);
        analyse(pipeline, 0, &batch, &batch);
        progress(pipeline, &batch);
    }
    return status;
}

static void add_range(struct share *share, uint32_t begin, uint32_t end)
{
    if (begin == end)
        return;
    if (share->count && share->ranges[share->count - 1].end == begin) {
        share->ranges[share->count - 1].end = end;
        return;
    }
    share->ranges = rf_reserve(share->ranges, &share->capacity, share->count + 1, sizeof *share->ranges);
    share->ranges[share->count++] = (struct rf_range){ begin, end };
}

/* Finds the seams that nobody has written down: in a text, and where barriers were resolved. Without branches: addresses jump about,
 * and a wrong guess takes longer than many events do. */
static void find_seams(struct slot *slot)
{
    struct rf_batch *batch = &slot->batch;
    slot->seams = rf_reserve(slot->seams, &slot->seam_capacity, batch->count + 1, sizeof *slot->seams);
    size_t count = 0;
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < batch->count; i++) {
        const struct rf_event *event = &batch->events[i];
        /* What is not an access has a number that no unit and no neighbour has. */
        uint64_t unit = event->op > RF_WRITE ? ~(uint64_t)i << 32 : event->addr / RF_SHARD;
        slot->seams[count] = (uint32_t)i;
        count += unit != last;
        last = unit;
    }
    batch->seams = slot->seams;
    batch->seam_count = count;
}

/* Accesses belong to the worker that has the variable, everything else to all. */
static void share_out(struct slot *slot, unsigned jobs)
{
    for (unsigned w = 0; w < jobs; w++) {
        slot->shares[w].count = 0;
        /* Never NULL, which would mean all. */
        slot->shares[w].ranges = rf_reserve(slot->shares[w].ranges, &slot->shares[w].capacity, 1, sizeof(struct rf_range));
    }
    if (!slot->batch.seams)
        find_seams(slot);
    uint32_t begin = 0; /* from here on all events are the owner's */
    unsigned owner = 0;
    for (size_t s = 0; s < slot->batch.seam_count; s++) {
        uint32_t i = slot->batch.seams[s];
        const struct rf_event *event = &slot->batch.events[i];
        bool access = event->op <= RF_WRITE;
        unsigned next = rf_shard_of(event->addr, jobs);
        if (access && next == owner)
            continue;
        add_range(&slot->shares[owner], begin, i);
        begin = i;
        if (access) {
            owner = next;
            continue;
        }
        for (unsigned w = 0; w < jobs; w++)
            add_range(&slot->shares[w], i, i + 1);
        begin = i + 1;
    }
    add_range(&slot->shares[owner], begin, (uint32_t)slot->batch.count);
}

/* Makes ready, in order, what is decoded. Called with the lock held. */
static void settle(struct crew *crew)
{
    struct rf_reader *reader = crew->pipeline->reader;
    for (struct slot *slot; (slot = &crew->slots[crew->resolved % crew->slot_count])->state == DECODED; crew->resolved++) {
        if (crew->resolved < crew->last) { /* else an earlier chunk was damaged, and the trace ends there */
            struct rf_batch before = slot->batch;
            rf_reader_resolve(reader, slot->chunk, &slot->batch);
            if (slot->batch.events != before.events || slot->batch.count != before.count) /* rare: there were barriers */
                share_out(slot, crew->jobs);
            if (slot->batch.ops & 1u << RF_COPY)
                crew->start_over = true;
            if (!slot->good) {
                crew->status = rf_reader_damaged(reader, slot->chunk);
                crew->last = crew->resolved + 1;
            }
            progress(crew->pipeline, &slot->batch);
        }
        slot->readers = crew->jobs;
        slot->state = READY;
    }
    pthread_cond_broadcast(&crew->changed);
}

/* Takes the next chunk through its filling. Called with the lock held, returns with it held. */
static void fill(struct crew *crew)
{
    struct rf_reader *reader = crew->pipeline->reader;
    struct slot *slot = &crew->slots[crew->fetched % crew->slot_count];
    enum rf_trace_status status = rf_reader_fetch(reader, slot->chunk);
    if (status != RF_TRACE_MORE) {
        crew->status = status;
        crew->last = crew->fetched;
        pthread_cond_broadcast(&crew->changed);
        return;
    }
    rf_sites_update(crew->pipeline->sites, reader);
    crew->fetched++;
    slot->state = FILLING;
    pthread_mutex_unlock(&crew->lock);

    slot->good = rf_chunk_decode(reader, slot->chunk, &slot->batch);
    share_out(slot, crew->jobs);

    pthread_mutex_lock(&crew->lock);
    slot->state = DECODED;
    settle(crew);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct crew *crew = worker->crew;
    uint64_t next = 0;
    pthread_mutex_lock(&crew->lock);
    while (!crew->start_over && next < crew->last) {
        struct slot *mine = &crew->slots[next % crew->slot_count];
        /* Slot and number belong together: a slot is not refilled before this worker has analysed it. */
        if (mine->state == READY && next < crew->fetched) {
            pthread_mutex_unlock(&crew->lock);
            struct rf_batch share = mine->batch;
            share.ranges = mine->shares[worker->number].ranges;
            share.range_count = mine->shares[worker->number].count;
            analyse(crew->pipeline, worker->number, &mine->batch, &share);
            pthread_mutex_lock(&crew->lock);
            next++;
            if (!--mine->readers) {
                mine->state = EMPTY;
                pthread_cond_broadcast(&crew->changed);
            }
        } else if (crew->last == UINT64_MAX && crew->slots[crew->fetched % crew->slot_count].state == EMPTY) {
            fill(crew);
        } else {
            pthread_cond_wait(&crew->changed, &crew->lock);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static enum rf_trace_status run_crew(struct rf_pipeline *pipeline)
{
    unsigned jobs = pipeline->plan->jobs;
    struct crew crew = { .pipeline = pipeline, .jobs = jobs, .last = UINT64_MAX, .slot_count = 2 * jobs + 1 };
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.changed, NULL);
    crew.slots = rf_resize(NULL, crew.slot_count * sizeof *crew.slots);
    for (unsigned i = 0; i < crew.slot_count; i++) {
        crew.slots[i] = (struct slot){ .chunk = rf_chunk_new(), .shares = rf_zeroed(jobs, sizeof(struct share)) };
        rf_chunk_mark_seams(crew.slots[i].chunk);
    }
    pthread_t *threads = rf_resize(NULL, jobs * sizeof *threads);
    struct worker *workers = rf_resize(NULL, jobs * sizeof *workers);
    for (unsigned w = 0; w < jobs; w++) {
        workers[w] = (struct worker){ &crew, w };
        if (w && pthread_create(&threads[w], NULL, work, &workers[w])) {
            fprintf(stderr, "redflag: cannot start %u threads; try a smaller --jobs\n", jobs);
            exit(2);
        }
    }
    work(&workers[0]);
    for (unsigned w = 1; w < jobs; w++)
        pthread_join(threads[w], NULL);
    for (unsigned i = 0; i < crew.slot_count; i++) {
        for (unsigned w = 0; w < jobs; w++)
            free(crew.slots[i].shares[w].ranges);
        free(crew.slots[i].shares);
        free(crew.slots[i].seams);
        rf_chunk_free(crew.slots[i].chunk);
    }
    free(crew.slots);
    free(threads);
    free(workers);
    return crew.start_over ? RF_TRACE_MORE : crew.status;
}

enum rf_trace_status rf_pipeline_run(struct rf_pipeline *pipeline)
{
    return pipeline->plan->jobs > 1 ? run_crew(pipeline) : run_alone(pipeline);
}
