/* See replay/lard.h.
 *
 * 1. Every view is the same detector over the same events; an access is known by its number in the trace, so that two views can be
 *    compared access by access, as the paper's section 4.3.4 does it.
 * 2. The language's own trace has other numbers. There accesses are counted by place: as many racy ones in each, or the difference is
 *    false or missed.
 */
#include "replay/lard.h"

#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

static const struct view {
    const char *name;
    unsigned view;
    const char *meaning;
} views[RF_LARD_ROWS] = {
    { "LARD", RF_VIEW_PROGRAM, "what the program did" },
    { "AllMem", RF_VIEW_SYSTEM_MEMORY, "and the accesses of the runtime system" },
    { "AllSync", RF_VIEW_SYSTEM_SYNC, "and the synchronisation of the runtime system" },
    { "NoClear", RF_VIEW_NO_CLEAR, "memory that is used again keeps its history" },
    { "NoCopy", RF_VIEW_NO_COPY, "objects that move lose their history" },
    { "NoIdentity", RF_VIEW_NO_IDENTITY, "kernel threads for the threads of the language" },
    { "Naive", RF_VIEW_SYSTEM_MEMORY | RF_VIEW_SYSTEM_SYNC | RF_VIEW_NO_CLEAR | RF_VIEW_NO_COPY | RF_VIEW_NO_IDENTITY,
      "all of this at once: a detector that is told nothing" },
};

/* Names of places, each once, whatever number it has as a site of a trace. */
struct places {
    char **names;
    size_t count, capacity;
};

struct racy {
    uint64_t number;
    uint32_t place;
};

/* The racy accesses of a view, each once, in the order of the trace. */
struct found {
    struct racy *list;
    size_t count;
};

static uint32_t place_of(struct places *places, const char *name)
{
    for (size_t i = 0; i < places->count; i++)
        if (!strcmp(places->names[i], name))
            return (uint32_t)i;
    places->names = rf_reserve(places->names, &places->capacity, places->count + 1, sizeof *places->names);
    places->names[places->count] = strcpy(rf_resize(NULL, strlen(name) + 1), name);
    return (uint32_t)places->count++;
}

static struct found take(const struct rf_report *report, struct places *places)
{
    uint32_t *known = rf_zeroed((size_t)report->sites + 2, sizeof *known); /* site -> place + 1 */
    const struct rf_races *races = &report->results[0].races;
    struct found found = { .list = rf_resize(NULL, races->count * sizeof *found.list) };
    for (size_t i = 0; i < races->count; i++) { /* which are in the order of their second accesses */
        const struct rf_race_access *access = &races->list[i].second;
        if (found.count && found.list[found.count - 1].number == access->number)
            continue;
        if (!known[access->site])
            known[access->site] = place_of(places, report->names.site(report->names.context, access->site)) + 1;
        found.list[found.count++] = (struct racy){ access->number, known[access->site] - 1 };
    }
    free(known);
    return found;
}

static size_t places_of(const struct racy *list, size_t count, size_t places)
{
    bool *seen = rf_zeroed(places + 1, sizeof *seen);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++) {
        distinct += !seen[list[i].place];
        seen[list[i].place] = true;
    }
    free(seen);
    return distinct;
}

static struct rf_lard_count count_of(const struct found *found, size_t places)
{
    return (struct rf_lard_count){ found->count, places_of(found->list, found->count, places) };
}

/* Those of `a` that are not in `b`. */
static struct rf_lard_count difference(const struct found *a, const struct found *b, size_t places)
{
    struct found only = { .list = rf_resize(NULL, a->count * sizeof *only.list) };
    for (size_t i = 0, j = 0; i < a->count; i++) {
        while (j < b->count && b->list[j].number < a->list[i].number)
            j++;
        if (j == b->count || b->list[j].number != a->list[i].number)
            only.list[only.count++] = a->list[i];
    }
    struct rf_lard_count count = count_of(&only, places);
    free(only.list);
    return count;
}

