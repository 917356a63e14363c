/* The earlier access of a race is known by the lower bits of its number, 28 or 32 of them. In a trace of fewer events than they can
 * tell apart they are its number; in a longer one it is the latest event with these bits that touches the variable, and has the
 * kind and the thread: so candidates are tried from the later to the earlier, one pass over their chunks for each step of 2^28 or 2^32.
 *
 * 1. A history that was copied belongs to another address, and an event that someone else performed (ident) has another
 *    thread: so nothing is a must, and the best candidate wins, among equals the one that was tried first.
 */
#include "replay/provenance.h"

#include <stdlib.h>

#include "replay/replay.h"
#include "trace/grow.h"

struct wanted {
    uint64_t number;
    struct rf_race *race;
    bool writes; /* what the detector says of the first access */
    uint32_t thread;
    unsigned fits; /* how well the best candidate does, 0: there was none */
};

#define FITS_WELL 8u

struct search {
    struct wanted *wanted;
    size_t count, at; /* numbers before `at` were passed */
};

static int by_number(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static unsigned fits(const struct wanted *wanted, const struct rf_event *event)
{
    const struct rf_race *race = wanted->race;
    bool touches = event->addr < race->addr + race->size && race->addr < event->addr + event->size;
    bool same_kind = rf_op_writes((enum rf_op)event->op) == wanted->writes;
    bool same_thread = wanted->thread == RF_UNKNOWN || wanted->thread == event->thread;
    return 1 + 4 * touches + 2 * same_kind + same_thread;
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
        unsigned now = fits(wanted, event);
        if (now <= wanted->fits)
            continue;
        wanted->fits = now;
        first->number = number;
        first->op = op;
        first->site = event->site;
        first->thread = wanted->thread == RF_UNKNOWN ? event->thread : wanted->thread;
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
                search.wanted[search.count++] = (struct wanted){ .number = races->list[i].first.number,
                                                                 .race = &races->list[i],
                                                                 .writes = rf_op_writes(races->list[i].first.op),
                                                                 .thread = races->list[i].first.thread };
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
            uint64_t step = UINT64_C(1) << (wanted.race->number_bits ? wanted.race->number_bits : 32);
            if (wanted.fits == FITS_WELL || wanted.number < step)
                continue;
            wanted.number -= step;
            search.wanted[left++] = wanted;
        }
        search.count = left;
    }
    free(numbers);
    free(search.wanted);
    return readable;
}
