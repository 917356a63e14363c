/* See sites/list.h. */
#include "sites/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/symbols.h"
#include "sites/image.h"

/* -- reading a module ------------------------------------------------------------------------------------------------------------ */

#define MOST_HOOKS 512u

/* While a module is read. A hook's number is its place in `names`. */
struct reading {
    struct rf_site_module *module;
    const struct rf_image *image;
    const char *names[MOST_HOOKS]; /* kept for ever: there are few, and the same for all modules */
    unsigned name_count;
    bool failed; /* out of memory */
};

static const char *kept_names[MOST_HOOKS];

static const char *keep_name(const char *name)
{
    for (unsigned i = 0; i < MOST_HOOKS; i++) {
        if (!kept_names[i])
            return kept_names[i] = strdup(name);
        if (!strcmp(kept_names[i], name))
            return kept_names[i];
    }
    return NULL;
}

static uint32_t wanted(void *context, const char *name, const uintptr_t *slot)
{
    struct reading *reading = context;
    (void)slot;
    struct rf_hook hook = rf_hook_named(name);
    if (hook.kind == RF_HOOK_NONE)
        return RF_NO_HOOK;
    reading->module->instrumented = true;
    reading->module->inlined |= hook.kind == RF_HOOK_COLD;
    if (!rf_hook_accesses(&hook) || reading->name_count == MOST_HOOKS)
        return RF_NO_HOOK;
    reading->names[reading->name_count] = keep_name(name);
    return reading->names[reading->name_count] ? reading->name_count++ : RF_NO_HOOK;
}

static void found(void *context, const struct rf_hook_call *call)
{
    struct reading *reading = context;
    struct rf_site_module *module = reading->module;
    if (module->count == module->cap) {
        size_t cap = module->cap ? 2 * module->cap : 256;
        struct rf_site *more = realloc(module->sites, cap * sizeof *more);
        if (!more) {
            reading->failed = true;
            return;
        }
        module->sites = more;
        module->cap = cap;
    }
    const char *name = reading->names[call->hook];
    module->sites[module->count++] = (struct rf_site){ .module = module,
                                                       .offset = (uintptr_t)call->at + call->length - 1 - reading->image->base,
                                                       .hook_name = name,
                                                       .hook = rf_hook_named(name),
                                                       .jump = call->jump };
}

/* File and line, as a report would have them. Neighbours share a file: its name is kept once. */
static void name_places(struct rf_site_module *module, uint64_t size)
{
    struct rf_rec_module facts = { .start = 0, .end = size, .bias = 0, .path = module->path };
    const char *last = NULL;
    memcpy(facts.build_id, module->build_id, sizeof facts.build_id);
    module->symbols = rf_symbolizer_new(0);
    if (!module->symbols)
        return;
    rf_symbolizer_modules(module->symbols, &facts, 1);
    for (size_t i = 0; i < module->count; i++) {
        struct rf_symbol symbol;
        if (!rf_symbolizer_line(module->symbols, module->sites[i].offset + 1, &symbol))
            continue;
        last = last && !strcmp(last, symbol.file) ? last : symbol.file;
        module->sites[i].file = last;
        module->sites[i].line = symbol.line;
        module->sites[i].column = symbol.column;
    }
}

const char *rf_site_function(const struct rf_site *site)
{
    uint64_t pc = site->offset + 1;
    struct rf_stack stack = { .pcs = &pc, .count = 1, .cap = 1 };
    if (!site->module->symbols)
        return NULL;
    rf_symbolizer_stack(site->module->symbols, &stack);
    const char *function = stack.frame_count ? stack.frames[0].function : NULL;
    free(stack.frames);
    return function;
}

static void module_free(struct rf_site_module *module)
{
    if (!module)
        return;
    rf_symbolizer_free(module->symbols);
    free(module->sites);
    free(module->path);
    free(module);
}

