/* See report/symbols.h. */
#include "report/symbols.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file {
    struct rf_rec_module facts;
    Dwfl *dwfl;
    Dwfl_Module *module; /* addresses are those of the file */
    bool tried;
    bool no_table;     /* of addresses: all units must be asked */
    Dwarf_Die *unit;   /* the last that was found: neighbours are often asked for */
    GElf_Addr unit_bias;
    struct file *next; /* older */
};

struct text {
    struct text *next;
    char chars[];
};

struct name {
    uint64_t pc;
    uint32_t line;
    const char *function, *file;
    struct name *next;
};

struct rf_symbolizer {
    int32_t pid;
    struct file *files; /* newest first */
    struct text *texts;
    struct name *names; /* of places that are in no module, the newest first */
    char *(*demangle)(const char *, char *, size_t *, int *);
    bool demangle_tried;
};

static char no_debug_path[] = ":.debug:/usr/lib/debug";
static char *debug_path = no_debug_path;
static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debug_path,
};

static const char *keep(struct rf_symbolizer *symbols, const char *chars)
{
    size_t size = strlen(chars) + 1;
    struct text *text = malloc(sizeof *text + size);
    if (!text)
        return NULL;
    memcpy(text->chars, chars, size);
    text->next = symbols->texts;
    symbols->texts = text;
    return text->chars;
}

struct rf_symbolizer *rf_symbolizer_new(int32_t pid)
{
    struct rf_symbolizer *symbols = calloc(1, sizeof *symbols);
    if (symbols)
        symbols->pid = pid;
    unsetenv("DEBUGINFOD_URLS"); /* invariant 3 */
    return symbols;
}

void rf_symbolizer_free(struct rf_symbolizer *symbols)
{
    if (!symbols)
        return;
    for (struct file *file = symbols->files, *next; file; file = next) {
        next = file->next;
        if (file->dwfl)
            dwfl_end(file->dwfl);
        free(file->facts.path);
        free(file);
    }
    for (struct text *text = symbols->texts, *next; text; text = next) {
        next = text->next;
        free(text);
    }
    for (struct name *name = symbols->names, *next; name; name = next) {
        next = name->next;
        free(name);
    }
    free(symbols);
}

void rf_symbolizer_modules(struct rf_symbolizer *symbols, const struct rf_rec_module *modules, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct file *file = calloc(1, sizeof *file);
        if (!file)
            return;
        file->facts = modules[i];
        file->facts.path = strdup(modules[i].path);
        file->next = symbols->files;
        symbols->files = file;
    }
}

/* Opens `path` if it is the file that was loaded. */
static bool open_file(struct file *file, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (!dwfl) {
        close(fd);
        return false;
    }
    dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl_report_elf(dwfl, file->facts.path, path, fd, 0, true); /* fd is the module's now */
    dwfl_report_end(dwfl, NULL, NULL);
    if (!module) {
        close(fd);
        dwfl_end(dwfl);
        return false;
    }
    GElf_Addr bias;
    const unsigned char *bits = NULL;
    GElf_Addr where;
    int length = dwfl_module_getelf(module, &bias) ? dwfl_module_build_id(module, &bits, &where) : 0;
    char id[sizeof file->facts.build_id] = "";
    for (int i = 0; i < length && 2 * i + 2 < (int)sizeof id; i++)
        snprintf(id + 2 * i, 3, "%02x", bits[i]);
    if (file->facts.build_id[0] && strcmp(id, file->facts.build_id) != 0) { /* invariant 2 */
        dwfl_end(dwfl);
        return false;
    }
    file->dwfl = dwfl;
    file->module = module;
    return true;
}

static struct file *file_of(struct rf_symbolizer *symbols, uint64_t addr)
{
    struct file *file = symbols->files;
    while (file && (addr < file->facts.start || addr >= file->facts.end))
        file = file->next;
    if (!file || file->tried)
        return file;
    file->tried = true;
    if (!open_file(file, file->facts.path) && symbols->pid && file->facts.build_id[0]) {
        char exe[64];
        snprintf(exe, sizeof exe, "/proc/%d/exe", symbols->pid);
        open_file(file, exe);
    }
    return file;
}

static const char *readable(struct rf_symbolizer *symbols, const char *name)
{
    if (!name || name[0] != '_' || name[1] != 'Z')
        return name ? keep(symbols, name) : NULL;
    if (!symbols->demangle_tried) {
        symbols->demangle_tried = true;
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        void *found = library ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&symbols->demangle, &found, sizeof found);
    }
    int status = -1;
    char *plain = symbols->demangle ? symbols->demangle(name, NULL, NULL, &status) : NULL;
    const char *kept = keep(symbols, plain && status == 0 ? plain : name);
    free(plain);
    return kept;
}

