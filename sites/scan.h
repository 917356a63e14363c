/* Where a module calls hooks: every call and jump of its code that leads to a function named __tsan_..., through its PLT or its global
 * offset table. For the runtime, which changes such calls, and for whoever lists them from a file.
 *
 * 1. The module lies in memory as the loader would put it. Nothing here needs libc, or takes memory.
 * 2. A place is a call of a hook only if it holds a direct call or jump whose target is exactly a PLT entry of a hook in the same
 *    module, or an indirect one through the hook's own slot of the global offset table. A PLT entry of a hook is code that jumps
 *    through the hook's slot, and a hook's slot is one with a relocation of the hook's name.
 * 3. That it is an instruction, and not a part of another one that looks like it, is shown by what comes right before: one of the
 *    instructions that nearly always stand before calls. Where there is none, by a walk from instruction to instruction
 *    (sites/instruction.h) from the last place known to begin one: behind a call that was found, or a function of the module's
 *    unwind table. What is in doubt is not found.
 */
#ifndef RF_SITES_SCAN_H
#define RF_SITES_SCAN_H

#include <emmintrin.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sites/instruction.h"

#define RF_NO_HOOK UINT32_MAX

struct rf_image {
    uintptr_t base, low, high; /* what is added to addresses of the file; all it has mapped */
    const ElfW(Phdr) *headers;
    unsigned header_count;
};

struct rf_scan_entry {
    uintptr_t at; /* where the PLT entry begins, or the slot lies; 0: free */
    uint32_t hook;
    bool lazy; /* of slots: the PLT jumps through it */
};

/* An open hash table. A module imports some 100 hooks at most, each with few entries. */
#define RF_SCAN_TABLE 1024u
struct rf_scan_table {
    struct rf_scan_entry entries[RF_SCAN_TABLE];
    unsigned count;
    uintptr_t low, high;
};

struct rf_scan {
    struct rf_image image;
    /* The number of a hook that is looked for, RF_NO_HOOK for others. `slot` is where its address is, or will be. */
    uint32_t (*hook)(void *context, const char *name, const uintptr_t *slot);
    void *context;
    bool any; /* it is asked for all names, not only for those that begin as a hook's do */
    struct rf_scan_table slots, stubs;
};

/* A call or jump to a hook. */
struct rf_hook_call {
    const uint8_t *at; /* its opcode; prefixes may stand before it */
    uint8_t length;    /* from there on: 5, or 6 for an indirect one */
    bool jump;         /* it does not return here */
    uint32_t hook;
};

static inline bool rf_image_has(const struct rf_image *image, uintptr_t at, size_t size)
{
    return at >= image->low && at < image->high && size <= image->high - at;
}

static inline unsigned rf_scan_place(uintptr_t at)
{
    return (unsigned)((at * 0x9e3779b97f4a7c15u) >> 32) % RF_SCAN_TABLE;
}

static inline void rf_scan_clear(struct rf_scan_table *table)
{
    if (table->count)
        __builtin_memset(table->entries, 0, sizeof table->entries);
    table->count = 0;
    table->low = UINTPTR_MAX;
    table->high = 0;
}

static inline const struct rf_scan_entry *rf_scan_find(const struct rf_scan_table *table, uintptr_t at)
{
    if (at < table->low || at > table->high)
        return NULL;
    for (unsigned i = rf_scan_place(at); table->entries[i].at; i = (i + 1) % RF_SCAN_TABLE)
        if (table->entries[i].at == at)
            return &table->entries[i];
    return NULL;
}

static inline void rf_scan_add(struct rf_scan_table *table, uintptr_t at, uint32_t hook, bool lazy)
{
    if (table->count >= RF_SCAN_TABLE / 2 || rf_scan_find(table, at))
        return;
    unsigned i = rf_scan_place(at);
    while (table->entries[i].at)
        i = (i + 1) % RF_SCAN_TABLE;
    table->entries[i] = (struct rf_scan_entry){ at, hook, lazy };
    table->count++;
    table->low = at < table->low ? at : table->low;
    table->high = at > table->high ? at : table->high;
}

/* -- what a module imports ------------------------------------------------------------------------------------------------------ */