bool rf_site_list_add(struct rf_site_list *list, const char *path, char error[256])
{
    struct rf_image_file file;
    if (!rf_image_read(&file, path, error))
        return false;
    struct rf_site_module *module = calloc(1, sizeof *module);
    struct rf_scan *scan = calloc(1, sizeof *scan);
    struct reading reading = { .module = module, .image = &file.image, .failed = !module || !scan };
    if (list->count == list->cap && !reading.failed) {
        size_t cap = list->cap ? 2 * list->cap : 16;
        struct rf_site_module **more = realloc(list->modules, cap * sizeof(struct rf_site_module *));
        reading.failed = !more;
        list->modules = more ? more : list->modules;
        list->cap = more ? cap : list->cap;
    }
    if (!reading.failed && (module->path = strdup(path))) {
        memcpy(module->build_id, file.build_id, sizeof module->build_id);
        *scan = (struct rf_scan){ .image = file.image, .hook = wanted, .context = &reading };
        if (rf_scan_slots(scan)) {
            rf_scan_stubs(scan);
            rf_scan_calls(scan, found);
            name_places(module, file.image.high - file.image.base);
        }
    }
    free(scan);
    rf_image_free(&file);
    if (reading.failed || !module->path) {
        module_free(module);
        snprintf(error, 256, "%.180s: out of memory", path);
        return false;
    }
    list->modules[list->count++] = module;
    return true;
}

void rf_site_list_free(struct rf_site_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        module_free(list->modules[i]);
    free(list->modules);
    *list = (struct rf_site_list){ .modules = NULL };
}

/* -- names ----------------------------------------------------------------------------------------------------------------------- */

/* A number from 1 on that ends at `end`; what is before it begins with `before`. */
static const char *number_before(const char *text, const char *end, char before, uint32_t *number)
{
    const char *at = end;
    uint64_t value = 0, place = 1;
    while (at > text && at[-1] >= '0' && at[-1] <= '9' && place < 10000000000u) {
        value += place * (uint64_t)(*--at - '0');
        place *= 10;
    }
    if (at == end || at == text || at[-1] != before || !value || value > UINT32_MAX)
        return NULL;
    *number = (uint32_t)value;
    return at - 1;
}

bool rf_site_pattern_read(const char *text, struct rf_site_pattern *name)
{
    const char *plus = strrchr(text, '+');
    if (text[0] == '@') {
        *name = (struct rf_site_pattern){ .kind = RF_SITE_BY_FUNCTION, .text = text + 1, .length = strlen(text + 1) };
        return name->length > 0;
    }
    if (plus && plus > text && plus[1] == '0' && plus[2] == 'x' && plus[3]) {
        char *end;
        *name = (struct rf_site_pattern){ .kind = RF_SITE_BY_OFFSET, .text = text, .length = (size_t)(plus - text) };
        name->offset = strtoull(plus + 1, &end, 16);
        return !*end && strspn(plus + 3, "0123456789abcdefABCDEF") == strlen(plus + 3);
    }
    *name = (struct rf_site_pattern){ .kind = RF_SITE_BY_LINE, .text = text };
    const char *end = number_before(text, text + strlen(text), ':', &name->line);
    if (!end || end == text)
        return false;
    uint32_t line;
    const char *before = number_before(text, end, ':', &line);
    if (before && before > text) {
        name->column = name->line;
        name->line = line;
        end = before;
    }
    name->length = (size_t)(end - text);
    return true;
}

bool rf_site_is_name(const char *text)
{
    struct rf_site_pattern name;
    return rf_site_pattern_read(text, &name);
}

/* A leading "./" says nothing. */
bool rf_site_path_fits(const char *path, const char *text, size_t length)
{
    while (length > 2 && text[0] == '.' && text[1] == '/')
        text += 2, length -= 2;
    size_t all = strlen(path);
    return all >= length && !memcmp(path + all - length, text, length) &&
           (all == length || path[all - length - 1] == '/' || text[0] == '/');
}

static bool module_fits(const struct rf_site_module *module, const char *text, size_t length)
{
    size_t digits = strspn(text, "0123456789abcdef");
    if (length >= 8 && digits >= length && !strncmp(module->build_id, text, length))
        return true;
    return rf_site_path_fits(module->path, text, length);
}

