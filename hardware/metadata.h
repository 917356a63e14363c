/* A cached metadata line: four rows of cells, for what one thread did to the bytes of half a data line.
 *
 * 1. Cells come in units: those of eight bytes of data (compact encoding: four cells). As long as all cells of each unit are alike,
 *    which they are where a program uses whole words, a row has one place for each unit, and a line fits one line of the host's.
 *    Once a unit is uneven the line is wide: a row has a place for each cell.
 * 2. All cached lines for one number are wide, or none is: what is compared has the same places. A line stays wide until it leaves.
 * 3. A row may be read, and written as it was, up to seven bytes beyond its end.
 * 4. Few places are in the line itself, which then is one line of the host's; more of them, and all places of a wide line, are in a
 *    block of its own.
 */
#ifndef RF_HARDWARE_METADATA_H
#define RF_HARDWARE_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hardware/usual.h"

enum rf_row { RF_READ_CLOCKS, RF_WRITE_CLOCKS, RF_PERMISSIONS, RF_STATUSES, RF_ROWS };

#define RF_FEW_UNITS 4u

struct rf_metadata {
    struct rf_metadata *next;                /* another cached line for the same data */
    uint64_t used;                           /* a bit for each clock but 0 that some cell has, or had */
    union {                                  /* 4. */
        uint8_t few[RF_ROWS * RF_FEW_UNITS]; /* by unit */
        uint8_t *many;                       /* by unit; and behind these, by cell */
    };
    uint32_t number; /* twice that of the data line, plus 1 for its second half */
    uint32_t slot, generation;
    uint32_t place;       /* in its context's list */
    uint32_t l1, l2, llc; /* where the caches have it; in the first two: where they had it last */
    uint8_t core;
    bool compact, wide;
};

_Static_assert(sizeof(struct rf_metadata) == 64, "one line of the host's");

/* How long rows are. */
struct rf_layout {
    uint32_t cells, units;
    uint32_t unit_bits; /* of the cells of a unit */
};

static inline uint32_t rf_cells(const struct rf_layout *layout)
{
    return RF_USUAL ? RF_USUAL_LINE / 2 : layout->cells;
}

static inline uint32_t rf_unit_bits(const struct rf_layout *layout)
{
    return RF_USUAL ? 3 : layout->unit_bits;
}

static inline uint32_t rf_units(const struct rf_layout *layout)
{
    return RF_USUAL ? RF_USUAL_LINE / 2 / 8 : layout->units;
}

static inline bool rf_is_compact(const struct rf_metadata *line)
{
    return !RF_USUAL && line->compact;
}

/* The places of a row. */
static inline uint32_t rf_width(const struct rf_layout *layout, const struct rf_metadata *line)
{
    return RF_RARELY(line->wide) ? rf_cells(layout) : rf_units(layout);
}

/* From cells to places. */
static inline uint32_t rf_shift(const struct rf_layout *layout, const struct rf_metadata *line)
{
    return RF_RARELY(line->wide) ? 0 : rf_unit_bits(layout);
}

static inline size_t rf_row_offset(const struct rf_layout *layout, bool wide, enum rf_row row)
{
    return RF_RARELY(wide) ? RF_ROWS * rf_units(layout) + row * rf_cells(layout) : row * rf_units(layout);
}

static inline bool rf_has_many(const struct rf_layout *layout, const struct rf_metadata *line)
{
    return RF_RARELY(line->wide) || rf_units(layout) > RF_FEW_UNITS;
}

/* All rows of a line, of which is known whether it is wide: from its beginning, not from the array's, which 3. goes beyond. */
static inline uint8_t *rf_rows_if(const struct rf_layout *layout, struct rf_metadata *line, bool wide)
{
    return wide || rf_units(layout) > RF_FEW_UNITS ? line->many : (uint8_t *)line + offsetof(struct rf_metadata, few);
}

static inline uint8_t *rf_row_if(const struct rf_layout *layout, struct rf_metadata *line, bool wide, enum rf_row row)
{
    return rf_rows_if(layout, line, wide) + rf_row_offset(layout, wide, row);
}

static inline uint8_t *rf_row(const struct rf_layout *layout, struct rf_metadata *line, enum rf_row row)
{
    return rf_row_if(layout, line, RF_RARELY(line->wide), row);
}

static inline uint8_t rf_cell(const struct rf_layout *layout, struct rf_metadata *line, enum rf_row row, uint32_t cell)
{
    return rf_row(layout, line, row)[cell >> rf_shift(layout, line)];
}

static inline size_t rf_many_bytes(const struct rf_layout *layout)
{
    return RF_ROWS * (rf_units(layout) + rf_cells(layout)) + 8;
}

/* Up to eight places in a word. */
#define RF_EACH_CELL UINT64_C(0x0101010101010101)

static inline uint64_t rf_cells_mask(uint32_t count)
{
    return UINT64_MAX >> (64 - 8 * count);
}

/* What is written with one width and read with another at once keeps the host waiting until it is out of the core. So one place, and a
 * row of the usual machine, are read and written as such. */
static inline uint64_t rf_some_cells(const uint8_t *cells, uint32_t count)
{
    uint64_t word = 0;
    if (RF_USUAL && count == 1)
        return *cells;
    if (RF_USUAL && count == 4)
        memcpy(&word, cells, 4);
    else
        memcpy(&word, cells, sizeof word);
    return word & rf_cells_mask(count);
}

/* The cells that are not 0 become 1. No cell has its highest bit. */
static inline uint64_t rf_not_zero(uint64_t cells)
{
    return (cells + RF_EACH_CELL * 127) >> 7 & RF_EACH_CELL;
}

/* Puts the first ones of a word; those behind them stay as they are. */
static inline void rf_put_cells(uint8_t *cells, uint32_t count, uint64_t word)
{
    uint64_t old;
    if (RF_USUAL && count == 4) {
        memcpy(cells, &word, 4);
        return;
    }
    memcpy(&old, cells, sizeof old);
    word = (old & ~rf_cells_mask(count)) | (word & rf_cells_mask(count));
    memcpy(cells, &word, sizeof word);
}

/* How many of a row's places, from `at` on, are looked at with one word. */
static inline uint32_t rf_up_to_eight(uint32_t width, uint32_t at)
{
    return width - at < 8 ? width - at : 8;
}

/* They are all alike, as the cells of one variable nearly always are. */
static inline bool rf_even(const uint8_t *cells, uint32_t count)
{
    return !((rf_some_cells(cells, count) ^ RF_EACH_CELL * *cells) & rf_cells_mask(count));
}

/* The same for all places of a row. */
static inline bool rf_all_even(const uint8_t *cells, uint32_t count)
{
    uint64_t other = 0;
    for (uint32_t i = 0; i < count; i += 8) {
        uint32_t some = rf_up_to_eight(count, i);
        other |= (rf_some_cells(cells + i, some) ^ RF_EACH_CELL * *cells) & rf_cells_mask(some);
    }
    return !other;
}

#endif