static inline void rf_scan_slots_of(struct rf_scan *scan, const ElfW(Rela) *from, size_t count, const ElfW(Sym) *symbols,
                                    const char *names)
{
    for (; count; from++, count--) {
        unsigned type = ELF64_R_TYPE(from->r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
            continue;
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(from->r_info)];
        if (!rf_image_has(&scan->image, (uintptr_t)symbol, sizeof *symbol))
            continue;
        const char *name = names + symbol->st_name;
        if (!rf_image_has(&scan->image, (uintptr_t)name, 8) ||
            (!scan->any && (name[0] != '_' || name[1] != '_' || name[2] != 't' || name[3] != 's')))
            continue;
        uintptr_t slot = scan->image.base + from->r_offset;
        if (!rf_image_has(&scan->image, slot, sizeof(uintptr_t)))
            continue;
        uint32_t hook = scan->hook(scan->context, name, (const uintptr_t *)slot);
        if (hook != RF_NO_HOOK)
            rf_scan_add(&scan->slots, slot, hook, type == R_X86_64_JUMP_SLOT);
    }
}

/* glibc has added the base to the addresses already, except where it could not write. In a file nobody has. */
static inline uintptr_t rf_scan_dynamic(const struct rf_image *image, uintptr_t value)
{
    return value < image->base ? value + image->base : value;
}

/* Which slots are those of hooks; false if there are none, or the module changes its own code. */
static inline bool rf_scan_slots(struct rf_scan *scan)
{
    const struct rf_image *module = &scan->image;
    const ElfW(Dyn) *dynamic = NULL;
    for (unsigned i = 0; i < module->header_count; i++) {
        const ElfW(Phdr) *header = &module->headers[i];
        if (header->p_type == PT_DYNAMIC)
            dynamic = rf_image_has(module, module->base + header->p_vaddr, sizeof *dynamic)
                          ? (const ElfW(Dyn) *)(module->base + header->p_vaddr)
                          : NULL;
        if (header->p_type == PT_LOAD && (header->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
            return false;
    }
    uintptr_t plt = 0, all = 0, symbols = 0, names = 0;
    size_t plt_size = 0, all_size = 0, relative = 0;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_JMPREL: plt = rf_scan_dynamic(module, value); break;
        case DT_PLTRELSZ: plt_size = value; break;
        case DT_RELA: all = rf_scan_dynamic(module, value); break;
        case DT_RELASZ: all_size = value; break;
        case DT_RELACOUNT: relative = value; break;
        case DT_SYMTAB: symbols = rf_scan_dynamic(module, value); break;
        case DT_STRTAB: names = rf_scan_dynamic(module, value); break;
        case DT_TEXTREL: return false;
        case DT_FLAGS:
            if (value & DF_TEXTREL)
                return false;
            break;
        }
    }
    rf_scan_clear(&scan->slots);
    if (!rf_image_has(module, symbols, 1) || !rf_image_has(module, names, 1))
        return false;
    if (plt && rf_image_has(module, plt, plt_size))
        rf_scan_slots_of(scan, (const ElfW(Rela) *)plt, plt_size / sizeof(ElfW(Rela)), (const ElfW(Sym) *)symbols,
                         (const char *)names);
    relative *= sizeof(ElfW(Rela));
    if (all && relative <= all_size && rf_image_has(module, all, all_size))
        rf_scan_slots_of(scan, (const ElfW(Rela) *)(all + relative), (all_size - relative) / sizeof(ElfW(Rela)),
                         (const ElfW(Sym) *)symbols, (const char *)names);
    return scan->slots.count > 0;
}

static inline int32_t rf_scan_displacement(const uint8_t *at)
{
    int32_t value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}

/* A jump through a hook's slot at `at`: a call to it, or to the prefixes before it, reaches the hook. */
static inline void rf_scan_jump(struct rf_scan *scan, const uint8_t *begin, const uint8_t *at)
{
    uintptr_t target = (uintptr_t)at + 6 + (uintptr_t)(intptr_t)rf_scan_displacement(at + 2);
    const struct rf_scan_entry *slot = rf_scan_find(&scan->slots, target);
    if (!slot)
        return;
    static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
    for (unsigned bnd = 0; bnd < 2; bnd++) {
        if (bnd && (at == begin || *--at != 0xf2))
            break;
        rf_scan_add(&scan->stubs, (uintptr_t)at, slot->hook, false);
        if (at - begin >= 4 && __builtin_memcmp(at - 4, endbr64, 4) == 0)
            rf_scan_add(&scan->stubs, (uintptr_t)at - 4, slot->hook, false);
    }
}

