/* See hardware/ahead.h. */
#include "hardware/ahead.h"

#include "hardware/simulate.h"

/* The first step is so many events before its own; the others come so many lines after it. */
#define EVENTS 20u
#define SECOND 2u
#define THIRD 4u
#define FOURTH 5u

/* Asks for this, or, if there is nothing, for something that is there anyway: a branch that the host guesses wrong takes longer than a
 * few prefetches. */
static inline void ask_for(const void *this, const void *there)
{
    uintptr_t none = 0 - (uintptr_t) !this;
    __asm__("" : "+r"(none)); /* or a compiler makes a branch of it */
    rf_host_prefetch((const void *)((uintptr_t)this | (none & (uintptr_t)there)));
}

/* The metadata line's number of an access; 0 if its place is not known. */
static inline uint32_t number_of(const struct rf_simulation *s, const struct rf_event *event)
{
    uint64_t number = rf_physical_near(&s->pages, event->addr) >> (rf_line_bits(&s->baseline) - 1);
    return number < s->radish.software.record_cap ? (uint32_t)number : 0;
}

/* First the places that the address leads to: sets of the caches, the record. */
static inline void first_step(const struct rf_simulation *s, uint32_t core, uint64_t number)
{
    const struct rf_radish *radish = &s->radish;
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

/* Whom a new line will drive out; NULL if it is no metadata. */
static inline const struct rf_metadata *next_victim(const struct rf_radish *radish, uint32_t core, uint64_t number)
{
    const struct rf_cache *llc = &radish->machine.llc;
    size_t place = rf_cache_place(llc, RF_COMMON, rf_metadata_sets(number, core) & llc->mask, 0);
    rf_key last = *rf_cache_key(llc, RF_COMMON, place);
    return last & RF_KEY_METADATA ? rf_key_contents(&radish->machine, last) : NULL;
}

/* The core has a line: nearly always it is the first one. */
static inline bool has_line(const struct rf_radish *radish, uint32_t core, uint64_t number)
{
    const struct rf_metadata *line = rf_lines_of(radish, number);
    return line && line->core == core;
}

/* Then the second line, and what the check handler will look at, and whom a new line will drive out. */
static inline void third_step(const struct rf_radish *radish, uint32_t core, uint64_t number)
{
    const struct rf_metadata *line = rf_lines_of(radish, number);
    const struct rf_record *record = rf_record_at(&radish->software, number);
    ask_for(record->histories ? record->histories->next : NULL, radish);
    ask_for(line ? line->next : NULL, radish);
    const struct rf_metadata *half = rf_lines_of(radish, number ^ 1);
    ask_for(half ? half->next : NULL, radish);
    if (has_line(radish, core, number))
        return;
    rf_software_prefetch(radish, number);
    ask_for(next_victim(radish, core, number), radish);
}

/* And what is known of that one; and sets of private caches, which do not stay in the host's first level for long: of the core, and of
 * another one, which the last level may believe to have the line. */
static inline void fourth_step(const struct rf_simulation *s, uint32_t core, uint32_t other, uint64_t number)
{
    const struct rf_radish *radish = &s->radish;
    const struct rf_metadata *victim = has_line(radish, core, number) ? NULL : next_victim(radish, core, number);
    rf_machine_prefetch_private(&s->baseline, core, rf_key_data(number / 2));
    rf_machine_prefetch_private(&radish->machine, core, rf_key_data(number / 2));
    rf_machine_prefetch_private(&radish->machine, core, rf_metadata_sets(number, core));
    rf_machine_prefetch_second(&s->baseline, other, rf_key_data(number / 2));
    rf_machine_prefetch_second(&radish->machine, other, rf_key_data(number / 2));
    if (victim)
        rf_host_prefetch(rf_record_at(&radish->software, victim->number));
}

void rf_ahead_look(struct rf_simulation *s, const struct rf_batch *batch, size_t at)
{
    struct rf_ahead *ahead = &s->ahead;
    size_t last = batch->count - 1, first = at + EVENTS < last ? at + EVENTS : last;
    const struct rf_event *event = &batch->events[first];
    bool access = (event->op == RF_READ) | (event->op == RF_WRITE);
    uint64_t half = event->addr >>
                    (rf_line_bits(&s->baseline) - 1); /* a line; what it is called tells soonest whether it is another one */
    if (!access | (half == ahead->half))
        return;
    ahead->half = half;
    uint32_t number = number_of(s, event);
    if (!number)
        return;
    uint32_t core = event->thread < s->thread_cap ? s->threads[event->thread].core : RF_UNKNOWN;
    uint32_t new = ++ahead->next % RF_AHEAD;
    uint8_t before = ahead->cores[(new - 1) % RF_AHEAD];
    ahead->cores[new] = core == RF_UNKNOWN ? 0 : (uint8_t)core;
    ahead->others[new] = before != ahead->cores[new] ? before : ahead->others[(new - 1) % RF_AHEAD];
    ahead->numbers[new] = number;
    first_step(s, ahead->cores[new], number);
    uint32_t second = (new - SECOND) % RF_AHEAD, third = (new - THIRD) % RF_AHEAD, fourth = (new - FOURTH) % RF_AHEAD;
    second_step(&s->radish, ahead->numbers[second]);
    third_step(&s->radish, ahead->cores[third], ahead->numbers[third]);
    fourth_step(s, ahead->cores[fourth], ahead->others[fourth], ahead->numbers[fourth]);
}
