/* See sites/calls.h. */
#include "sites/calls.h"

#include <stdlib.h>
#include <string.h>

#include "report/symbols.h"
#include "sites/image.h"

enum { HEARD, SILENT, OTHER, HOOK };

struct looking {
    const struct rf_site_module *module;
    const struct rf_image *image;
    struct rf_scan *scan;
    struct rf_scan_walk walk; /* over the segment */
    rf_call_found *found;
    void *context;
};

static uint32_t kind_of(void *context, const char *name, const uintptr_t *slot)
{
    static const struct {
        const char *name;
        uint32_t kind;
    } known[] = {
#define RF_HEARD(name) { #name, HEARD },
#define RF_SILENT(name) { #name, SILENT },
#include "sites/heard.def"
#undef RF_HEARD
#undef RF_SILENT
    };
    (void)context, (void)slot;
    if (strncmp(name, "__tsan_", 7) == 0)
        return HOOK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].kind;
    return OTHER;
}

static void tell(const struct looking *looking, const uint8_t *last, enum rf_callee callee)
{
    struct rf_site site = { .module = looking->module, .offset = (uintptr_t)last - looking->image->base };
    struct rf_symbol symbol;
    if (!looking->module->symbols || !rf_symbolizer_line(looking->module->symbols, site.offset + 1, &symbol) || !symbol.file)
        return;
    site.file = symbol.file;
    site.line = symbol.line;
    site.column = symbol.column;
    looking->found(looking->context, &site, callee);
}

/* A jump through a slot, perhaps with what stands before it in a PLT. */
static bool is_stub(const struct looking *looking, uintptr_t at)
{
    static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
    if (!rf_image_has(looking->image, at, 16))
        return false;
    const uint8_t *code = (const uint8_t *)at;
    code += memcmp(code, endbr64, 4) == 0 ? 4 : 0;
    code += *code == 0xf2;
    return code[0] == 0xff && code[1] == 0x25;
}

/* A call or jump with its opcode here leads elsewhere, to what? */
static void consider_direct(const struct looking *looking, const uint8_t *at)
{
    uintptr_t target = (uintptr_t)at + 5 + (uintptr_t)(intptr_t)rf_scan_displacement(at + 1);
    const struct rf_scan_entry *stub = rf_scan_find(&looking->scan->stubs, target);
    if (!stub && !is_stub(looking, target))
        return;
    uint32_t kind = stub ? stub->hook : OTHER;
    if (kind == HEARD && *at == 0xe8)
        tell(looking, at + 4, RF_CALLEE_HEARD);
    else if (kind == HEARD || kind == OTHER) /* behind a jump it cannot be told where it came from */
        tell(looking, at + 4, RF_CALLEE_ANY);
}

static void consider_indirect(struct looking *looking, const uint8_t *at)
{
    unsigned what = at[1] >> 3 & 7, mode = at[1] >> 6, base = at[1] & 7;
    if ((what != 2 && what != 4) || !rf_scan_walk_to(&looking->walk, at))
        return;
    if (mode == 0 && base == 5) { /* through a slot, or a variable */
        const struct rf_scan_entry *slot =
            rf_scan_find(&looking->scan->slots, (uintptr_t)at + 6 + (uintptr_t)(intptr_t)rf_scan_displacement(at + 2));
        if (slot && (slot->hook == HOOK || slot->hook == SILENT || what == 4))
            return;
        tell(looking, at + 5, slot && slot->hook == HEARD ? RF_CALLEE_HEARD : RF_CALLEE_ANY);
        return;
    }
    tell(looking, rf_instruction_at(at).next - 1, RF_CALLEE_ANY);
}

bool rf_site_calls(const struct rf_site_module *module, rf_call_found *found, void *context)
{
    struct rf_image_file file;
    char error[256];
    if (!rf_image_read(&file, module->path, error))
        return false;
    struct rf_scan *scan = calloc(1, sizeof *scan);
    struct looking looking = { .module = module, .image = &file.image, .scan = scan, .found = found, .context = context };
    bool good = scan && file.image.base;
    if (good) {
        *scan = (struct rf_scan){ .image = file.image, .hook = kind_of, .any = true };
        if (rf_scan_slots(scan))
            rf_scan_stubs(scan);
    }
    for (unsigned i = 0; i < file.image.header_count && good; i++) {
        const ElfW(Phdr) *header = &file.image.headers[i];
        const uint8_t *at = (const uint8_t *)(file.image.base + header->p_vaddr), *end = at + header->p_filesz;
        looking.walk = (struct rf_scan_walk){ scan, at, end, at, rf_scan_functions(&file.image), NULL };
        for (; rf_scan_is_code(header) && end - at >= 8; at++) {
            if (*at == 0xe8 || *at == 0xe9)
                consider_direct(&looking, at);
            else if (*at == 0xff)
                consider_indirect(&looking, at);
        }
    }
    free(scan);
    rf_image_free(&file);
    return good;
}