/* Looks for `jmp *slot(%rip)` at every byte. One that is found inside another instruction does no harm: nothing calls it. */
static inline void rf_scan_stubs_of(struct rf_scan *scan, const uint8_t *begin, const uint8_t *end)
{
    const __m128i jump = _mm_set1_epi8((char)0xff), rip = _mm_set1_epi8(0x25);
    const uint8_t *at = begin;
    for (; end - at >= 17 + 6; at += 16) {
        __m128i first = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)at), jump);
        __m128i second = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + 1)), rip);
        for (int hits = _mm_movemask_epi8(_mm_and_si128(first, second)); hits; hits &= hits - 1)
            rf_scan_jump(scan, begin, at + __builtin_ctz((unsigned)hits));
    }
    for (; end - at >= 6; at++)
        if (at[0] == 0xff && at[1] == 0x25)
            rf_scan_jump(scan, begin, at);
}

static inline bool rf_scan_is_code(const ElfW(Phdr) *header)
{
    return header->p_type == PT_LOAD && (header->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_X);
}

/* The PLT entries of the hooks, after rf_scan_slots(). */
static inline void rf_scan_stubs(struct rf_scan *scan)
{
    rf_scan_clear(&scan->stubs);
    for (unsigned i = 0; i < scan->image.header_count; i++) {
        const ElfW(Phdr) *header = &scan->image.headers[i];
        const uint8_t *begin = (const uint8_t *)(scan->image.base + header->p_vaddr);
        if (rf_scan_is_code(header))
            rf_scan_stubs_of(scan, begin, begin + header->p_filesz);
    }
}

/* -- calls ---------------------------------------------------------------------------------------------------------------------- */

/* Where functions begin, from the sorted table of the unwind information: pairs (function, description), relative to it. */
struct rf_scan_starts {
    uintptr_t origin;
    const int32_t *at, *end;
};

static inline struct rf_scan_starts rf_scan_functions(const struct rf_image *module)
{
    for (unsigned i = 0; i < module->header_count; i++) {
        const ElfW(Phdr) *header = &module->headers[i];
        uintptr_t origin = module->base + header->p_vaddr;
        if (header->p_type != PT_GNU_EH_FRAME || header->p_memsz < 12 || !rf_image_has(module, origin, header->p_memsz))
            continue;
        /* version, then the forms of: a pointer (4 bytes), the count (4 bytes, unsigned), the table (4 bytes, relative) */
        const uint8_t *form = (const uint8_t *)origin;
        uint32_t count = (uint32_t)rf_scan_displacement(form + 8);
        if (form[0] != 1 || (form[1] & 15) != 11 || form[2] != 3 || form[3] != 0x3b || count > (header->p_memsz - 12) / 8)
            continue;
        return (struct rf_scan_starts){ origin, (const int32_t *)(origin + 12), (const int32_t *)(origin + 12) + 2 * (size_t)count };
    }
    return (struct rf_scan_starts){ 0, NULL, NULL };
}

/* The call or jump with its opcode at `at`, if it leads to a hook. */
static inline bool rf_scan_call_at(const struct rf_scan *scan, const uint8_t *at, struct rf_hook_call *call)
{
    bool direct = *at != 0xff, jump = direct ? *at == 0xe9 : at[1] == 0x25;
    const uint8_t *next = at + (direct ? 5 : 6);
    uintptr_t target = (uintptr_t)next + (uintptr_t)(intptr_t)rf_scan_displacement(next - 4);
    const struct rf_scan_entry *found = rf_scan_find(direct ? &scan->stubs : &scan->slots, target);
    if (!found || (!direct && jump && found->lazy)) /* that is the PLT */
        return false;
    *call = (struct rf_hook_call){ at, (uint8_t)(next - at), jump, found->hook };
    return true;
}

/* Whether a move, a sum or a comparison with a prefix for wide registers ends at `end`. If `end` lay inside an instruction, such a
 * one would have to be made of parts of others, by chance, and lead to a hook by chance too. */
