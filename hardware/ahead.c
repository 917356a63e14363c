/* See hardware/ahead.h. */
#include "hardware/ahead.h"

#include "hardware/simulate.h"

/* First the places that the address leads to: sets of the caches, the record. The two metadata lines of a data line have their own
 * turns; a compact one has the first one's. */
static uint64_t first_step(struct rf_simulation *s, const struct rf_event *event, uint8_t *core)
{
    struct rf_radish *radish = &s->radish;
    uint64_t physical = rf_physical_near(&s->pages, event->addr), number = physical >> (rf_line_bits(&s->baseline) - 1);
    uint32_t *recent = &s->ahead.recent[number % RF_AHEAD_RECENT], mark = (uint32_t)number + 1;
    if (!physical || *recent == mark || event->thread >= s->thread_cap || s->threads[event->thread].core == RF_UNKNOWN)
        return 0;
    *core = (uint8_t)s->threads[event->thread].core;
    *recent = mark;
    rf_machine_prefetch(&s->baseline, rf_key_data(number / 2));
    rf_machine_prefetch(&radish->machine, rf_key_data(number / 2));
    if (number < radish->software.record_cap)
        rf_host_prefetch(rf_record_at(&radish->software, number));
    return number + 1;
}

/* Then what the record leads to: the first line and the first history; and the first line for the other half of the data, of which
 * coherence wants to know. If there is no line one will be made: where it will stand in the caches. */
static void second_step(const struct rf_radish *radish, uint32_t core, uint64_t number)
{
    const struct rf_metadata *line = rf_lines_of(radish, number);
    const struct rf_metadata *other = rf_lines_of(radish, number ^ 1);
    const struct rf_record *record = rf_software_record(radish, number);
    if (other)
        rf_line_prefetch(other);
    if (line)
        rf_line_prefetch(line);
    else
        rf_machine_prefetch(&radish->machine, rf_metadata_sets(number, core));
    if (record && record->histories)
        rf_host_prefetch(record->histories);
}

/* Then the second line, or what the check handler will look at, and whom a new line will drive out. */
static void third_step(const struct rf_radish *radish, uint32_t core, uint64_t number)
{
    const struct rf_metadata *line = rf_lines_of(radish, number), *other = rf_lines_of(radish, number ^ 1);
    if (line && line->next)
        rf_line_prefetch(line->next);
    if (other && other->next)
        rf_line_prefetch(other->next);
    if (line)
        return;
    rf_software_prefetch(radish, number);
    const struct rf_cache *llc = &radish->machine.llc;
    size_t place = rf_cache_place(llc, RF_COMMON, rf_metadata_sets(number, core) & llc->mask, 0);
    rf_key last = *rf_cache_key(llc, RF_COMMON, place);
    if (last & RF_KEY_METADATA)
        rf_line_prefetch(rf_key_contents(&radish->machine, last));
}

void rf_ahead_look(struct rf_simulation *s, const struct rf_batch *batch, size_t at)
{
    struct rf_ahead *ahead = &s->ahead;
    size_t first = (at + RF_AHEAD - 1) % RF_AHEAD, second = (at + RF_AHEAD * 2 / 3) % RF_AHEAD,
           third = (at + RF_AHEAD / 3) % RF_AHEAD;
    ahead->numbers[first] = 0;
    if (at + RF_AHEAD <= batch->count) {
        const struct rf_event *event = &batch->events[at + RF_AHEAD - 1];
        if (event->op == RF_READ || event->op == RF_WRITE)
            ahead->numbers[first] = first_step(s, event, &ahead->cores[first]);
    }
    if (ahead->numbers[second])
        second_step(&s->radish, ahead->cores[second], ahead->numbers[second] - 1);
    if (ahead->numbers[third])
        third_step(&s->radish, ahead->cores[third], ahead->numbers[third] - 1);
}
