/* LARDISH: what a managed runtime tells the detector of its memory (Wood, 4.3.2).
 *
 * 1. A region is handled in pieces that lie in one metadata line (not compact) each.
 * 2. ClearHistory invalidates a cached line that lies inside the region, without a handler; one that also has other bytes is evicted
 *    as usual. Then the software layer forgets its part.
 * 3. CopyHistory evicts the cached lines of its source through the eviction handler, clears its destination, and copies what
 *    software has. The next access there asks software, as usual. A copied line is not compact: its bytes may differ.
 * 4. To free is to write all of the block and then to clear it: the check is done by software, on evicted histories.
 *
 * The cost (4.4.3): enter_cycles for the instruction, for each piece the simulated accesses of the software layer, for each cached
 * line a hit in the cache where it is, and the eviction handler where one runs.
 */
#include "hardware/radish.h"

/* A part of a region: `length` bytes from `byte` on in the record `number`. */
struct piece {
    struct rf_frame *frame;
    uint64_t addr, physical, number;
    uint32_t byte, length;
};

/* What comes first in the region, or, backwards, last. A frame that is NULL: a page that was never used. */
static struct piece piece_at(struct rf_radish *radish, uint64_t addr, uint64_t size, bool backwards)
{
    uint64_t cells = rf_cells(&radish->layout), last = addr + size - 1;
    struct piece piece = { .addr = addr, .length = (uint32_t)(cells - addr % cells) };
    if (backwards) {
        piece.addr = last / cells * cells > addr ? last / cells * cells : addr;
        piece.length = (uint32_t)(last + 1 - piece.addr);
    } else if (piece.length > size) {
        piece.length = (uint32_t)size;
    }
    piece.frame = rf_frame_known(radish->pages, piece.addr);
    if (piece.frame) {
        piece.physical = rf_physical(radish->pages, piece.frame, piece.addr);
        piece.number = piece.physical / cells;
        piece.byte = (uint32_t)(piece.physical % cells);
    }
    return piece;
}

/* Takes the cached lines of a piece out. Those inside [begin, end) need not be persisted, if the caller says so. */
static void take_out(struct rf_radish *radish, uint32_t core, const struct piece *piece, uint64_t begin, uint64_t end,
                     bool lose)
{
    bool compact;
    uint64_t number = rf_number_of(radish, piece->frame, piece->physical, &compact);
    uint64_t length = rf_cells(&radish->layout) * (compact ? 2u : 1u), first = piece->addr / length * length;
    bool inside = lose && begin <= first && first + length <= end;
    for (struct rf_metadata *line; (line = rf_lines_of(radish, number));) {
        rf_charge(radish, core, radish->config->llc_cycles);
        rf_evict_line(radish, line, !inside);
    }
}

static void drain(struct rf_radish *radish, uint32_t core)
{
    if (RF_HOLDS(radish->broken, DRAIN))
        rf_software_drain(radish, core);
}

static void forget(struct rf_radish *radish, const struct piece *piece)
{
    struct rf_record *record = rf_software_record(radish, piece->number);
    for (struct rf_history *history = record ? record->histories : NULL; history; history = history->next)
        rf_history_forget(history, radish->memory, rf_cells(&radish->layout), piece->byte, piece->length);
}

/* 4. Everything that counts is in software. */
static void check_free(struct rf_radish *radish, uint32_t core, const struct piece *piece)
{
    const struct rf_clock *clock = &radish->cores[core].thread->clock;
    const struct rf_record *record = rf_software_record(radish, piece->number);
    for (uint32_t i = 0, count; i < piece->length; i += count) {
        uint32_t byte = piece->byte + i, left = piece->length - i;
        count = byte % 8 || left < 8 ? 1 : 8; /* a granule whose bytes are alike in all histories is checked once */
        for (const struct rf_history *history = record ? record->histories : NULL; history; history = history->next)
            if (!rf_history_even(history, byte / 8))
                count = 1;
        bool race = false;
        for (const struct rf_history *history = record ? record->histories : NULL; history; history = history->next) {
            uint32_t known = rf_clock_get(clock, history->slot);
            race |= rf_history_get(history, rf_cells(&radish->layout), RF_READS, byte) > known ||
                    rf_history_get(history, rf_cells(&radish->layout), RF_WRITES, byte) > known;
        }
        for (uint32_t j = i; race && j < i + count; j++)
            radish->race(radish->race_context, piece->addr + j);
    }
}