bool rf_site_function_fits(const char *function, const char *text, size_t length)
{
    return function && !strncmp(function, text, length) && (!function[length] || function[length] == '(');
}

static bool fits(const struct rf_site *site, const struct rf_site_pattern *name)
{
    switch (name->kind) {
    case RF_SITE_BY_OFFSET: return site->offset == name->offset && module_fits(site->module, name->text, name->length);
    case RF_SITE_BY_FUNCTION: return rf_site_function_fits(rf_site_function(site), name->text, name->length);
    case RF_SITE_BY_LINE: break;
    }
    return site->line == name->line && (!name->column || site->column == name->column) && site->file &&
           rf_site_path_fits(site->file, name->text, name->length);
}

size_t rf_site_list_find(const struct rf_site_list *list, const char *text, const struct rf_site **found_sites, size_t most)
{
    struct rf_site_pattern name;
    size_t count = 0;
    if (!rf_site_pattern_read(text, &name))
        return 0;
    for (size_t m = 0; m < list->count; m++) {
        for (size_t i = 0; i < list->modules[m]->count; i++) {
            const struct rf_site *site = &list->modules[m]->sites[i];
            if (!fits(site, &name))
                continue;
            if (count < most)
                found_sites[count] = site;
            count++;
        }
    }
    return count;
}

bool rf_site_list_ambiguous(const struct rf_site *const *sites, size_t count, const struct rf_site **other)
{
    for (size_t i = 1; i < count; i++) {
        if (sites[0]->file && sites[i]->file && strcmp(sites[0]->file, sites[i]->file) != 0) {
            *other = sites[i];
            return true;
        }
    }
    return false;
}

const struct rf_site *rf_site_at(const struct rf_site_list *list, const char *text, uint64_t offset)
{
    for (size_t m = 0; m < list->count; m++) {
        const struct rf_site_module *module = list->modules[m];
        if (!module_fits(module, text, strlen(text)))
            continue;
        size_t low = 0, high = module->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (module->sites[middle].offset < offset)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < module->count && module->sites[low].offset == offset)
            return &module->sites[low];
    }
    return NULL;
}

bool rf_site_list_line(const struct rf_site_list *list, const char *name, char *to, size_t size)
{
    struct rf_site_pattern pattern;
    struct rf_symbol symbol;
    if (!rf_site_pattern_read(name, &pattern) || pattern.kind != RF_SITE_BY_OFFSET)
        return false;
    for (size_t i = 0; i < list->count; i++) {
        const struct rf_site_module *module = list->modules[i];
        if (module_fits(module, pattern.text, pattern.length) && module->symbols &&
            rf_symbolizer_line(module->symbols, pattern.offset + 1, &symbol) && symbol.file) {
            snprintf(to, size, "%s:%u", symbol.file, symbol.line);
            return true;
        }
    }
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void rf_site_name(const struct rf_site *site, char *to, size_t size)
{
    const char *module = site->module->build_id[0] ? site->module->build_id : base_name(site->module->path);
    snprintf(to, size, "%s+0x%" PRIx64, module, site->offset);
}

void rf_site_place(const struct rf_site *site, char *to, size_t size)
{
    if (!site->file)
        rf_site_name(site, to, size);
    else if (site->column)
        snprintf(to, size, "%s:%" PRIu32 ":%" PRIu32, site->file, site->line, site->column);
    else
        snprintf(to, size, "%s:%" PRIu32, site->file, site->line);
}

void rf_site_words(const struct rf_site *site, char *to, size_t size)
{
    char bytes[32] = "of some bytes";
    if (site->hook.size)
        snprintf(bytes, sizeof bytes, "of %u byte%s", site->hook.size, site->hook.size == 1 ? "" : "s");
    snprintf(to, size, "%s%s %s%s", site->hook.kind == RF_HOOK_ATOMIC ? "atomic " : "", site->hook.write ? "write" : "read",
             bytes, site->hook.vptr ? " (vtable pointer)" : "");
}
