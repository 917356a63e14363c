/* The metadata lines of RADISH that are in caches: who has one, which clocks are in it, how it leaves. See hardware/radish.h.
 *
 * 1. A context lists its lines without holes: the last one takes the place of one that goes.
 * 2. Which lines have a clock is kept the other way round too, a bit for each place: clock_users.h. It may have bits for clocks
 *    that a line had once; only a roll-over takes these out.
 */
#include "hardware/radish.h"

struct rf_context *rf_context_make(struct rf_radish *radish, uint32_t slot)
{
    radish->contexts = rf_grow(radish->memory, radish->contexts, &radish->context_cap, (size_t)slot + 1, sizeof(void *));
    if (!radish->contexts[slot])
        radish->contexts[slot] = rf_alloc(radish->memory, sizeof **radish->contexts);
    return radish->contexts[slot];
}

void rf_line_uses(struct rf_context *context, struct rf_metadata *line, uint32_t clock)
{
    line->used |= UINT64_C(1) << clock;
    rf_users_add(&context->users, line->place, UINT64_C(1) << clock);
}

struct rf_metadata *rf_line_new(struct rf_radish *radish, uint32_t core, uint64_t key, uint64_t number)
{
    struct rf_metadata *line = rf_pool_take(&radish->line_pool, radish->memory);
    line->key = key;
    line->number = number;
    line->slot = radish->cores[core].slot;
    line->core = core;
    return line;
}

void rf_line_link(struct rf_radish *radish, struct rf_metadata *line)
{
    struct rf_context *context = rf_context_of(radish, line->slot);
    radish->lines = rf_grow(radish->memory, radish->lines, &radish->line_cap, (size_t)line->number + 1, sizeof line);
    line->next = radish->lines[line->number];
    radish->lines[line->number] = line;
    context->lines = rf_grow(radish->memory, context->lines, &context->cap, context->count + 1, sizeof line);
    rf_users_reserve(&context->users, radish->memory, context->count + 1);
    context->lines[context->count] = line;
    line->place = context->count++;
}

static void unlink_line(struct rf_radish *radish, struct rf_metadata *line)
{
    struct rf_metadata **place = &radish->lines[line->number];
    while (*place != line)
        place = &(*place)->next;
    *place = line->next;
    struct rf_context *context = radish->contexts[line->slot];
    struct rf_metadata *last = context->lines[--context->count];
    rf_users_remove(&context->users, line->place, line->used);
    if (last == line)
        return;
    rf_users_remove(&context->users, last->place, last->used);
    context->lines[line->place] = last;
    last->place = line->place;
    rf_users_add(&context->users, last->place, last->used);
}

/* The cells that are not 0 become 1. No cell has its highest bit. */
static uint64_t not_zero(uint64_t cells)
{
    return (cells + RF_EACH_CELL * 127) >> 7 & RF_EACH_CELL;
}

static void put_cells(uint8_t *cells, uint64_t word)
{
    memcpy(cells, &word, sizeof word);
}

/* Figure 3.4: what these clocks, of reads and then of writes, say is not in hardware any more. */
static void downgrade_status(struct rf_radish *radish, struct rf_metadata *line, const uint8_t *clocks)
{
    uint64_t read = RF_HOLDS(radish->broken, EVICT_READS) ? RF_ALL_LAST_READS : 0;
    uint64_t write = RF_HOLDS(radish->broken, EVICT_WRITE) ? RF_LAST_WRITE : 0;
    uint8_t *statuses = rf_statuses(radish, line);
    for (uint32_t cell = 0; cell < radish->cells; cell += 8) {
        uint64_t reads = rf_some_cells(clocks + cell, 8), writes = rf_some_cells(clocks + radish->cells + cell, 8);
        uint64_t lost = not_zero(reads) * read | not_zero(writes) * write;
        put_cells(statuses + cell, rf_some_cells(statuses + cell, 8) & ~lost);
    }
}

