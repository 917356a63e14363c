/* From an address to its cells: pages found by a hash, with the last pages at hand.
 *
 * 1. A page holds one cell for each granule of RF_PAGE bytes of addresses, in order. Cells are zero until they are used.
 * 2. A granule that was only ever accessed whole has one cell. The first access to a part of it splits it: into halves if all
 *    accesses so far were to whole halves, otherwise into bytes. So neighbours never race, and nothing is forgotten: each part
 *    starts with a copy of what was known of the whole.
 * 3. `split` of a page is NULL as long as no granule of it is split; then it has one word a granule: 0, or a tagged pointer
 *    to its parts.
 * 4. The cache of pages, and of places where there is none, is direct-mapped and never stale: pages are not freed while the shadow
 *    lives, and a new one is put there.
 *
 * The text is instantiated by a driver for one type of cell: a struct rf_shadow knows only the size.
 */
#ifndef RF_SHADOW_SHADOW_H
#define RF_SHADOW_SHADOW_H

#include "core/event.h"
#include "core/map.h"

#define RF_PAGE_BITS 15
#define RF_PAGE (1u << RF_PAGE_BITS)
#define RF_PAGE_CELLS (RF_PAGE / RF_GRANULE)
#define RF_NEAR_PAGES 1024u

struct rf_page {
    uint64_t number;
    uintptr_t *split; /* parts, with the number of parts (2 or 8) in the low bits */
    char *cells;
};

struct rf_shadow {
    struct rf_memory *memory;
    size_t cell;
    struct rf_map pages; /* number -> struct rf_page * */
    struct {
        uint64_t number_plus_1;
        struct rf_page *page; /* NULL: there is none */
        char *whole; /* its cells while no granule of it is split, else NULL */
    } near[RF_NEAR_PAGES];
    uint64_t page_count, split_count;
};

/* Regions of a program lie at round addresses: without the product their pages would all meet in a few places. */
static inline unsigned rf_near(uint64_t number)
{
    return (uint32_t)(number * UINT64_C(0x9e3779b1)) / (UINT32_MAX / RF_NEAR_PAGES + 1);
}

static inline void rf_shadow_init(struct rf_shadow *shadow, struct rf_memory *memory, size_t cell)
{
    memset(shadow, 0, sizeof *shadow);
    shadow->memory = memory;
    shadow->cell = cell;
    rf_map_init(&shadow->pages, memory);
}

static __attribute__((noinline, unused)) struct rf_page *rf_shadow_far(struct rf_shadow *shadow, uint64_t number, bool make)
{
    uint64_t *place = make ? rf_map_at(&shadow->pages, number) : rf_map_find(&shadow->pages, number);
    if (!place) { /* the next one who asks is told at once */
        shadow->near[rf_near(number)].number_plus_1 = number + 1;
        shadow->near[rf_near(number)].page = NULL;
        shadow->near[rf_near(number)].whole = NULL;
        return NULL;
    }
    if (!*place) {
        struct rf_page *page = rf_alloc(shadow->memory, sizeof *page);
        page->number = number;
        page->cells = rf_alloc(shadow->memory, RF_PAGE_CELLS * shadow->cell);
        *place = (uint64_t)(uintptr_t)page;
        shadow->page_count++;
    }
    struct rf_page *page = (struct rf_page *)(uintptr_t)*place;
    shadow->near[rf_near(number)].number_plus_1 = number + 1;
    shadow->near[rf_near(number)].page = page;
    shadow->near[rf_near(number)].whole = page->split ? NULL : page->cells;
    return page;
}

static inline struct rf_page *rf_shadow_page(struct rf_shadow *shadow, uint64_t addr)
{
    uint64_t number = addr >> RF_PAGE_BITS;
    if (__builtin_expect(shadow->near[rf_near(number)].number_plus_1 == number + 1 && shadow->near[rf_near(number)].page, 1))
        return shadow->near[rf_near(number)].page;
    return rf_shadow_far(shadow, number, true);
}

/* The cells of a page that is at hand and has no split granules; NULL: ask rf_shadow_page(). */
static inline char *rf_shadow_whole(const struct rf_shadow *shadow, uint64_t addr)
{
    uint64_t number = addr >> RF_PAGE_BITS;
    return shadow->near[rf_near(number)].number_plus_1 == number + 1 ? shadow->near[rf_near(number)].whole : NULL;
}