/* C++ has linkage names, C has only names. `table` is the name in the symbol table, or NULL: functions of local types have no linkage
 * name but a symbol; a copy that the compiler made, foo.part.0, is better known as foo. */
static const char *name_of(struct rf_symbolizer *symbols, Dwarf_Die *die, const char *table)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    if (!name)
        name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
    if (name)
        return readable(symbols, name);
    name = dwarf_diename(die);
    size_t length = name ? strlen(name) : 0;
    if (!name || (table && (strncmp(table, name, length) != 0 || table[length] == '('))) /* where tables of lines are all there is */
        return table;
    return readable(symbols, name);
}

/* An absolute path without "." and "..": the compiler's directory may stand before it. */
static const char *tidy_path(struct rf_symbolizer *symbols, const char *directory, const char *path)
{
    char joined[4096], out[4096];
    if (!path)
        return NULL;
    if (snprintf(joined, sizeof joined, "%s%s%s", path[0] != '/' && directory ? directory : "",
                 path[0] != '/' && directory ? "/" : "", path) >= (int)sizeof joined)
        return keep(symbols, path);
    bool absolute = joined[0] == '/';
    size_t length = 0;
    out[0] = 0;
    for (char *rest = NULL, *part = strtok_r(joined, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        if (strcmp(part, ".") == 0)
            continue;
        char *last = strrchr(out, '/');
        if (strcmp(part, "..") == 0 && absolute && last) {
            *last = 0;
            length = (size_t)(last - out);
            continue;
        }
        int added = snprintf(out + length, sizeof out - length, "%s%s", length || absolute ? "/" : "", part);
        if (added < 0 || length + (size_t)added >= sizeof out)
            return keep(symbols, path);
        length += (size_t)added;
    }
    return keep(symbols, out);
}

static const char *directory_of(Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static struct rf_symbol *add(struct rf_stack *stack, uint32_t *cap)
{
    if (stack->frame_count == *cap) {
        uint32_t larger = *cap ? 2 * *cap : 16;
        struct rf_symbol *moved = realloc(stack->frames, larger * sizeof *moved);
        if (!moved)
            return NULL;
        stack->frames = moved;
        *cap = larger;
    }
    return memset(&stack->frames[stack->frame_count++], 0, sizeof *stack->frames);
}

/* Where the call of an inlined function stands. */
static void call_site(struct rf_symbolizer *symbols, Dwarf_Die *unit, Dwarf_Die *die, struct rf_symbol *frame)
{
    Dwarf_Files *files;
    size_t count;
    uint32_t index = number_of(die, DW_AT_call_file);
    frame->line = number_of(die, DW_AT_call_line);
    frame->column = number_of(die, DW_AT_call_column);
    frame->file = dwarf_getsrcfiles(unit, &files, &count) == 0 && index < count
                      ? tidy_path(symbols, directory_of(unit), dwarf_filesrc(files, index, NULL, NULL))
                      : NULL;
}

/* The function that holds the address, by the symbol table. */
static const char *table_name(struct rf_symbolizer *symbols, struct file *file, uint64_t addr, uint64_t *offset)
{
    GElf_Sym symbol;
    GElf_Off inside;
    const char *name = dwfl_module_addrinfo(file->module, addr, &inside, &symbol, NULL, NULL, NULL);
    if (!name || (GELF_ST_TYPE(symbol.st_info) != STT_FUNC && GELF_ST_TYPE(symbol.st_info) != STT_NOTYPE &&
                  GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC))
        return NULL;
    *offset = inside;
    return readable(symbols, name);
}

/* A function of the runtime that stands for one of libc: its own name among all symbols that begin there. */
static const char *interceptor_name(struct rf_symbolizer *symbols, struct file *file, uint64_t addr)
{
    static const char prefix[] = "rf_icpt_";
    const char *found = NULL;
    int count = dwfl_module_getsymtab(file->module);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr value;
        const char *name = dwfl_module_getsym_info(file->module, i, &symbol, &value, NULL, NULL, NULL);
        if (!name || value != addr || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
            continue;
        if (strncmp(name, prefix, sizeof prefix - 1) == 0)
            return readable(symbols, name + sizeof prefix - 1);
        if (GELF_ST_BIND(symbol.st_info) != STB_LOCAL)
            found = name;
    }
    return found ? readable(symbols, found) : NULL;
}

/* The unit of compilation that holds the address. clang leaves out the table that libdw looks into (.debug_aranges): then all units
 * are asked. */
static Dwarf_Die *unit_of(struct file *file, uint64_t addr, GElf_Addr *bias)
{
    if (file->unit && dwarf_haspc(file->unit, addr - file->unit_bias) > 0) {
        *bias = file->unit_bias;
        return file->unit;
    }
    Dwarf_Die *unit = file->no_table ? NULL : dwfl_module_addrdie(file->module, addr, bias);
    if (!unit) {
        while ((unit = dwfl_module_nextcu(file->module, unit, bias)) && dwarf_haspc(unit, addr - *bias) <= 0) {
        }
        file->no_table |= unit != NULL;
    }
    file->unit = unit;
    file->unit_bias = *bias;
    return unit;
}

static struct name *name_at(const struct rf_symbolizer *symbols, uint64_t pc)
{
    struct name *name = symbols->names;
    while (name && name->pc != pc)
        name = name->next;
    return name;
}

static void learn_name(struct rf_symbolizer *symbols, const struct rf_rec_name *told)
{
    struct name *name = name_at(symbols, told->pc);
    if (!name) {
        name = calloc(1, sizeof *name);
        if (!name)
            return;
        name->pc = told->pc;
        name->next = symbols->names;
        symbols->names = name;
    }
    name->line = told->line;
    const char **text = told->is_file ? &name->file : &name->function;
    if (!*text && told->text[0])
        *text = keep(symbols, told->text);
}

static void add_address(struct rf_symbolizer *symbols, struct rf_stack *stack, uint32_t *cap, uint64_t pc)
{
    struct file *file = file_of(symbols, pc);
    struct rf_symbol *frame = add(stack, cap);
    if (!frame)
        return;
    frame->pc = pc;
    const struct name *name = file ? NULL : name_at(symbols, pc);
    if (name) {
        frame->function = name->function;
        frame->file = name->file;
        frame->line = name->line;
    }
    if (!file)
        return;
    frame->module = file->facts.path;
    frame->build_id = file->facts.build_id;
    frame->runtime = file->facts.runtime;
    frame->offset = pc - file->facts.bias - !frame->runtime; /* in the calling instruction, not after it */
    if (!file->module)
        return;
    if (frame->runtime) {
        frame->function = interceptor_name(symbols, file, frame->offset);
        return;
    }
    uint64_t addr = frame->offset, inside;
    GElf_Addr bias = 0;
    Dwarf_Die *unit = unit_of(file, addr, &bias), *scopes = NULL, *nested = NULL;
    Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, addr - bias) : NULL;
    int row = 0, column = 0;
    if (line) {
        dwarf_lineno(line, &row);
        dwarf_linecol(line, &column);
    }
    frame->file = line ? tidy_path(symbols, directory_of(unit), dwarf_linesrc(line, NULL, NULL)) : NULL;
    frame->line = (uint32_t)row;
    frame->column = (uint32_t)column;
    int count = unit ? dwarf_getscopes(unit, addr - bias, &scopes) : 0;
    if (count > 0)
        count = dwarf_getscopes_die(&scopes[0], &nested); /* as the code is nested, not as the text is */
    for (int i = 0; i < count; i++) {
        int tag = dwarf_tag(&nested[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        bool whole = tag == DW_TAG_subprogram;
        frame->function = name_of(symbols, &nested[i], whole ? table_name(symbols, file, addr, &inside) : NULL);
        if (whole)
            break;
        frame->inlined = true;
        struct rf_symbol inner = *frame;
        frame = add(stack, cap);
        if (!frame)
            break;
        *frame = inner;
        frame->inlined = false;
        frame->function = NULL;
        call_site(symbols, unit, &nested[i], frame);
    }
    if (frame && !frame->function)
        frame->function = table_name(symbols, file, addr, &inside);
    free(scopes);
    free(nested);
}

bool rf_symbolizer_line(struct rf_symbolizer *symbols, uint64_t pc, struct rf_symbol *symbol)
{
    struct file *file = file_of(symbols, pc);
    *symbol = (struct rf_symbol){ .pc = pc };
    if (!file || !file->module)
        return false;
    uint64_t addr = pc - file->facts.bias - 1;
    GElf_Addr bias = 0;
    Dwarf_Die *unit = unit_of(file, addr, &bias);
    Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, addr - bias) : NULL;
    int row = 0, column = 0;
    if (!line)
        return false;
    dwarf_lineno(line, &row);
    dwarf_linecol(line, &column);
    symbol->line = (uint32_t)row;
    symbol->column = (uint32_t)column;
    symbol->file = tidy_path(symbols, directory_of(unit), dwarf_linesrc(line, NULL, NULL));
    return symbol->file != NULL;
}

/* Of libc: what runs below main() and below the first function of a thread. */
static bool system_module(const char *path)
{
    static const char *const names[] = { "libc.so.", "libc-2.", "libpthread.so.", "libpthread-2.", "ld-linux", "ld-2." };
    const char *base = path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    for (size_t i = 0; base && i < sizeof names / sizeof *names; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* The one kind of frame of the runtime that says something below others: "at_exit_callback_installed_at" (guest/cxxabi.c). */
static bool installed_at(const char *function)
{
    static const char end[] = "_callback_installed_at";
    size_t length = function ? strlen(function) : 0;
    return length >= sizeof end && strcmp(function + length - (sizeof end - 1), end) == 0;
}

void rf_symbolizer_stack(struct rf_symbolizer *symbols, struct rf_stack *stack)
{
    uint32_t cap = 0;
    for (uint32_t i = 0; i < stack->count; i++) {
        uint32_t first = stack->frame_count;
        add_address(symbols, stack, &cap, stack->pcs[i]);
        if (stack->frame_count == first)
            continue;
        const struct rf_symbol *last = &stack->frames[stack->frame_count - 1];
        if (last->runtime && ((i > 0 && !installed_at(last->function)) || !last->function) && stack->count > 1) {
            stack->frame_count = first;
            continue;
        }
        if (last->function && strcmp(last->function, "main") == 0 && i + 2 >= stack->count)
            break;
    }
    while (stack->frame_count > 1 && !stack->frames[stack->frame_count - 1].runtime &&
           system_module(stack->frames[stack->frame_count - 1].module))
        stack->frame_count--;
}

/* What is neither a function nor in a table has no name, but its module and offset say where it is. */
bool rf_symbolizer_variable(struct rf_symbolizer *symbols, uint64_t addr, struct rf_rec_location *location)
{
    struct file *file = file_of(symbols, addr);
    if (!file)
        return false;
    location->kind = RF_AT_GLOBAL;
    location->addr = addr;
    location->size = 0;
    location->name = NULL;
    location->module = file->facts.path;
    location->offset = addr - file->facts.bias;
    if (!file->module)
        return true;
    GElf_Sym symbol;
    GElf_Off inside;
    const char *name = dwfl_module_addrinfo(file->module, location->offset, &inside, &symbol, NULL, NULL, NULL);
    if (!name || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || (symbol.st_size && inside >= symbol.st_size))
        return true;
    location->name = readable(symbols, name);
    location->addr = addr - inside;
    location->offset -= inside;
    location->size = symbol.st_size;
    return true;
}

void rf_symbolizer_record(struct rf_symbolizer *symbols, struct rf_record *record)
{
    for (uint32_t i = 0; i < record->name_count; i++)
        learn_name(symbols, &record->names[i]);
    rf_symbolizer_modules(symbols, record->modules, record->module_count);
    for (uint32_t i = 0; i < record->access_count; i++)
        rf_symbolizer_stack(symbols, &record->accesses[i].stack);
    for (uint32_t i = 0; i < record->stack_count; i++)
        rf_symbolizer_stack(symbols, &record->stacks[i]);
    for (uint32_t i = 0; i < record->thread_count; i++)
        rf_symbolizer_stack(symbols, &record->threads[i].stack);
    for (uint32_t i = 0; i < record->lock_count; i++) {
        rf_symbolizer_stack(symbols, &record->locks[i].created);
        rf_symbolizer_stack(symbols, &record->locks[i].taken);
        struct rf_rec_location variable = { 0 };
        if (rf_symbolizer_variable(symbols, record->locks[i].addr, &variable))
            record->locks[i].name = variable.name;
    }
    for (uint32_t i = 0; i < record->step_count; i++) {
        rf_symbolizer_stack(symbols, &record->steps[i].wanted_at);
        rf_symbolizer_stack(symbols, &record->steps[i].held_at);
    }
    rf_symbolizer_stack(symbols, &record->location.stack);
    if (record->location.kind == RF_AT_GLOBAL)
        rf_symbolizer_variable(symbols, record->location.addr, &record->location);
}

const struct rf_symbol *rf_stack_top(const struct rf_stack *stack)
{
    for (uint32_t i = 0; i < stack->frame_count; i++)
        if (!stack->frames[i].runtime)
            return &stack->frames[i];
    return stack->frame_count ? &stack->frames[0] : NULL;
}
