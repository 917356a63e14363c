/* From virtual to physical addresses: a page gets the next free frame at its first use.
 *
 * 1. Data, and each kind of synchronisation object, has a name space of its own (core/event.h, 5.) and so pages of its own.
 * 2. Frames never change hands; memory grows with what the program touches, not with the length of the trace.
 * 3. Physical memory ends where keys do (hardware/cache.h): at 64 GB with lines of 64 bytes.
 */
#ifndef RF_HARDWARE_PAGES_H
#define RF_HARDWARE_PAGES_H

#include "core/map.h"
#include "hardware/cache.h"
#include "hardware/config.h"
#include "hardware/usual.h"
#include "trace/grow.h"

#define RF_NEAR_FRAMES 8192u

struct rf_frame {
    uint64_t number;
    bool race_free;
    uint8_t *split; /* compact encoding: a byte for each line, 1: the line has metadata for each byte */
};

struct rf_pages {
    const struct rf_config *config;
    struct rf_memory *memory;
    struct rf_map frames; /* page, space -> struct rf_frame * */
    uint64_t count;
    uint32_t page_bits, line_bits;
    struct rf_near {
        uint64_t page_plus_1;
        uint64_t number : 63, race_free : 1; /* the frame's, which so need not be looked at */
        struct rf_frame *frame;
    } near[RF_NEAR_FRAMES];
};

static inline void rf_pages_init(struct rf_pages *pages, const struct rf_config *config, struct rf_memory *memory)
{
    memset(pages, 0, sizeof *pages);
    pages->config = config;
    pages->memory = memory;
    pages->page_bits = (uint32_t)__builtin_ctzll(config->page_bytes);
    pages->line_bits = (uint32_t)__builtin_ctzll(config->line_bytes);
    rf_map_init(&pages->frames, memory);
}

/* A page is race-free only if all of it is. */
static inline bool rf_page_is_race_free(const struct rf_config *config, uint64_t begin)
{
    for (size_t i = 0; i < config->race_free_count; i++)
        if (config->race_free[i].begin <= begin && begin + (config->page_bytes - 1) < config->race_free[i].end)
            return true;
    return false;
}

static __attribute__((noinline, unused)) struct rf_frame *rf_frame_far(struct rf_pages *pages, uint64_t page, uint32_t space)
{
    uint64_t *place = rf_map_at(&pages->frames, page * 8 + space);
    if (!*place) {
        struct rf_frame *frame = rf_alloc(pages->memory, sizeof *frame);
        frame->number = pages->count++;
        if (pages->count << (pages->page_bits - pages->line_bits) > RF_KEY_DATA) {
            fprintf(stderr, "redflag: the program uses more memory than can be simulated (%u million cache lines)\n",
                    RF_KEY_DATA / 1000000);
            exit(2);
        }
        frame->race_free = !space && rf_page_is_race_free(pages->config, page << pages->page_bits);
        if (!space && pages->config->encoding == RF_ENCODING_COMPACT)
            frame->split = rf_alloc(pages->memory, (size_t)1 << (pages->page_bits - pages->line_bits));
        *place = (uint64_t)(uintptr_t)frame;
    }
    return (struct rf_frame *)(uintptr_t)*place;
}

static inline uint32_t rf_page_bits(const struct rf_pages *pages)
{
    return RF_USUAL ? (uint32_t)__builtin_ctz(RF_USUAL_PAGE) : pages->page_bits;
}

/* Neighbours are neighbours, so that a program's few regions take few lines of the host's; where a region begins is a matter of chance. */
static inline uint32_t rf_near_place(uint64_t page)
{
    uint32_t region = (uint32_t)(page / RF_NEAR_FRAMES) * UINT32_C(0x9e3779b1);
    return ((uint32_t)page + region / (UINT32_MAX / RF_NEAR_FRAMES + 1)) % RF_NEAR_FRAMES;
}

/* The physical address, if the page was used lately; else 0, which may also be right. Does not look at the frame. */
static inline uint64_t rf_physical_near(const struct rf_pages *pages, uint64_t addr)
{
    uint64_t page = addr >> rf_page_bits(pages);
    uint32_t at = rf_near_place(page);
    return pages->near[at].page_plus_1 == page + 1
               ? pages->near[at].number << rf_page_bits(pages) | (addr & ((UINT64_C(1) << rf_page_bits(pages)) - 1))
               : 0;
}

/* What is known of the page of a data address. */
static inline const struct rf_near *rf_near_of(struct rf_pages *pages, uint64_t addr)
{
    uint64_t page = addr >> rf_page_bits(pages);
    struct rf_near *near = &pages->near[rf_near_place(page)];
    if (__builtin_expect(near->page_plus_1 != page + 1, 0)) {
        struct rf_frame *frame = rf_frame_far(pages, page, 0);
        *near = (struct rf_near){ page + 1, frame->number & (UINT64_MAX >> 1), frame->race_free, frame };
    }
    return near;
}

static inline struct rf_frame *rf_frame_of(struct rf_pages *pages, uint64_t addr)
{
    return rf_near_of(pages, addr)->frame;
}

/* The frame of a data address, NULL if its page was never used. */
static inline struct rf_frame *rf_frame_known(const struct rf_pages *pages, uint64_t addr)
{
    uint64_t page = addr >> rf_page_bits(pages);
    if (pages->near[rf_near_place(page)].page_plus_1 == page + 1)
        return pages->near[rf_near_place(page)].frame;
    uint64_t *place = rf_map_find(&pages->frames, page * 8);
    return place ? (struct rf_frame *)(uintptr_t)*place : NULL;
}

static inline uint64_t rf_physical_at(const struct rf_pages *pages, uint64_t number, uint64_t addr)
{
    return number << rf_page_bits(pages) | (addr & ((UINT64_C(1) << rf_page_bits(pages)) - 1));
}

static inline uint64_t rf_physical(const struct rf_pages *pages, const struct rf_frame *frame, uint64_t addr)
{
    return rf_physical_at(pages, frame->number, addr);
}

#endif