/* The same where numbers mean nothing: invariant 2. */
static struct rf_lard_count surplus(const struct found *a, const struct found *b, size_t places)
{
    size_t *more = rf_zeroed(places + 1, sizeof *more), *less = rf_zeroed(places + 1, sizeof *less);
    struct rf_lard_count count = { 0 };
    for (size_t i = 0; i < a->count; i++)
        more[a->list[i].place]++;
    for (size_t i = 0; i < b->count; i++)
        less[b->list[i].place]++;
    for (size_t i = 0; i < places; i++) {
        if (more[i] <= less[i])
            continue;
        count.accesses += more[i] - less[i];
        count.places++;
    }
    free(more);
    free(less);
    return count;
}

static enum rf_trace_status look(const char *path, const struct rf_plan *plan, unsigned view, struct places *places,
                                 struct found *found, char **error)
{
    struct rf_plan one = *plan;
    struct rf_report report;
    one.view = view;
    one.all_races = true;
    enum rf_trace_status status = rf_analyse(path, &one, &report, error);
    if (status != RF_TRACE_ERROR)
        *found = take(&report, places);
    rf_analysis_end(&report);
    return status;
}

/* How many events there are, and how many have the mark. */
static void count_events(const char *path, enum rf_trace_format format, struct rf_lard *lard)
{
    char *error = NULL;
    struct rf_reader *reader = rf_reader_open(path, format, &error);
    struct rf_chunk *chunk = rf_chunk_new();
    struct rf_batch batch;
    while (reader && rf_reader_fetch(reader, chunk) == RF_TRACE_MORE && rf_chunk_decode(reader, chunk, &batch)) {
        lard->events += batch.count;
        for (size_t i = 0; (batch.ops & RF_OPS_SYSTEM) && i < batch.count; i++)
            lard->system_events += batch.events[i].system;
    }
    rf_chunk_free(chunk);
    if (reader)
        rf_reader_close(reader);
    free(error);
}

enum rf_trace_status rf_lard(const char *path, const char *language, const struct rf_plan *plan, struct rf_lard *lard,
                             char **error)
{
    *lard = (struct rf_lard){ .path = path, .detector = plan->detectors[0]->name, .has_language = language != NULL };
    *error = NULL;
    struct places places = { 0 };
    struct found all[RF_LARD_ROWS] = { 0 }, told = { 0 };
    enum rf_trace_status status = RF_TRACE_END;
    for (unsigned i = 0; i < RF_LARD_ROWS && status != RF_TRACE_ERROR; i++) {
        free(*error);
        status = look(path, plan, views[i].view, &places, &all[i], error);
    }
    if (status == RF_TRACE_TRUNCATED)
        lard->truncated = *error;
    if (status == RF_TRACE_END && language)
        status = look(language, plan, RF_VIEW_PROGRAM, &places, &told, error);
    if (status != RF_TRACE_ERROR) {
        count_events(path, plan->format, lard);
        for (unsigned i = 0; i < RF_LARD_ROWS; i++)
            lard->rows[i] = (struct rf_lard_row){ .name = views[i].name,
                                                  .meaning = views[i].meaning,
                                                  .reported = count_of(&all[i], places.count),
                                                  .made_up = difference(&all[i], &all[0], places.count),
                                                  .missed = difference(&all[0], &all[i], places.count) };
        lard->language = (struct rf_lard_row){ .name = "language",
                                               .meaning = "the same execution in the language's own terms",
                                               .reported = count_of(&told, places.count),
                                               .made_up = surplus(&all[0], &told, places.count),
                                               .missed = surplus(&told, &all[0], places.count) };
    }
    for (unsigned i = 0; i < RF_LARD_ROWS; i++)
        free(all[i].list);
    free(told.list);
    for (size_t i = 0; i < places.count; i++)
        free(places.names[i]);
    free(places.names);
    return status;
}
