/* The metadata lines of RADISH that are in caches: who has one, which clocks are in it, how it leaves. See hardware/radish.h.
 *
 * 1. With eager flushing a context lists its lines without holes: the last one takes the place of one that goes. Nobody else asks for
 *    all lines of a context, and what is moved would be fetched from the host's memory each time.
 * 2. Which lines have a clock is kept the other way round too: clock_users.h. A line's bits may be of clocks that it had once; only
 *    a roll-over takes these out. A line that has left has none.
 */
#include "hardware/lanes.h"
#include "hardware/radish.h"

RF_APART struct rf_context *rf_context_make(struct rf_radish *radish, uint32_t slot)
{
    radish->contexts = rf_grow(radish->memory, radish->contexts, &radish->context_cap, (size_t)slot + 1, sizeof(void *));
    if (!radish->contexts[slot]) {
        radish->contexts[slot] = rf_alloc(radish->memory, sizeof **radish->contexts);
        radish->contexts[slot]->users =
            (struct rf_users){ .chunks = &radish->user_pool, .memory = radish->memory, .slot = slot, .limit = 1024 };
        rf_clock_table_init(&radish->contexts[slot]->clocks);
    }
    return radish->contexts[slot];
}

struct rf_metadata *rf_line_new(struct rf_radish *radish, uint32_t core, uint64_t number)
{
    struct rf_metadata *line = rf_pool_take(&radish->line_pool, radish->memory);
    line->number = (uint32_t)number;
    line->slot = radish->cores[core].slot;
    line->core = (uint8_t)core;
    if (rf_has_many(&radish->layout, line))
        line->many = rf_pool_take(&radish->many_pool, radish->memory);
    return line;
}

void rf_line_widen(struct rf_radish *radish, struct rf_metadata *line)
{
    const struct rf_layout *layout = &radish->layout;
    if (line->wide)
        return;
    uint8_t *few = rf_row(layout, line, 0), *many = few;
    if (!rf_has_many(layout, line)) {
        many = rf_pool_take(&radish->many_pool, radish->memory);
        memcpy(many, few, RF_ROWS * rf_units(layout));
    }
    for (uint32_t row = 0; row < RF_ROWS; row++) {
        const uint8_t *units = many + rf_row_offset(layout, false, (enum rf_row)row);
        uint8_t *cells = many + rf_row_offset(layout, true, (enum rf_row)row);
        for (uint32_t unit = 0; unit < rf_units(layout); unit++)
            memset(cells + (unit << rf_unit_bits(layout)), units[unit], (size_t)1 << rf_unit_bits(layout));
    }
    line->many = many;
    line->wide = true;
}

static bool is_listed(const struct rf_radish *radish)
{
    return RF_RARELY(radish->config->flush == RF_FLUSH_EAGER);
}

void rf_line_link(struct rf_radish *radish, struct rf_metadata *line)
{
    struct rf_context *context = rf_context_of(radish, line->slot);
    rf_records_reserve(&radish->software, radish->memory, line->number);
    struct rf_record *record = rf_record_at(&radish->software, line->number);
    line->next = record->lines;
    record->lines = line;
    if (!is_listed(radish))
        return;
    context->lines = rf_grow(radish->memory, context->lines, &context->cap, context->count + 1, sizeof line);
    context->lines[context->count] = line;
    line->place = context->count++;
}

RF_APART void rf_lines_widen(struct rf_radish *radish, uint64_t number)
{
    for (struct rf_metadata *line = rf_lines_of(radish, number); line; line = line->next)
        rf_line_widen(radish, line);
}

static void unlink_line(struct rf_radish *radish, struct rf_metadata *line)
{
    struct rf_metadata **place = &rf_record_at(&radish->software, line->number)->lines;
    while (*place != line)
        place = &(*place)->next;
    *place = line->next;
    rf_line_permits_nothing(radish, line);
    line->used = 0;
    if (!is_listed(radish))
        return;
    struct rf_context *context = radish->contexts[line->slot];
    struct rf_metadata *last = context->lines[--context->count];
    context->lines[line->place] = last;
    last->place = line->place;
}

