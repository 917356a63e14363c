/* Sites of a recorded program: the function, file and line of an address of code, found once for each address. */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/places.h"
#include "cli/record.h"
#include "report/symbols.h"
#include "trace/grow.h"
#include "trace/map.h"

struct rf_sites {
    struct rf_recording *recording;
    struct rf_writer *writer;
    struct rf_symbolizer *symbols;
    struct rf_map pcs; /* to the number of the site, less 1 */
    struct rf_rec_module *modules;
    size_t count, capacity;
    uint32_t read; /* bytes of the maps */
    struct rf_map named; /* pcs that have names of their own */
    char **names;
    size_t names_capacity;
    uint64_t last_pc;
    uint32_t last_site;
};

struct rf_sites *rf_sites_new(struct rf_recording *recording, struct rf_writer *writer)
{
    struct rf_sites *sites = rf_zeroed(1, sizeof *sites);
    sites->recording = recording;
    sites->writer = writer;
    sites->symbols = rf_symbolizer_new(0);
    return sites;
}

void rf_sites_free(struct rf_sites *sites)
{
    rf_symbolizer_free(sites->symbols);
    for (size_t i = 0; i < sites->count; i++)
        free(sites->modules[i].path);
    free(sites->modules);
    rf_map_free(&sites->pcs);
    for (size_t i = 0; i < sites->named.count; i++)
        free(sites->names[i]);
    free(sites->names);
    rf_map_free(&sites->named);
    free(sites);
}

/* Is it loaded where its file says? Then nothing is added to its addresses. */
static bool has_fixed_place(const char *path)
{
    Elf64_Ehdr header = { .e_type = ET_DYN };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, &header, sizeof header) != sizeof header)
            header.e_type = ET_DYN;
        close(fd);
    }
    return header.e_type == ET_EXEC;
}

static void add_mapping(struct rf_sites *sites, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
    struct rf_rec_module *last = sites->count ? &sites->modules[sites->count - 1] : NULL;
    for (size_t i = 0; i < sites->count; i++)
        if (sites->modules[i].start <= start && end <= sites->modules[i].end && !strcmp(sites->modules[i].path, path))
            return;
    if (last && offset && start >= last->end && !strcmp(last->path, path)) {
        last->end = end;
        return;
    }
    sites->modules = rf_reserve(sites->modules, &sites->capacity, sites->count + 1, sizeof *sites->modules);
    struct rf_rec_module *module = &sites->modules[sites->count++];
    *module = (struct rf_rec_module){ .start = start, .end = end, .runtime = strstr(path, RF_RT_NAME) != NULL };
    module->bias = has_fixed_place(path) ? 0 : start - offset;
    module->path = strcpy(rf_resize(NULL, strlen(path) + 1), path);
}

static void add_name(struct rf_sites *sites, uint64_t pc, const char *text)
{
    size_t count = sites->named.count;
    uint32_t at = rf_map_add(&sites->named, pc);
    if (sites->named.count == count)
        return;
    sites->names = rf_reserve(sites->names, &sites->names_capacity, count + 1, sizeof *sites->names);
    sites->names[at] = strcpy(rf_resize(NULL, strlen(text) + 1), text);
}

/* What came since the last time. */
static void read_maps(struct rf_sites *sites)
{
    uint32_t size = __atomic_load_n(&sites->recording->maps_size, __ATOMIC_ACQUIRE);
    const char *text = rf_rec_maps(sites->recording);
    size_t before = sites->count;
    while (sites->read < size) {
        const char *end = memchr(text + sites->read, '\n', size - sites->read);
        char line[8192], path[4096];
        uint64_t from, to, offset;
        size_t length = end ? (size_t)(end - text) - sites->read : size - sites->read;
        snprintf(line, sizeof line, "%.*s", (int)length, text + sites->read);
        sites->read += (uint32_t)length + 1;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095[^\n]", &from, &to, &offset, path) == 4 &&
            (path[0] == '/' || path[0] == '=')) {
            if (path[0] == '=')
                add_name(sites, from, path + 1);
            else
                add_mapping(sites, from, to, offset, path);
        }
    }
    if (sites->count > before)
        rf_symbolizer_modules(sites->symbols, sites->modules + before, (uint32_t)(sites->count - before));
}

static bool is_known(const struct rf_sites *sites, uint64_t pc)
{
    if (rf_map_find(&sites->named, pc) != RF_NO_INDEX)
        return true;
    for (size_t i = 0; i < sites->count; i++)
        if (pc >= sites->modules[i].start && pc < sites->modules[i].end)
            return true;
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void declare(struct rf_sites *sites, uint32_t site, uint64_t pc)
{
    char text[1024];
    struct rf_stack stack = { .pcs = &pc, .count = 1, .cap = 1 };
    if (!is_known(sites, pc))
        read_maps(sites);
    uint32_t named = rf_map_find(&sites->named, pc);
    if (named != RF_NO_INDEX) {
        rf_writer_site(sites->writer, site, sites->names[named]);
        return;
    }
    rf_symbolizer_stack(sites->symbols, &stack);
    const struct rf_symbol *symbol = rf_stack_top(&stack);
    if (symbol && symbol->file)
        snprintf(text, sizeof text, "%s:%u %s", base_name(symbol->file), symbol->line, symbol->function ? symbol->function : "");
    else if (symbol && symbol->function)
        snprintf(text, sizeof text, "%s %s", symbol->function, symbol->module ? base_name(symbol->module) : "");
    else if (symbol && symbol->module)
        snprintf(text, sizeof text, "%s+0x%" PRIx64, base_name(symbol->module), symbol->offset);
    else
        snprintf(text, sizeof text, "0x%" PRIx64, pc);
    rf_writer_site(sites->writer, site, text);
    free(stack.frames);
}

uint32_t rf_site(struct rf_sites *sites, uint64_t pc)
{
    if (!pc)
        return 0;
    if (pc == sites->last_pc)
        return sites->last_site;
    size_t count = sites->pcs.count;
    uint32_t site = rf_map_add(&sites->pcs, pc) + 1;
    if (sites->pcs.count > count)
        declare(sites, site, pc);
    sites->last_pc = pc;
    return sites->last_site = site;
}
