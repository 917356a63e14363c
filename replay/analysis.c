/* From a plan and a path to a report: begins the replays, drives the pipeline, and joins what the workers found. */
#include "replay/analysis.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay/pipeline.h"
#include "replay/provenance.h"
#include "trace/grow.h"

static double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_event(const void *a, const void *b)
{
    const struct rf_race *x = a, *y = b;
    if (x->second.number != y->second.number)
        return x->second.number < y->second.number ? -1 : 1;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return x->first.number < y->first.number ? -1 : x->first.number > y->first.number;
}

/* Is `next` the continuation of `race`: the same two accesses, on the bytes that follow? */
static bool continues(const struct rf_race *race, const struct rf_race *next)
{
    return next->addr < RF_NAMED_BASE && next->addr == race->addr + race->size &&
           next->second.number == race->second.number && next->second.op == race->second.op &&
           next->first.number == race->first.number && race->first.number && next->first.thread == race->first.thread;
}

/* Takes the races of all workers over, in the order of the trace; one access that spans several cells is one race. */
static void gather_races(struct rf_result *result, struct rf_replay *replays, unsigned count)
{
    struct rf_races *all = &result->races;
    for (unsigned w = 0; w < count; w++) {
        struct rf_races *some = &replays[w].races;
        all->list = rf_resize(all->list, (all->count + some->count) * sizeof *all->list);
        if (some->count)
            memcpy(all->list + all->count, some->list, some->count * sizeof *all->list);
        all->count += some->count;
        free(some->list); /* what the races point to has moved */
        *some = (struct rf_races){ 0 };
    }
    if (!all->count)
        return;
    qsort(all->list, all->count, sizeof *all->list, by_event);
    size_t kept = 1;
    for (size_t i = 1; i < all->count; i++) {
        struct rf_race *race = &all->list[kept - 1];
        if (continues(race, &all->list[i])) {
            race->size += all->list[i].size;
            free(all->list[i].first.locks);
            free(all->list[i].second.locks);
        } else {
            all->list[kept++] = all->list[i];
        }
    }
    all->count = kept;
}