static inline bool rf_scan_follows_common(const uint8_t *begin, const uint8_t *end)
{
    static const uint8_t common[] = { 0x8b, 0x89, 0x8d, 0x83, 0x01, 0x03, 0x29, 0x2b, 0x39, 0x3b, 0x85, 0xc7 };
    if (end - begin < 10)
        return false;
    for (const uint8_t *at = end - 3; at >= end - 9; at--) {
        if ((*at & 0xf0) != 0x40)
            continue;
        for (unsigned i = 0; i < sizeof common; i++)
            if (at[1] == common[i] && rf_instruction_at(at).next == end)
                return true;
    }
    return false;
}

/* A look at all the code of a segment. */
struct rf_scan_walk {
    const struct rf_scan *scan;
    const uint8_t *begin, *end;
    const uint8_t *sure; /* an instruction begins here; what is before was looked at */
    struct rf_scan_starts starts;
    void (*found)(void *context, const struct rf_hook_call *call);
};

/* Whether the walk comes upon an instruction with its opcode at `at`. */
static inline bool rf_scan_walk_to(struct rf_scan_walk *walk, const uint8_t *at)
{
    const uint8_t *from = walk->sure;
    for (; walk->starts.at < walk->starts.end; walk->starts.at += 2) {
        const uint8_t *start = (const uint8_t *)(walk->starts.origin + (uintptr_t)(intptr_t)*walk->starts.at);
        if (start > at)
            break;
        from = start > from ? start : from;
    }
    while (from <= at) {
        struct rf_instruction instruction = rf_instruction_at(from);
        if (instruction.opcode == at)
            return true;
        walk->sure = from = instruction.next;
    }
    return false;
}

/* There may be the opcode of a call or jump at `at`. */
static inline void rf_scan_consider(struct rf_scan_walk *walk, const uint8_t *at)
{
    /* A segment's last page can be read whole, but nothing behind it; the look at an instruction may take 15 bytes. */
    const uint8_t *readable = (const uint8_t *)(((uintptr_t)walk->end + 4095) & ~(uintptr_t)4095);
    if (at < walk->sure || (*at == 0xff && at[1] != 0x15 && at[1] != 0x25) || readable - at < 16)
        return;
    struct rf_hook_call call;
    if (!rf_scan_call_at(walk->scan, at, &call) || (!rf_scan_follows_common(walk->begin, at) && !rf_scan_walk_to(walk, at)))
        return;
    walk->sure = at + call.length;
    walk->found(walk->scan->context, &call);
}

static inline void rf_scan_calls_of(const struct rf_scan *scan, const uint8_t *begin, const uint8_t *end,
                                    struct rf_scan_starts starts, void (*found)(void *, const struct rf_hook_call *))
{
    struct rf_scan_walk walk = { scan, begin, end, begin, starts, found };
    const __m128i last_bit = _mm_set1_epi8(1), call_or_jump = _mm_set1_epi8((char)0xe9), indirect = _mm_set1_epi8((char)0xff);
    bool indirect_too = false;
    for (unsigned i = 0; i < RF_SCAN_TABLE; i++)
        indirect_too |= scan->slots.entries[i].at && !scan->slots.entries[i].lazy;
    const uint8_t *at = begin;
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        __m128i likely = _mm_cmpeq_epi8(_mm_or_si128(bytes, last_bit), call_or_jump);
        if (indirect_too)
            likely = _mm_or_si128(likely, _mm_cmpeq_epi8(bytes, indirect));
        for (int hits = _mm_movemask_epi8(likely); hits; hits &= hits - 1)
            rf_scan_consider(&walk, at + __builtin_ctz((unsigned)hits));
    }
    for (; at < end; at++)
        if ((*at & 0xfe) == 0xe8 || *at == 0xff)
            rf_scan_consider(&walk, at);
}

/* Tells all calls of hooks, in ascending order, after rf_scan_stubs(). */
static inline void rf_scan_calls(const struct rf_scan *scan, void (*found)(void *context, const struct rf_hook_call *call))
{
    struct rf_scan_starts starts = rf_scan_functions(&scan->image);
    for (unsigned i = 0; i < scan->image.header_count; i++) {
        const ElfW(Phdr) *header = &scan->image.headers[i];
        const uint8_t *begin = (const uint8_t *)(scan->image.base + header->p_vaddr);
        if (rf_scan_is_code(header))
            rf_scan_calls_of(scan, begin, begin + header->p_filesz, starts, found);
    }
}

#endif