static inline unsigned rf_page_index(uint64_t addr)
{
    return (unsigned)(addr / RF_GRANULE) % RF_PAGE_CELLS;
}

/* How many bytes it takes to find cells: not theirs, nor those of parts. */
static inline size_t rf_shadow_directory(const struct rf_shadow *shadow)
{
    return rf_map_bytes(&shadow->pages) + shadow->page_count * rf_rounded(sizeof(struct rf_page));
}

/* Copies a cell whose records must not be shared: the detector's X_copy. */
typedef void rf_cell_copy_fn(void *detector, void *to, const void *from);

static inline unsigned rf_parts_count(uintptr_t parts)
{
    return (unsigned)(parts & 15);
}

static inline char *rf_parts_cells(uintptr_t parts)
{
    return (char *)(parts & ~(uintptr_t)15);
}

/* Splits a granule, or its halves further, into `count` parts (2 or 8). Returns the tagged parts. */
static __attribute__((noinline, unused)) uintptr_t rf_shadow_split(struct rf_shadow *shadow, struct rf_page *page,
                                                                   unsigned index, unsigned count, rf_cell_copy_fn *copy,
                                                                   void *detector)
{
    if (!page->split) {
        page->split = rf_alloc(shadow->memory, RF_PAGE_CELLS * sizeof *page->split);
        if (shadow->near[rf_near(page->number)].page == page)
            shadow->near[rf_near(page->number)].whole = NULL;
    }
    uintptr_t old = page->split[index];
    unsigned old_count = old ? rf_parts_count(old) : 1;
    char *from = old ? rf_parts_cells(old) : page->cells + index * shadow->cell;
    char *cells = rf_alloc(shadow->memory, count * shadow->cell);
    /* The last part of each old cell takes its records over; the others get copies. */
    for (unsigned i = 0; i < count; i++) {
        char *source = from + i * old_count / count * shadow->cell;
        bool last = i + 1 == count || (i + 1) * old_count / count != i * old_count / count;
        if (last)
            memcpy(cells + i * shadow->cell, source, shadow->cell);
        else
            copy(detector, cells + i * shadow->cell, source);
    }
    if (old)
        rf_free(shadow->memory, from, old_count * shadow->cell);
    else
        memset(from, 0, shadow->cell);
    shadow->split_count++;
    return page->split[index] = (uintptr_t)cells | count;
}

/* The cells that an access covers, for one that is not a whole unsplit granule. */
struct rf_cells {
    char *first;
    unsigned count; /* cells, one after the other */
    unsigned width; /* bytes that each stands for */
};

static inline struct rf_cells rf_shadow_parts(struct rf_shadow *shadow, struct rf_page *page, uint64_t addr, unsigned size,
                                              rf_cell_copy_fn *copy, void *detector)
{
    unsigned index = rf_page_index(addr), offset = addr % RF_GRANULE;
    uintptr_t parts = page->split ? page->split[index] : 0;
    unsigned wanted = size == 8 ? 1 : size == 4 && offset % 4 == 0 ? 2 : 8;
    if (!parts && wanted == 1)
        return (struct rf_cells){ page->cells + index * shadow->cell, 1, RF_GRANULE };
    if (!parts || rf_parts_count(parts) < wanted)
        parts = rf_shadow_split(shadow, page, index, wanted, copy, detector);
    unsigned width = RF_GRANULE / rf_parts_count(parts);
    return (struct rf_cells){ rf_parts_cells(parts) + offset / width * shadow->cell, size / width, width };
}

/* A granule that was cleared whole needs no parts any more. */
static inline void rf_shadow_unsplit(struct rf_shadow *shadow, struct rf_page *page, uint64_t addr)
{
    unsigned index = rf_page_index(addr);
    uintptr_t parts = page->split ? page->split[index] : 0;
    if (!parts)
        return;
    rf_free(shadow->memory, rf_parts_cells(parts), rf_parts_count(parts) * shadow->cell);
    page->split[index] = 0;
}

/* An existing page, NULL if nothing in it was ever accessed. */
static inline struct rf_page *rf_shadow_existing(struct rf_shadow *shadow, uint64_t addr)
{
    uint64_t number = addr >> RF_PAGE_BITS;
    if (shadow->near[rf_near(number)].number_plus_1 == number + 1)
        return shadow->near[rf_near(number)].page;
    return rf_shadow_far(shadow, number, false);
}

#endif
