/* See hardware/simulate.h. */
#include "hardware/simulate.h"

#include "hardware/large.h"
#include "trace/grow.h"

void rf_simulation_run(struct rf_simulation *s, const struct rf_batch *batch)
{
    if (s->usual)
        rf_usual_run(s, batch);
    else
        rf_events_run(s, batch);
}

struct identity {
    uint64_t number;
    uint32_t thread, performer;
};

/* Resolving takes `ident` away, but the cores must know. */
static size_t take_identities(const struct rf_batch *batch, struct identity **list, size_t *capacity)
{
    size_t count = 0;
    for (size_t i = 0; batch->ops & 1u << RF_IDENTITY && i < batch->count; i++) {
        const struct rf_event *event = &batch->events[i];
        if (event->op != RF_IDENTITY)
            continue;
        *list = rf_reserve(*list, capacity, count + 1, sizeof **list);
        (*list)[count++] = (struct identity){ rf_event_number(batch, event), event->thread, (uint32_t)event->addr };
    }
    return count;
}

/* The batch, with identities at their places. */
static void run_batch(struct rf_simulation *s, const struct rf_batch *batch, const struct identity *identities, size_t count)
{
    size_t from = 0;
    for (size_t next = 0; next < count; next++) {
        size_t to = from;
        while (to < batch->count && rf_event_number(batch, &batch->events[to]) < identities[next].number)
            to++;
        struct rf_batch part = { .events = batch->events + from, .count = to - from, .base = batch->base };
        rf_simulation_run(s, &part);
        rf_simulation_identify(s, identities[next].thread, identities[next].performer);
        from = to;
    }
    struct rf_batch rest = { .events = batch->events + from, .count = batch->count - from, .base = batch->base };
    rf_simulation_run(s, &rest);
}

enum rf_trace_status rf_simulate(struct rf_reader *reader, struct rf_simulation *simulations, size_t count,
                                 rf_simulate_progress_fn *progress, void *context)
{
    struct rf_chunk *chunk = rf_chunk_new();
    struct identity *identities = NULL;
    size_t capacity = 0;
    struct rf_batch batch;
    enum rf_trace_status status;
    while ((status = rf_reader_fetch(reader, chunk)) == RF_TRACE_MORE) {
        bool good = rf_chunk_decode(reader, chunk, &batch);
        size_t identity_count = take_identities(&batch, &identities, &capacity);
        rf_reader_resolve(reader, chunk, &batch);
        for (size_t i = 0; i < count; i++)
            run_batch(&simulations[i], &batch, identities, identity_count);
        if (!good) {
            status = rf_reader_damaged(reader, chunk);
            break;
        }
        if (progress)
            progress(context, reader);
    }
    rf_chunk_free(chunk);
    free(identities);
    return status;
}

/* ---- beginning and end ---- */

void rf_simulation_init(struct rf_simulation *s, const struct rf_config *config, uint64_t broken)
{
    memset(s, 0, sizeof *s);
    rf_config_copy(&s->config, config);
    s->memory = (struct rf_memory){ .pieces = rf_large_take, .give_back = rf_large_give };
    s->options = (struct rf_options){ .rate = -1 };
    s->engine = (struct rf_engine){ .memory = &s->memory, .options = &s->options };
    rf_order_init(&s->order, &s->engine);
    rf_pages_init(&s->pages, &s->config, &s->memory);
    rf_machine_init(&s->baseline, &s->config, 0);
    rf_radish_init(&s->radish, &s->config, broken, &s->memory, &s->order, &s->pages, s->times[RF_WITH]);
    s->placed = RF_UNKNOWN;
    s->usual = !broken && rf_is_usual(&s->config);
    if (s->usual)
        rf_usual_begin(s);
    else
        rf_events_begin(s);
    for (uint32_t core = 0; core < RF_MAX_CORES; core++)
        s->cores[core] = (struct rf_simulated_core){ .carrier = RF_UNKNOWN, .thread = RF_UNKNOWN };
    for (int space = 0; space < RF_SPACES; space++)
        rf_map_init(&s->objects[space], &s->memory);
    rf_map_init(&s->racy, &s->memory);
    rf_map_init(&s->sites.places, &s->memory);
    rf_map_init(&s->variables.places, &s->memory);
}

void rf_simulation_free(struct rf_simulation *s)
{
    rf_radish_free(&s->radish);
    rf_machine_free(&s->baseline);
    rf_memory_end(&s->memory);
    rf_config_free(&s->config);
}

uint64_t rf_simulation_cycles(const struct rf_simulation *s, int machine)
{
    uint64_t most = 0;
    for (uint32_t core = 0; core < s->config.cores; core++)
        if (s->times[machine][core] > most)
            most = s->times[machine][core];
    return most;
}

double rf_simulation_slowdown(const struct rf_simulation *s)
{
    uint64_t without = rf_simulation_cycles(s, RF_WITHOUT);
    return without ? (double)rf_simulation_cycles(s, RF_WITH) / (double)without : 1;
}