static void clear_piece(struct rf_radish *radish, uint32_t core, const struct piece *piece, uint64_t begin, uint64_t end,
                        bool freed)
{
    const struct rf_record *record = rf_software_record(radish, piece->number);
    if (!record)
        return; /* never accessed: the first access that is tracked makes a record */
    if (record->cached && RF_HOLDS(radish->broken, CLEAR_CACHED))
        take_out(radish, core, piece, begin, end, !freed);
    drain(radish, core);
    bool compact;
    rf_number_of(radish, piece->frame, piece->physical, &compact);
    if (compact && ((piece->addr | piece->length) & 1)) /* the bytes of a cell would not have one history */
        rf_split_line(radish, piece->frame, piece->physical);
    if (freed && RF_HOLDS(radish->broken, FREE_CHECKS))
        check_free(radish, core, piece);
    rf_software_touch(radish, core, piece->number, true);
    if (RF_HOLDS(radish->broken, CLEAR_SOFTWARE))
        forget(radish, piece);
}

RF_APART void rf_radish_clear(struct rf_radish *radish, uint32_t core, uint64_t addr, uint64_t size, bool freed)
{
    uint64_t end = addr + size;
    radish->counts.clears++;
    rf_charge(radish, core, radish->config->enter_cycles);
    for (uint64_t at = addr; at < end;) {
        struct piece piece = piece_at(radish, at, end - at, false);
        if (!piece.frame) { /* the rest of a page that was never used */
            at = (at | (radish->config->page_bytes - 1)) + 1;
            continue;
        }
        clear_piece(radish, core, &piece, addr, end, freed);
        at += piece.length;
    }
    if (radish->software.waiting > radish->config->buffer_lines)
        rf_software_drain(radish, core);
}

/* What one history says of the source becomes what its slot did to the destination. `length` bytes lie in one record on either side;
 * the two may be one, and overlap. */
static void copy_histories(struct rf_radish *radish, const struct piece *from, const struct piece *to, uint32_t length)
{
    uint32_t cells = rf_cells(&radish->layout), times[RF_KINDS][RF_MAX_CELLS];
    struct piece part = *to;
    part.length = length;
    if (!from->frame || !rf_software_record(radish, from->number)) {
        forget(radish, &part);
        return;
    }
    struct rf_record *target = rf_software_make(radish, to->number); /* before the source is looked up: that one may move */
    struct rf_record *source = rf_software_record(radish, from->number);
    if (source != target)
        forget(radish, &part);
    for (struct rf_history *history = source->histories; history; history = history->next) {
        uint32_t any = 0;
        for (uint32_t kind = 0; kind < RF_KINDS; kind++)
            for (uint32_t i = 0; i < length; i++)
                any |= times[kind][i] = rf_history_get(history, cells, (enum rf_kind)kind, from->byte + i);
        if (!any && source != target)
            continue;
        struct rf_history *copy = source == target ? history : rf_software_history(radish, target, history->slot);
        for (uint32_t kind = 0; kind < RF_KINDS; kind++)
            for (uint32_t i = 0; i < length; i++)
                rf_history_set(copy, radish->memory, cells, (enum rf_kind)kind, to->byte + i, times[kind][i]);
    }
}

/* Takes the part of a region out of the caches, in pieces. */
static void persist_region(struct rf_radish *radish, uint32_t core, uint64_t addr, uint64_t size)
{
    for (uint64_t at = addr, end = addr + size; at < end;) {
        struct piece piece = piece_at(radish, at, end - at, false);
        if (piece.frame)
            take_out(radish, core, &piece, 0, 0, false);
        at += piece.length;
    }
}

static void copy_piece(struct rf_radish *radish, uint32_t core, uint64_t from, uint64_t to, uint32_t length)
{
    struct piece source = piece_at(radish, from, length, false);
    rf_frame_of(radish->pages, to); /* it has one from now on */
    struct piece target = piece_at(radish, to, length, false);
    bool compact;
    rf_number_of(radish, target.frame, target.physical, &compact);
    if (compact)
        rf_split_line(radish, target.frame, target.physical);
    if (source.frame)
        rf_software_touch(radish, core, source.number, false);
    rf_software_touch(radish, core, target.number, true);
    if (RF_HOLDS(radish->broken, COPY_SOFTWARE))
        copy_histories(radish, &source, &target, length);
}

/* Like memmove(): from the end that is not overwritten. */
RF_APART void rf_radish_copy(struct rf_radish *radish, uint32_t core, uint64_t from, uint64_t to, uint64_t size)
{
    bool backwards = from < to;
    radish->counts.copies++;
    rf_charge(radish, core, radish->config->enter_cycles);
    if (RF_HOLDS(radish->broken, COPY_CACHED)) {
        persist_region(radish, core, from, size);
        persist_region(radish, core, to, size);
    }
    drain(radish, core);
    for (uint64_t done = 0; done < size;) {
        uint64_t left = size - done, offset = backwards ? 0 : done;
        struct piece source = piece_at(radish, from + offset, left, backwards);
        struct piece target = piece_at(radish, to + offset, left, backwards);
        uint32_t length = source.length < target.length ? source.length : target.length;
        offset = backwards ? left - length : done;
        copy_piece(radish, core, from + offset, to + offset, length);
        done += length;
    }
    if (radish->software.waiting > radish->config->buffer_lines)
        rf_software_drain(radish, core);
}
