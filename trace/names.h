/* Names of threads, sites, variables and objects: texts and their indices, in the order in which they came.
 *
 * 1. An index is given once and never changes; a text lives, at one address, as long as its table.
 * 2. Texts end in NUL for the reader's comfort but may hold any bytes before it.
 */
#ifndef RF_TRACE_NAMES_H
#define RF_TRACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/map.h"

#define RF_NO_NAME UINT32_MAX

struct rf_name {
    const char *text;
    uint32_t length;
};

struct rf_name_slot {
    uint32_t hash;
    uint32_t index; /* plus one; 0 is free */
};

struct rf_names {
    struct rf_name *entries;
    size_t count, capacity;
    struct rf_name_slot *slots; /* open addressing; NULL until the first search by text */
    size_t mask;                /* slots - 1 */
    struct rf_name_block *blocks;
};

void rf_names_free(struct rf_names *names);
/* The index of a text, which is added if it is new. */
uint32_t rf_names_intern(struct rf_names *names, const char *text, size_t length);
/* Its index, or RF_NO_NAME. */
uint32_t rf_names_find(const struct rf_names *names, const char *text, size_t length);
/* Adds a text without looking for it: tables of .rft files are searched by index alone. */
uint32_t rf_names_append(struct rf_names *names, const char *text, size_t length);
/* The same, but the text is not copied: it must live as long as the table. */
uint32_t rf_names_intern_borrowed(struct rf_names *names, const char *text, size_t length);

static inline const char *rf_names_text(const struct rf_names *names, size_t index)
{
    return index < names->count ? names->entries[index].text : NULL;
}

/* Names of addresses: those from RF_NAMED_BASE on are an array, symbols of real addresses a hash table. */
struct rf_symbols {
    struct rf_names named; /* index i has the address RF_NAMED_BASE + 8 * i */
    struct rf_names texts; /* of real addresses */
    struct rf_map index;   /* real address -> index into texts */
    uint64_t *addresses;   /* and back */
    size_t capacity;
};

void rf_symbols_free(struct rf_symbols *symbols);
/* False if an address of the named region is not the next one. */
bool rf_symbols_declare(struct rf_symbols *symbols, uint64_t addr, const char *text, size_t length);
/* NULL if it has no name. */
const struct rf_name *rf_symbols_name(const struct rf_symbols *symbols, uint64_t addr);

#endif
