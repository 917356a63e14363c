/* The earlier access of a race is known by 32 bits of its number. In a trace of fewer than 2^32 events they are its number; in a
 * longer one it is the latest event with these bits that touches the variable, and has the thread: so candidates are tried from
 * the later to the earlier, one pass over their chunks for each step of 2^32.
 */
#include "replay/provenance.h"

#include <stdlib.h>

#include "replay/replay.h"
#include "trace/grow.h"

struct wanted {
    uint64_t number;
    struct rf_race *race;
    bool found;
};

struct search {
    struct wanted *wanted;
    size_t count, at; /* numbers before `at` were passed */
};

static int by_number(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool touches(const struct rf_event *event, const struct rf_race *race)
{
    return event->addr < race->addr + race->size && race->addr < event->addr + event->size;
}

static void found(void *context, uint64_t number, const struct rf_event *event)
{
    struct search *search = context;
    enum rf_op op = (enum rf_op)event->op;
    bool is_access = rf_op_kind(op) == RF_ACCESS || op == RF_COMMIT_READ || op == RF_COMMIT_WRITE || op == RF_FREE;
    while (search->at < search->count && search->wanted[search->at].number < number)
        search->at++;
    for (size_t i = search->at; is_access && i < search->count && search->wanted[i].number == number; i++) {
        struct wanted *wanted = &search->wanted[i];
        struct rf_race_access *first = &wanted->race->first;
        bool exact = touches(event, wanted->race) && rf_op_writes(op) == rf_op_writes(first->op);
        /* A history that was copied belongs to another address: then any access with the number will do. Of several events
         * with one number (a transaction) the exact one wins. */
        if (wanted->found && !exact)
            continue;
        wanted->found = true;
        first->number = number;
        first->op = op;
        first->site = event->site;
        if (first->thread == RF_UNKNOWN)
            first->thread = event->thread;
    }
}

bool rf_provenance(struct rf_reader *reader, struct rf_report *report)
{
    size_t count = 0;
    for (size_t r = 0; r < report->result_count; r++)
        count += report->results[r].races.count;
    struct search search = { .wanted = rf_resize(NULL, count * sizeof *search.wanted) };
    for (size_t r = 0; r < report->result_count; r++) {
        struct rf_races *races = &report->results[r].races;
        for (size_t i = 0; i < races->count; i++)
            if (races->list[i].first.number)
                search.wanted[search.count++] =
                    (struct wanted){ .number = races->list[i].first.number, .race = &races->list[i] };
    }
    uint64_t *numbers = rf_resize(NULL, search.count * sizeof *numbers);
    bool readable = true;
    while (readable && search.count) {
        qsort(search.wanted, search.count, sizeof *search.wanted, by_number);
        size_t distinct = 0;
        for (size_t i = 0; i < search.count; i++)
            if (!distinct || numbers[distinct - 1] != search.wanted[i].number)
                numbers[distinct++] = search.wanted[i].number;
        search.at = 0;
        readable = rf_reader_lookup(reader, numbers, distinct, found, &search) != RF_TRACE_ERROR;
        size_t left = 0;
        for (size_t i = 0; i < search.count; i++) {
            struct wanted wanted = search.wanted[i];
            if (wanted.found || wanted.number <= UINT32_MAX)
                continue;
            wanted.number -= UINT64_C(1) << 32;
            search.wanted[left++] = wanted;
        }
        search.count = left;
    }
    free(numbers);
    free(search.wanted);
    return readable;
}
