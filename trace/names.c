/* Tables of names (see names.h). */
#include "trace/names.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/event.h"
#include "trace/grow.h"

#define BLOCK_BYTES (64u << 10)

struct rf_name_block {
    struct rf_name_block *next;
    size_t used, size;
    char bytes[];
};

static const char *store(struct rf_names *names, const char *text, size_t length)
{
    struct rf_name_block *block = names->blocks;
    if (!block || block->size - block->used < length + 1) {
        size_t size = length + 1 > BLOCK_BYTES ? length + 1 : BLOCK_BYTES;
        block = rf_resize(NULL, sizeof *block + size);
        block->used = 0;
        block->size = size;
        block->next = names->blocks;
        names->blocks = block;
    }
    char *copy = block->bytes + block->used;
    memcpy(copy, text, length);
    copy[length] = 0;
    block->used += length + 1;
    return copy;
}

static uint32_t hash_text(const char *text, size_t length)
{
    return (uint32_t)XXH3_64bits(text, length);
}

static void place(struct rf_names *names, uint32_t hash, uint32_t index)
{
    size_t at = hash & names->mask;
    while (names->slots[at].index)
        at = (at + 1) & names->mask;
    names->slots[at] = (struct rf_name_slot){ hash, index + 1 };
}

/* The table stays at most half full. */
static void rehash(struct rf_names *names)
{
    size_t slots = 64;
    while (slots < names->count * 4)
        slots *= 2;
    free(names->slots);
    names->slots = rf_zeroed(slots, sizeof *names->slots);
    names->mask = slots - 1;
    for (size_t i = 0; i < names->count; i++)
        place(names, hash_text(names->entries[i].text, names->entries[i].length), (uint32_t)i);
}

static uint32_t find_hashed(const struct rf_names *names, const char *text, size_t length, uint32_t hash)
{
    if (!names->slots)
        return RF_NO_NAME;
    for (size_t at = hash & names->mask; names->slots[at].index; at = (at + 1) & names->mask) {
        if (names->slots[at].hash != hash)
            continue;
        const struct rf_name *name = &names->entries[names->slots[at].index - 1];
        if (name->length == length && memcmp(name->text, text, length) == 0)
            return names->slots[at].index - 1;
    }
    return RF_NO_NAME;
}

uint32_t rf_names_find(const struct rf_names *names, const char *text, size_t length)
{
    return find_hashed(names, text, length, hash_text(text, length));
}

static uint32_t add_entry(struct rf_names *names, const char *text, size_t length)
{
    names->entries = rf_reserve(names->entries, &names->capacity, names->count + 1, sizeof *names->entries);
    names->entries[names->count] = (struct rf_name){ text, (uint32_t)length };
    return (uint32_t)names->count++;
}

uint32_t rf_names_append(struct rf_names *names, const char *text, size_t length)
{
    return add_entry(names, store(names, text, length), length);
}

static uint32_t intern(struct rf_names *names, const char *text, size_t length, bool copy)
{
    uint32_t hash = hash_text(text, length);
    uint32_t index = find_hashed(names, text, length, hash);
    if (index != RF_NO_NAME)
        return index;
    index = add_entry(names, copy ? store(names, text, length) : text, length);
    if (!names->slots || names->count * 2 > names->mask)
        rehash(names);
    else
        place(names, hash, index);
    return index;
}

uint32_t rf_names_intern(struct rf_names *names, const char *text, size_t length)
{
    return intern(names, text, length, true);
}

uint32_t rf_names_intern_borrowed(struct rf_names *names, const char *text, size_t length)
{
    return intern(names, text, length, false);
}

void rf_names_free(struct rf_names *names)
{
    while (names->blocks) {
        struct rf_name_block *next = names->blocks->next;
        free(names->blocks);
        names->blocks = next;
    }
    free(names->entries);
    free(names->slots);
    *names = (struct rf_names){ 0 };
}

bool rf_symbols_declare(struct rf_symbols *symbols, uint64_t addr, const char *text, size_t length)
{
    if (addr >= RF_NAMED_BASE) {
        if (addr != RF_NAMED_BASE + RF_GRANULE * symbols->named.count)
            return false;
        rf_names_append(&symbols->named, text, length);
    } else if (rf_map_add(&symbols->index, addr) == symbols->texts.count) { /* else it has a name: the first one stays */
        rf_names_append(&symbols->texts, text, length);
        symbols->addresses = rf_reserve(symbols->addresses, &symbols->capacity, symbols->texts.count, sizeof(uint64_t));
        symbols->addresses[symbols->texts.count - 1] = addr;
    }
    return true;
}

const struct rf_name *rf_symbols_name(const struct rf_symbols *symbols, uint64_t addr)
{
    if (addr >= RF_NAMED_BASE) {
        uint64_t index = (addr - RF_NAMED_BASE) / RF_GRANULE;
        return index < symbols->named.count ? &symbols->named.entries[index] : NULL;
    }
    uint32_t index = rf_map_find(&symbols->index, addr);
    return index != RF_NO_INDEX ? &symbols->texts.entries[index] : NULL;
}

void rf_symbols_free(struct rf_symbols *symbols)
{
    rf_names_free(&symbols->named);
    rf_names_free(&symbols->texts);
    rf_map_free(&symbols->index);
    free(symbols->addresses);
    *symbols = (struct rf_symbols){ 0 };
}