/* Nearly all lines are not wide. The functions that have `width`, of a line's rows, are compiled for these by themselves: then all loops
 * over places are one step. */
#define INLINE static inline __attribute__((always_inline))

/* Figure 3.4: what these clocks, of reads and then of writes, say is not in hardware any more. */
INLINE void downgrade_status(struct rf_radish *radish, struct rf_metadata *line, uint32_t width, const uint8_t *clocks)
{
    uint64_t read = RF_HOLDS(radish->broken, EVICT_READS) ? RF_ALL_LAST_READS : 0;
    uint64_t write = RF_HOLDS(radish->broken, EVICT_WRITE) ? RF_LAST_WRITE : 0;
    uint8_t *statuses = rf_row(&radish->layout, line, RF_STATUSES);
    for (uint32_t at = 0; at < width; at += 8) {
        uint32_t some = rf_up_to_eight(width, at);
        uint64_t reads = rf_some_cells(clocks + at, some), writes = rf_some_cells(clocks + width + at, some);
        uint64_t lost = rf_not_zero(reads) * read | rf_not_zero(writes) * write;
        rf_put_cells(statuses + at, some, rf_some_cells(statuses + at, some) & ~lost);
    }
}

/* The places of these clocks, each for 1 << shift cells, refer to them no more. */
INLINE void release_clocks(struct rf_context *context, const uint8_t *clocks, uint32_t count, uint32_t shift)
{
    for (uint32_t i = 0; i < count; i += 8) {
        uint32_t some = rf_up_to_eight(count, i);
        uint64_t word = rf_some_cells(clocks + i, some);
        if (word && word == (RF_EACH_CELL & rf_cells_mask(some)) * (word & 255)) {
            rf_clock_loses(&context->clocks, (uint32_t)word & 255, some << shift);
            continue;
        }
        for (uint64_t left = rf_not_zero(word); left; left &= left - 1)
            rf_clock_loses(&context->clocks, word >> __builtin_ctzll(left) & 255, 1u << shift);
    }
}

/* What the line knows goes where it is still needed. */
INLINE void give_up(struct rf_radish *radish, struct rf_metadata *line, uint32_t width, bool persist)
{
    const uint8_t *clocks = rf_row(&radish->layout, line, RF_READ_CLOCKS); /* and those of writes behind them */
    uint32_t count = 2 * width;
    uint64_t any = 0;
    for (uint32_t i = 0; i < count; i += 8)
        any |= rf_some_cells(clocks + i, rf_up_to_eight(count, i));
    if (!any)
        return;
    for (struct rf_metadata *other = rf_lines_of(radish, line->number); other; other = other->next)
        if (other != line)
            downgrade_status(radish, other, width, clocks);
    radish->machine.traffic.broadcasts++;
    if (persist)
        rf_software_evicted(radish, line, clocks);
    release_clocks(radish->contexts[line->slot], clocks, count, rf_shift(&radish->layout, line));
}

static RF_APART void give_up_wide(struct rf_radish *radish, struct rf_metadata *line, bool persist)
{
    give_up(radish, line, rf_cells(&radish->layout), persist);
}

/* The line is in no cache any more. The broadcast hides behind the miss that caused the eviction. */
static void line_gone(struct rf_radish *radish, struct rf_metadata *line, bool persist)
{
    rf_host_prefetch(rf_record_at(&radish->software, line->number)); /* what unlinking will look at */
    radish->machine.traffic.metadata_evictions++;
    if (RF_RARELY(line->wide))
        give_up_wide(radish, line, persist);
    else
        give_up(radish, line, rf_units(&radish->layout), persist);
    unlink_line(radish, line);
    if (rf_has_many(&radish->layout, line))
        rf_pool_give(&radish->many_pool, line->many);
    rf_pool_give(&radish->line_pool, line);
}