/* Every worker sees all synchronisation: what a detector counts there is the same in each, and is not added up. */
static bool is_shared_by_workers(const char *name)
{
    static const char *const shared[] = {
        "clock operations", "joins",        "copies",  "synchronisations", "tracking started", "events enqueued",
        "events discarded", "longest list", "periods", "sampling began",
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (strstr(name, shared[i]))
            return true;
    return false;
}

static void add_statistic(void *context, const char *name, uint64_t value)
{
    struct rf_result *result = context;
    for (size_t i = 0; i < result->statistic_count; i++) {
        if (!strcmp(result->statistics[i].name, name)) {
            if (!is_shared_by_workers(name))
                result->statistics[i].value += value;
            return;
        }
    }
    result->statistics = rf_resize(result->statistics, (result->statistic_count + 1) * sizeof *result->statistics);
    result->statistics[result->statistic_count++] = (struct rf_statistic){ name, value };
}

static void gather(struct rf_result *result, const struct rf_detector *detector, struct rf_replay *replays, unsigned count)
{
    result->detector = detector->name;
    for (unsigned w = 0; w < count; w++) {
        result->seconds += replays[w].seconds;
        struct rf_replay_size size = rf_replay_size(&replays[w]);
        result->bytes += size.bytes;
        result->variable_bytes += size.variable_bytes;
        result->variables += size.variables;
        detector->statistics(&replays[w], add_statistic, result);
    }
    gather_races(result, replays, count);
    for (unsigned w = 0; w < count; w++)
        rf_replay_end(&replays[w]);
}

static const char *name_of_thread(const void *reader, uint32_t thread)
{
    return rf_reader_thread(reader, thread);
}

static const char *name_of_site(const void *reader, uint32_t site)
{
    return rf_reader_site(reader, site);
}

static const char *name_of_variable(const void *reader, uint64_t addr, char buffer[32])
{
    return rf_reader_variable(reader, addr, buffer);
}

static const char *name_of_object(const void *reader, uint64_t addr, char buffer[32])
{
    return rf_reader_object(reader, addr, buffer);
}

static unsigned workers_of(const struct rf_detector *detector, unsigned jobs)
{
    return detector->sharded ? jobs : 1;
}

/* One attempt, with plan->jobs workers. RF_TRACE_MORE: try again with one. */
static enum rf_trace_status attempt(struct rf_reader *reader, const struct rf_plan *plan, struct rf_report *report)
{
    struct rf_sites sites;
    rf_sites_init(&sites, plan->pair);
    struct rf_options options = plan->options;
    options.site_class = plan->pair[0] ? rf_sites_class : NULL;
    options.function_of = rf_sites_function;
    options.names = &sites;
    struct rf_replay *replays = rf_zeroed(plan->detector_count * plan->jobs, sizeof *replays);
    for (size_t d = 0; d < plan->detector_count; d++) {
        unsigned workers = workers_of(plan->detectors[d], plan->jobs);
        for (unsigned w = 0; w < workers; w++)
            rf_replay_begin(&replays[d * plan->jobs + w], plan->detectors[d], &options, plan->all_races, w, workers);
    }
    struct rf_pipeline pipeline = { plan, reader, &sites, replays };
    enum rf_trace_status status = rf_pipeline_run(&pipeline);
    for (size_t d = 0; d < plan->detector_count; d++) {
        unsigned workers = workers_of(plan->detectors[d], plan->jobs);
        if (status == RF_TRACE_MORE)
            for (unsigned w = 0; w < workers; w++)
                rf_replay_end(&replays[d * plan->jobs + w]);
        else
            gather(&report->results[d], plan->detectors[d], &replays[d * plan->jobs], workers);
    }
    free(replays);
    rf_sites_end(&sites);
    return status;
}

enum rf_trace_status rf_analyse(const char *path, const struct rf_plan *plan, struct rf_report *report, char **error)
{
    *report = (struct rf_report){ .path = path };
    *error = NULL;
    double start = wall_seconds();
    struct rf_reader *reader = rf_reader_open(path, plan->format, error);
    if (!reader)
        return RF_TRACE_ERROR;
    rf_reader_view(reader, plan->view);
    report->result_count = plan->detector_count;
    report->results = rf_zeroed(plan->detector_count, sizeof *report->results);
    enum rf_trace_status status = attempt(reader, plan, report);
    if (status == RF_TRACE_MORE) {
        struct rf_plan alone = *plan;
        alone.jobs = 1;
        status = rf_reader_rewind(reader) ? attempt(reader, &alone, report) : RF_TRACE_ERROR;
    }
    report->names = (struct rf_namer){ reader, name_of_thread, name_of_site, name_of_variable, name_of_object };
    report->format = rf_reader_format(reader) == RF_FORMAT_RFT ? "rft" : "std";
    report->events = rf_reader_events(reader);
    report->threads = rf_reader_threads(reader);
    report->sites = rf_reader_sites(reader) ? rf_reader_sites(reader) - 1 : 0;
    if (status != RF_TRACE_END)
        *error = strdup(rf_reader_error(reader));
    if (status == RF_TRACE_TRUNCATED)
        report->truncated = *error;
    if (!rf_provenance(reader, report) && status == RF_TRACE_END) {
        /* The races stand; only the sites of their first accesses are missing, and the line says so. */
        *error = strdup(rf_reader_error(reader));
    }
    report->seconds = wall_seconds() - start;
    return status;
}

void rf_analysis_end(struct rf_report *report)
{
    for (size_t i = 0; i < report->result_count; i++) {
        rf_races_free(&report->results[i].races);
        free(report->results[i].statistics);
    }
    free(report->results);
    if (report->names.context)
        rf_reader_close((struct rf_reader *)(uintptr_t)report->names.context);
    *report = (struct rf_report){ 0 };
}