/* The cells of these clocks refer to them no more. */
static void release_clocks(struct rf_context *context, const uint8_t *clocks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 8)
        if (!rf_some_cells(clocks + i, 8))
            continue; /* of clock 0 nobody asks */
        else if (rf_even(clocks + i, 8))
            context->clocks.references[clocks[i]] -= 8;
        else
            for (uint32_t j = i; j < i + 8; j++)
                context->clocks.references[clocks[j]]--;
}

/* The line is in no cache any more. The broadcast hides behind the miss that caused the eviction. */
static void line_gone(struct rf_radish *radish, struct rf_metadata *line, bool persist)
{
    const uint8_t *clocks = rf_reads(radish, line);
    uint64_t any = 0;
    radish->machine.traffic.metadata_evictions++;
    for (uint32_t i = 0; i < 2 * radish->cells; i += 8) /* reads, then writes */
        any |= rf_some_cells(clocks + i, 8);
    if (any) {
        for (struct rf_metadata *other = rf_lines_of(radish, line->number); other; other = other->next)
            if (other != line)
                downgrade_status(radish, other, clocks);
        radish->machine.traffic.broadcasts++;
        if (persist)
            rf_software_evicted(radish, line, clocks);
        release_clocks(radish->contexts[line->slot], clocks, 2 * radish->cells);
    }
    unlink_line(radish, line);
    rf_pool_give(&radish->line_pool, line);
}

void rf_line_evicted(void *radish, struct rf_metadata *line)
{
    line_gone(radish, line, true);
}

void rf_evict_line(struct rf_radish *radish, struct rf_metadata *line, bool persist)
{
    rf_machine_remove(&radish->machine, line->key);
    line_gone(radish, line, persist);
}

void rf_flush_slot(struct rf_radish *radish, uint32_t slot)
{
    struct rf_context *context = rf_context_of(radish, slot);
    while (context->count) {
        rf_evict_line(radish, context->lines[context->count - 1], true);
        radish->counts.flushed_lines++;
    }
}

void rf_split_line(struct rf_radish *radish, struct rf_frame *frame, uint64_t physical)
{
    uint32_t bits = radish->machine.line_bits;
    if (RF_HOLDS(radish->broken, COMPACT_SPLIT))
        for (struct rf_metadata *line; (line = rf_lines_of(radish, physical >> bits << 1));)
            rf_evict_line(radish, line, true);
    frame->split[(physical & (radish->config->page_bytes - 1)) >> bits] = 1;
    radish->counts.splits++;
}

/* ---- roll-over ---- */

/* The quarter of the clocks that fewest cells refer to: what is evicted then is little, and enough epochs can follow. */
static uint64_t clocks_to_free(const struct rf_clock_table *table, uint32_t limit)
{
    uint64_t best[RF_CLOCKS], chosen = 0; /* references and clock, in order */
    uint32_t wanted = (limit - 1) / 4 ? (limit - 1) / 4 : 1, count = 0;
    for (uint32_t clock = 1; clock < limit; clock++) {
        uint64_t this = (uint64_t)table->references[clock] << 32 | clock;
        if (count == wanted && this > best[count - 1])
            continue;
        uint32_t at = count < wanted ? count++ : count - 1;
        for (; at && best[at - 1] > this; at--)
            best[at] = best[at - 1];
        best[at] = this;
    }
    for (uint32_t i = 0; i < count; i++)
        chosen |= UINT64_C(1) << (uint32_t)best[i];
    return chosen;
}

/* The bytes of eight clocks that are `chosen`; the others are 0. */
static uint64_t chosen_of(const uint8_t *clocks, uint64_t chosen)
{
    uint64_t word = rf_some_cells(clocks, 8), goes = 0;
    if (rf_even(clocks, 8))
        return chosen >> (word & 63) & 1 ? word : 0;
    for (uint32_t i = 0; i < 8; i++)
        if (chosen >> clocks[i] & 1)
            goes |= (uint64_t)clocks[i] << 8 * i;
    return goes;
}