void rf_line_evicted(void *radish, struct rf_metadata *line)
{
    line_gone(radish, line, true);
}

void rf_evict_line(struct rf_radish *radish, struct rf_metadata *line, bool persist)
{
    rf_machine_remove(&radish->machine, line);
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
    uint32_t bits = rf_line_bits(&radish->machine);
    if (RF_HOLDS(radish->broken, COMPACT_SPLIT))
        for (struct rf_metadata *line; (line = rf_lines_of(radish, physical >> bits << 1));)
            rf_evict_line(radish, line, true);
    frame->split[(physical & (radish->config->page_bytes - 1)) >> bits] = 1;
    radish->counts.splits++;
}

/* ---- roll-over ---- */

/* Of the clocks, a bit for each whose references have this bit. */
static uint64_t with_bit(const struct rf_clock_table *table, int bit)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < RF_CLOCKS; i += 16) {
        __m128i four[4];
        for (uint32_t j = 0; j < 4; j++)
            four[j] = _mm_slli_epi32((__m128i)rf_lanes_load(&table->references[i + 4 * j]), 31 - bit);
        __m128i signs = _mm_packs_epi16(_mm_packs_epi32(four[0], four[1]), _mm_packs_epi32(four[2], four[3]));
        all |= (uint64_t)(uint32_t)_mm_movemask_epi8(signs) << i;
    }
    return all;
}

/* The quarter of the clocks that fewest cells refer to, of equals the first: what is evicted then is little, and enough epochs can
 * follow. They are found bit by bit, as what a comparison of two clocks would say no host can guess. */
static uint64_t clocks_to_free(const struct rf_clock_table *table, uint32_t limit)
{
    uint64_t left = UINT64_MAX >> (64 - limit) & ~UINT64_C(1), chosen = 0; /* left: those of which it is not decided yet */
    uint32_t wanted = (limit - 1) / 4 ? (limit - 1) / 4 : 1, any = 0;
    for (uint32_t clock = 0; clock < RF_CLOCKS; clock++)
        any |= table->references[clock];
    for (int bit = 31 - __builtin_clz(any | 1); bit >= 0; bit--) {
        uint64_t set = with_bit(table, bit), less = left & ~set;
        uint32_t count = (uint32_t)__builtin_popcountll(less);
        uint64_t enough = 0 - (uint64_t)(count >= wanted); /* some of these; or else all of them, and some of the others */
        chosen |= less & ~enough;
        wanted -= count & (uint32_t)~enough;
        left &= set ^ enough;
    }
    for (; wanted; wanted--, left &= left - 1)
        chosen |= left & (0 - left);
    return chosen;
}

/* Hands the clocks of a line that are chosen to software, as an eviction would, but keeps the line and what it permits: that depends on
 * the order of accesses, not on where their clocks are. Of a clock that is not chosen `goes` has 0, of another the clock. */
