/* See hardware/ahead.h. */
#include "hardware/ahead.h"

#include "hardware/simulate.h"

/* Asks for this, or, if there is nothing, for something that is there anyway: a branch that the host guesses wrong takes longer than a
 * few prefetches. */
static inline void ask_for(const void *this, const void *there)
{
    uintptr_t none = 0 - (uintptr_t)!this;
    __asm__("" : "+r"(none)); /* or a compiler makes a branch of it */
    rf_host_prefetch((const void *)((uintptr_t)this | (none & (uintptr_t)there)));
}

/* First the places that the address leads to: sets of the caches, the record. Of an event that is no access, or whose place is not known,
 * nothing is asked: it gets the number 0. */
static inline void first_step(struct rf_simulation *s, const struct rf_event *event, struct rf_ahead *ahead, size_t at)
{
    struct rf_radish *radish = &s->radish;
    bool access = (event->op == RF_READ) | (event->op == RF_WRITE);
    uint64_t physical = rf_physical_near(&s->pages, event->addr), number = physical >> (rf_line_bits(&s->baseline) - 1);
    uint32_t core = event->thread < s->thread_cap ? s->threads[event->thread].core : RF_UNKNOWN;
    core = core == RF_UNKNOWN ? 0 : core;
    number = access && number < radish->software.record_cap ? number : 0;
    ahead->cores[at] = (uint8_t)core;
    ahead->numbers[at] = (uint32_t)number;
    rf_machine_prefetch(&s->baseline, rf_key_data(number / 2));
    rf_machine_prefetch(&radish->machine, rf_key_data(number / 2));
    rf_machine_prefetch(&radish->machine, rf_metadata_sets(number, core));
    rf_host_prefetch(rf_record_at(&radish->software, number));
}

/* Then what the record leads to: the first line, the latest histories, and the first line for the other half of the data, of which
 * coherence wants to know. */
static inline void second_step(const struct rf_radish *radish, uint64_t number)
{
    const struct rf_record *record = rf_record_at(&radish->software, number);
    ask_for(record->lines, radish);
    ask_for(record->histories, radish);
    ask_for(rf_lines_of(radish, number ^ 1), radish);
}

/* Then the second line, or what the check handler will look at, and whom a new line will drive out. */
static inline void third_step(const struct rf_radish *radish, uint32_t core, uint64_t number)
{
    const struct rf_metadata *line = rf_lines_of(radish, number);
    const struct rf_record *record = rf_record_at(&radish->software, number);
    ask_for(record->histories ? record->histories->next : NULL, radish);
    if (line) {
        ask_for(line->next, radish);
        return;
    }
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
    size_t last = batch->count - 1, first = at + RF_AHEAD - 1 < last ? at + RF_AHEAD - 1 : last;
    size_t second = (at + RF_AHEAD * 2 / 3) % RF_AHEAD, third = (at + RF_AHEAD / 3) % RF_AHEAD;
    if (!s->radish.software.record_cap)
        return;
    first_step(s, &batch->events[first], ahead, (at + RF_AHEAD - 1) % RF_AHEAD);
    second_step(&s->radish, ahead->numbers[second]);
    third_step(&s->radish, ahead->cores[third], ahead->numbers[third]);
}