/* Hands the clocks of a line that are in `chosen` to software, as an eviction would, but keeps the line and what it permits: that
 * depends on the order of accesses, not on where their clocks are. */
static void clean_line(struct rf_radish *radish, struct rf_context *context, struct rf_metadata *line, uint64_t chosen)
{
    uint32_t cells = radish->cells;
    uint8_t *clocks = rf_reads(radish, line), gone[2 * RF_MAX_CELLS]; /* of reads, then of writes */
    uint64_t any = 0;
    for (uint32_t i = 0; i < 2 * cells; i += 8) {
        uint64_t goes = chosen_of(clocks + i, chosen);
        put_cells(gone + i, goes);
        any |= goes;
    }
    rf_users_remove(&context->users, line->place, line->used & chosen);
    line->used &= ~chosen;
    if (!any)
        return; /* it had them once */
    rf_software_evicted(radish, line, gone);
    for (struct rf_metadata *other = rf_lines_of(radish, line->number); other; other = other->next)
        downgrade_status(radish, other, gone);
    uint8_t *permissions = rf_permissions(radish, line);
    for (uint32_t cell = 0; cell < cells;
         cell += 8) { /* WRITE, which alone has that bit, becomes ORDERED where a clock goes */
        uint64_t held = rf_some_cells(permissions + cell, 8);
        uint64_t changes = not_zero(rf_some_cells(gone + cell, 8) | rf_some_cells(gone + cells + cell, 8)) & held >> 1;
        put_cells(permissions + cell, held ^ changes * (RF_PERMIT_WRITE ^ RF_PERMIT_ORDERED));
    }
    release_clocks(context, gone, 2 * cells);
    for (uint32_t i = 0; i < 2 * cells; i += 8)
        put_cells(clocks + i, rf_some_cells(clocks + i, 8) ^ rf_some_cells(gone + i, 8));
    radish->machine.traffic.broadcasts++;
    radish->counts.flushed_lines++;
}

/* Cleans some lines. What they lead to is fetched for all of them before it is needed. */
static void clean_lines(struct rf_radish *radish, struct rf_context *context, struct rf_metadata **lines, uint32_t count,
                        uint64_t chosen)
{
    const struct rf_software *software = &radish->software;
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(&radish->lines[lines[i]->number]);
        if (lines[i]->number < software->record_cap)
            __builtin_prefetch(&software->records[lines[i]->number]);
    }
    for (uint32_t i = 0; i < count; i++)
        clean_line(radish, context, lines[i], chosen);
}

/* clock_table.h, 2. Cleaning a line takes bits of that line only out of the sets that are walked here. */
void rf_roll_over(struct rf_radish *radish, uint32_t core)
{
    struct rf_context *context = rf_context_of(radish, radish->cores[core].slot);
    uint64_t chosen = clocks_to_free(&context->clocks, radish->clock_limit);
    struct rf_metadata *lines[64];
    uint32_t count = 0;
    radish->counts.roll_overs++;
    rf_charge(radish, core, radish->config->enter_cycles);
    for (uint32_t group = 0; group << 12 < context->count; group++) {
        for (uint64_t blocks = rf_users_of(&context->users.groups[group], chosen); blocks; blocks &= blocks - 1)
            rf_users_prefetch(&context->users.blocks[group << 6 | (uint32_t)__builtin_ctzll(blocks)]);
        for (uint64_t blocks = rf_users_of(&context->users.groups[group], chosen); blocks; blocks &= blocks - 1) {
            uint32_t block = group << 6 | (uint32_t)__builtin_ctzll(blocks);
            for (uint64_t left = rf_users_of(&context->users.blocks[block], chosen); left; left &= left - 1) {
                lines[count] = context->lines[block << 6 | (uint32_t)__builtin_ctzll(left)];
                rf_line_prefetch(radish, lines[count++]);
                if (count == sizeof lines / sizeof lines[0]) {
                    clean_lines(radish, context, lines, count, chosen);
                    count = 0;
                }
            }
        }
    }
    clean_lines(radish, context, lines, count, chosen);
}