INLINE void clean_places(struct rf_radish *radish, struct rf_context *context, struct rf_metadata *line, uint32_t width,
                         const uint8_t *goes)
{
    uint8_t *clocks = rf_row(&radish->layout, line, RF_READ_CLOCKS),
            gone[2 * RF_MAX_CELLS + 8]; /* and behind them, of writes */
    uint64_t any = 0;
    for (uint32_t i = 0; i < 2 * width; i += 8) {
        uint64_t held = rf_some_cells(clocks + i, rf_up_to_eight(2 * width, i)), out = 0;
        for (uint32_t bit = 0; bit < 64; bit += 8)
            out |= (uint64_t)goes[held >> bit & 255] << bit;
        memcpy(gone + i, &out, sizeof out);
        any |= out;
    }
    if (RF_RARELY(!any))
        return; /* it had them once */
    rf_software_evicted(radish, line, gone);
    for (struct rf_metadata *other = rf_lines_of(radish, line->number); other; other = other->next)
        downgrade_status(radish, other, width, gone);
    uint8_t *permissions = rf_row(&radish->layout, line, RF_PERMISSIONS);
    for (uint32_t at = 0; at < width; at += 8) { /* WRITE, which alone has that bit, becomes ORDERED where a clock goes */
        uint32_t some = rf_up_to_eight(width, at);
        uint64_t held = rf_some_cells(permissions + at, some);
        uint64_t changes = rf_not_zero(rf_some_cells(gone + at, some) | rf_some_cells(gone + width + at, some)) & held >> 1;
        rf_put_cells(permissions + at, some, held ^ changes * (RF_PERMIT_WRITE ^ RF_PERMIT_ORDERED));
    }
    release_clocks(context, gone, 2 * width, rf_shift(&radish->layout, line));
    for (uint32_t i = 0; i < 2 * width; i += 8) {
        uint32_t some = rf_up_to_eight(2 * width, i);
        rf_put_cells(clocks + i, some, rf_some_cells(clocks + i, some) ^ rf_some_cells(gone + i, some));
    }
    radish->machine.traffic.broadcasts++;
    radish->counts.flushed_lines++;
}

static RF_APART void clean_wide(struct rf_radish *radish, struct rf_context *context, struct rf_metadata *line,
                                const uint8_t *goes)
{
    clean_places(radish, context, line, rf_cells(&radish->layout), goes);
}

static void clean_line(struct rf_radish *radish, struct rf_context *context, struct rf_metadata *line, const uint8_t *goes)
{
    if (RF_RARELY(line->wide))
        clean_wide(radish, context, line, goes);
    else
        clean_places(radish, context, line, rf_units(&radish->layout), goes);
}

/* The lines that have chosen clocks; they have them no more. */
static uint32_t find_users(struct rf_radish *radish, struct rf_context *context, uint64_t chosen)
{
    struct rf_users *users = &context->users;
    uint32_t count = 0;
    for (uint64_t left = chosen; left; left &= left - 1) {
        struct rf_users_list *list = &users->of[__builtin_ctzll(left)];
        for (struct rf_metadata *line; (line = rf_users_take(users, list));) {
            if (RF_RARELY(line->slot != users->slot || !(line->used & chosen)))
                continue;
            line->used &= ~chosen;
            rf_host_prefetch(rf_record_at(&radish->software, line->number));
            radish->found =
                rf_grow(radish->memory, radish->found, &radish->found_cap, (size_t)count + 1, sizeof *radish->found);
            radish->found[count++] = line;
        }
    }
    return count;
}

/* How many lines before it is cleaned the others for a line's data are fetched by the host. */
#define CLEANED_LATER 4u

/* clock_table.h, 2. */
RF_APART void rf_roll_over(struct rf_radish *radish, uint32_t core)
{
    struct rf_context *context = rf_context_of(radish, radish->cores[core].slot);
    uint64_t chosen = clocks_to_free(&context->clocks, radish->clock_limit);
    radish->counts.roll_overs++;
    rf_charge(radish, core, radish->config->enter_cycles);
    for (uint64_t left = chosen; left; left &= left - 1) {
        const struct rf_users_list *list = &context->users.of[__builtin_ctzll(left)];
        for (uint32_t i = 0; list->first && i < list->filled; i++)
            rf_line_prefetch(list->first->lines[i]);
    }
    uint32_t count = find_users(radish, context, chosen);
    uint8_t goes[RF_CLOCKS] = { 0 };
    for (uint64_t left = chosen; left; left &= left - 1)
        goes[__builtin_ctzll(left)] = (uint8_t)__builtin_ctzll(left);
    for (uint32_t i = 0; i < count; i++) {
        const struct rf_metadata *later = radish->found[i + CLEANED_LATER < count ? i + CLEANED_LATER : count - 1];
        rf_line_prefetch(later->next); /* or it is another one that comes first: they are told, too */
        rf_line_prefetch(rf_lines_of(radish, later->number));
        clean_line(radish, context, radish->found[i], goes);
    }
}
