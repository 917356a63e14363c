/* See hardware/ahead.h. */
#include "hardware/ahead.h"

#include "hardware/simulate.h"

/* First the places that the address leads to: sets of the caches, lists of lines, records. The two metadata lines of a line are
 * neighbours in all of them. A compact one has the first one's place. */
static uint64_t first_step(struct rf_simulation *s, const struct rf_event *event)
{
    struct rf_radish *radish = &s->radish;
    uint64_t physical = rf_physical_near(&s->pages, event->addr), line = physical >> s->baseline.line_bits;
    uint32_t *recent = &s->ahead.recent[line % RF_AHEAD_RECENT], mark = (uint32_t)line + 1;
    if (!physical || *recent == mark || event->thread >= s->thread_cap || s->threads[event->thread].core == RF_UNKNOWN)
        return 0;
    uint32_t core = s->threads[event->thread].core;
    *recent = mark;
    rf_machine_prefetch(&s->baseline, core, rf_key_data(line));
    rf_machine_prefetch(&radish->machine, core, rf_key_data(line));
    if (2 * line < radish->software.record_cap)
        __builtin_prefetch(rf_record_at(&radish->software, 2 * line));
    return line + 1;
}

/* Then the first line and the first history, `steps` == 0; then the second ones. */
static void next_step(const struct rf_radish *radish, uint64_t number, unsigned steps)
{
    const struct rf_metadata *line = rf_lines_of(radish, number);
    const struct rf_record *record = rf_software_record(radish, number);
    const struct rf_history *history = record ? record->histories : NULL;
    for (; steps; steps--) {
        line = line ? line->next : NULL;
        history = history ? history->next : NULL;
    }
    if (line)
        rf_line_prefetch(radish, line);
    if (history)
        __builtin_prefetch(history);
}

void rf_ahead_look(struct rf_simulation *s, const struct rf_batch *batch, size_t at)
{
    uint64_t *lines = s->ahead.lines, *first = &lines[(at + RF_AHEAD - 1) % RF_AHEAD];
    *first = 0;
    if (at + RF_AHEAD <= batch->count) {
        const struct rf_event *event = &batch->events[at + RF_AHEAD - 1];
        if (event->op == RF_READ || event->op == RF_WRITE)
            *first = first_step(s, event);
    }
    for (unsigned steps = 0; steps < 2; steps++) {
        uint64_t line = lines[(at + (2 - steps) * RF_AHEAD / 3) % RF_AHEAD];
        if (line) {
            next_step(&s->radish, 2 * line - 2, steps);
            next_step(&s->radish, 2 * line - 1, steps);
        }
    }
}
