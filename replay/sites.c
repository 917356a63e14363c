/* See replay/sites.h. */
#include "replay/sites.h"

#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

void rf_sites_init(struct rf_sites *sites, const char *const pair[2])
{
    *sites = (struct rf_sites){ .pair = { pair[0], pair[1] } };
    sites->blocks = rf_zeroed(RF_SITE_BLOCKS, sizeof *sites->blocks); /* pages of it that are not used cost nothing */
}

void rf_sites_end(struct rf_sites *sites)
{
    for (uint32_t i = 0; i < RF_SITE_BLOCKS && sites->blocks[i]; i++)
        free(sites->blocks[i]);
    for (uint32_t i = 0; i < sites->function_cap; i++)
        free(sites->functions[i]);
    free(sites->blocks);
    free(sites->functions);
}

/* A site is named by its text, or by the end of its path. */
static bool matches(const char *site, const char *wanted)
{
    size_t length = strlen(site), wanted_length = wanted ? strlen(wanted) : 0;
    if (!wanted_length || length < wanted_length || strcmp(site + length - wanted_length, wanted))
        return false;
    return length == wanted_length || site[length - wanted_length - 1] == '/';
}

static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

static void rehash(struct rf_sites *sites)
{
    uint32_t cap = sites->function_cap ? 2 * sites->function_cap : 64;
    struct rf_function **table = rf_zeroed(cap, sizeof *table);
    for (uint32_t i = 0; i < sites->function_cap; i++) {
        if (!sites->functions[i])
            continue;
        uint32_t at = hash_of(sites->functions[i]->name, strlen(sites->functions[i]->name)) & (cap - 1);
        while (table[at])
            at = (at + 1) & (cap - 1);
        table[at] = sites->functions[i];
    }
    free(sites->functions);
    sites->functions = table;
    sites->function_cap = cap;
}

static uint32_t function_number(struct rf_sites *sites, const char *name, size_t length)
{
    if (2 * (sites->function_count + 1) > sites->function_cap)
        rehash(sites);
    uint32_t at = hash_of(name, length) & (sites->function_cap - 1);
    for (; sites->functions[at]; at = (at + 1) & (sites->function_cap - 1))
        if (!strncmp(sites->functions[at]->name, name, length) && !sites->functions[at]->name[length])
            return sites->functions[at]->number;
    struct rf_function *function = sites->functions[at] = rf_resize(NULL, sizeof *function + length + 1);
    function->number = sites->function_count++;
    memcpy(function->name, name, length);
    function->name[length] = 0;
    return function->number;
}

void rf_sites_update(struct rf_sites *sites, const struct rf_reader *reader)
{
    for (uint32_t count = rf_reader_sites(reader); sites->known < count; sites->known++) {
        uint32_t site = sites->known;
        struct rf_site_info **block = &sites->blocks[site / RF_SITE_BLOCK];
        if (!*block)
            *block = rf_zeroed(RF_SITE_BLOCK, sizeof **block);
        const char *name = rf_reader_site(reader, site);
        const char *colon = strrchr(name, ':'); /* FILE:FUNCTION:LINE or FILE:LINE: all but the line */
        (*block)[site % RF_SITE_BLOCK] =
            (struct rf_site_info){ .function = function_number(sites, name, colon ? (size_t)(colon - name) : strlen(name)),
                                   .class =
                                       (matches(name, sites->pair[0]) ? 1u : 0) | (matches(name, sites->pair[1]) ? 2u : 0) };
    }
}

static const struct rf_site_info *info(const struct rf_sites *sites, uint32_t site)
{
    static const struct rf_site_info none;
    const struct rf_site_info *block = sites->blocks[site / RF_SITE_BLOCK];
    return block ? &block[site % RF_SITE_BLOCK] : &none;
}

uint32_t rf_sites_class(void *sites, uint32_t site)
{
    return info(sites, site)->class;
}

uint32_t rf_sites_function(void *sites, uint32_t site)
{
    return info(sites, site)->function;
}
