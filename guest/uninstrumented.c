/* ignore_noninstrumented_modules=1: what a library that was not compiled with -fsanitize=thread does to memory by way of libc is not
 * looked at, because what orders it may be in the library, where nobody sees it. Asked when a race was found, not before: cold. */
#include "guest/uninstrumented.h"

#include <elf.h>
#include <link.h>

#include "guest/access.h"
#include "guest/intercept.h"
#include "guest/text.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

struct question {
    uintptr_t pc;
    bool found, instrumented;
};

struct imports {
    const ElfW(Sym) *symbols;
    const char *names;
};

/* Instrumented code calls hooks, so its module imports them. */
static bool imports_hook(const struct imports *imports, uintptr_t table, size_t size)
{
    const ElfW(Rela) *from = (const ElfW(Rela) *)table;
    for (size_t count = size / sizeof *from; count && table; from++, count--) {
        const char *name = imports->names + imports->symbols[ELF64_R_SYM(from->r_info)].st_name;
        if (rf_text_begins(name, "__tsan_"))
            return true;
    }
    return false;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *context)
{
    struct question *question = context;
    const ElfW(Dyn) *dynamic = NULL;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + header->p_vaddr);
        if (header->p_type == PT_LOAD && question->pc - (info->dlpi_addr + header->p_vaddr) < header->p_memsz)
            question->found = true;
    }
    if (!question->found)
        return 0;
    uintptr_t plt = 0, all = 0, symbols = 0, names = 0;
    size_t plt_size = 0, all_size = 0;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_ptr, place = value < info->dlpi_addr ? value + info->dlpi_addr : value;
        switch (dynamic->d_tag) {
        case DT_JMPREL: plt = place; break;
        case DT_PLTRELSZ: plt_size = value; break;
        case DT_RELA: all = place; break;
        case DT_RELASZ: all_size = value; break;
        case DT_SYMTAB: symbols = place; break;
        case DT_STRTAB: names = place; break;
        default: break;
        }
    }
    struct imports imports = { (const ElfW(Sym) *)symbols, (const char *)names };
    question->instrumented = symbols && names && (imports_hook(&imports, plt, plt_size) || imports_hook(&imports, all, all_size));
    return 1;
}

static void each_module(int (*visit)(struct dl_phdr_info *, size_t, void *), void *context)
{
    int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    *(void **)&iterate = rf_find_real("dl_iterate_phdr");
    iterate(visit, context);
}

bool rf_from_uninstrumented(uint32_t note)
{
    uintptr_t pcs[2];
    if (rf_note_stack(note, pcs, 2) < 2 || pcs[0] < (uintptr_t)__ehdr_start || pcs[0] >= (uintptr_t)_end)
        return false; /* a hook's own access: instrumented */
    struct question question = { .pc = pcs[1] - 1 };
    each_module(look_at, &question);
    return question.found && !question.instrumented;
}

struct search {
    uintptr_t pc;
    struct rf_module_code code;
};

static int search_in(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        struct rf_module_code part = { info->dlpi_addr + header->p_vaddr, info->dlpi_addr + header->p_vaddr + header->p_memsz };
        if (header->p_type == PT_LOAD && rf_code_has(&part, search->pc))
            search->code = part;
    }
    return search->code.to != 0;
}

struct rf_module_code rf_code_with(uintptr_t pc)
{
    struct search search = { .pc = pc };
    each_module(search_in, &search);
    return search.code;
}
