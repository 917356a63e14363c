/* Calls of hot hooks, made to reach copies of them nearby.
 *
 * A call through the PLT costs a second, indirect jump, and hooks that serve all modules must load what could be constants. So the
 * templates of guest/hooks.S are copied to within 2 GB of each module that calls hooks, and its calls are changed to reach them.
 *
 * 1. A place is changed only if it holds a direct call or jump whose target is exactly a PLT entry of a hook in the same module, or an
 *    indirect one through the hook's own slot of the global offset table. A PLT entry of a hook is code that jumps through the hook's
 *    slot, and a hook's slot is one with a relocation of the hook's name that is bound, or would be, to ours.
 *    That it is an instruction, and not a part of another one that looks like it, is shown by what comes right before: one of the
 *    instructions that nearly always stand before calls. Where there is none, by a walk from instruction to instruction
 *    (guest/instruction.h) from the last place known to begin one: behind a call that was changed, or a function of the module's
 *    unwind table.
 * 2. What is not changed still works: it calls the hook through the PLT. So every doubt ends in leaving things as they are.
 * 3. No page is ever writable and executable: code is changed through /proc/self/mem, and the copies are written before they become
 *    executable. Without /proc, the code's pages are writable for a moment in which, as there is only one thread, nobody runs them.
 * 4. To look at a module again does no harm: calls that were changed do not lead to the PLT any more. So modules are forgotten
 *    whenever one was unloaded, since another may take its place; but not those that could not be changed.
 * 5. Code is changed only while nobody runs it. At the start there is one thread, and it is here. Later each instrumented module calls
 *    __tsan_init from its first constructor, which comes here before the module has run anything but resolvers, on this thread, and
 *    while the loader keeps other threads from loading; so whatever is new and calls hooks has not begun to run. Other threads get to
 *    it only after its constructors or through them, and cannot have fetched the old bytes: a page that is written gets a new place
 *    in memory, for which the kernel first interrupts all cores that know the old one.
 */
#include "guest/near.h"

#include <dlfcn.h>
#include <emmintrin.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>

#include "guest/hot.h"
#include "guest/instruction.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/options.h"
#include "guest/planes.h"
#include "guest/system.h"
#include "guest/tap.h"

/* guest/hooks.S */
extern const char rf_near_begin[], rf_near_end[], rf_near_names[];
void rf_slow_access(void);
#define RF_PUT_TLS 0x7a5a0000u
#define RF_PUT_SLOW 0x7a5a7a5a7a5a0001u

#define PAGE ((uintptr_t)4096)
#define REACH ((uintptr_t)0x7fff0000)
#define NO_HOOK UINT32_MAX

/* A hook is named by the offset of its template. */
struct entry {
    uintptr_t at; /* where the PLT entry begins, or the slot lies; 0: free */
    uint32_t hook;
    bool lazy; /* of slots: the PLT jumps through it */
};

/* An open hash table. Modules import some 40 hooks at most, each with few entries. */
#define TABLE 512u
struct table {
    struct entry entries[TABLE];
    unsigned count;
    uintptr_t low, high;
};

struct module {
    uintptr_t base, low, high; /* all it has mapped */
    const ElfW(Phdr) *headers;
    unsigned header_count;
    bool left; /* as it was, though it calls hooks */
};

struct block {
    uintptr_t at;
    struct block *next;
};

/* All of this is written and read by who holds the lock: the process number of the holder, so that the child of a fork that came at a
 * bad time sees that nobody holds it. */
static uint32_t lock;
static struct block *blocks;
static struct table slots, stubs;
static struct module *known, ours; /* those that were looked at, and this library */
static unsigned known_count, known_room;
static unsigned long long seen_unloads;
/* How many modules had ever been loaded when all were looked at. Read without the lock too: a stale value costs another look. */
static unsigned long long seen_loads;

static bool same_text(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static uint32_t hook_named(const char *name)
{
    for (const char *at = rf_near_names;;) {
        uint32_t offset;
        __builtin_memcpy(&offset, at, sizeof offset);
        at += sizeof offset;
        if (offset == NO_HOOK || same_text(at, name))
            return offset;
        while (*at++)
            ;
    }
}

static unsigned table_place(uintptr_t at)
{
    return (unsigned)((at * 0x9e3779b97f4a7c15u) >> 32) % TABLE;
}

static void table_clear(struct table *table)
{
    if (table->count)
        __builtin_memset(table->entries, 0, sizeof table->entries);
    table->count = 0;
    table->low = UINTPTR_MAX;
    table->high = 0;
}

static const struct entry *table_find(const struct table *table, uintptr_t at)
{
    if (at < table->low || at > table->high)
        return NULL;
    for (unsigned i = table_place(at); table->entries[i].at; i = (i + 1) % TABLE)
        if (table->entries[i].at == at)
            return &table->entries[i];
    return NULL;
}

static void table_add(struct table *table, uintptr_t at, uint32_t hook, bool lazy)
{
    if (table->count >= TABLE / 2 || table_find(table, at))
        return;
    unsigned i = table_place(at);
    while (table->entries[i].at)
        i = (i + 1) % TABLE;
    table->entries[i] = (struct entry){ at, hook, lazy };
    table->count++;
    table->low = at < table->low ? at : table->low;
    table->high = at > table->high ? at : table->high;
}

/* -- what a module imports ------------------------------------------------------------------------------------------------------ */

static bool inside(const struct module *module, uintptr_t at, size_t size)
{
    return at >= module->low && at < module->high && size <= module->high - at;
}

/* Whether a slot with this content leads to our hook of that name. A slot that was not bound yet leads back into its module; then the
 * program and what it was loaded with decide: they come first for every module. */
static bool leads_here(const struct module *module, uintptr_t content, const char *name)
{
    return inside(&ours, inside(module, content, 1) ? (uintptr_t)dlsym(RTLD_DEFAULT, name) : content, 1);
}

static void find_slots_of(const struct module *module, const ElfW(Rela) *from, size_t count, const ElfW(Sym) *symbols,
                          const char *names)
{
    for (; count; from++, count--) {
        unsigned type = ELF64_R_TYPE(from->r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
            continue;
        const char *name = names + symbols[ELF64_R_SYM(from->r_info)].st_name;
        if (name[0] != '_' || name[1] != '_' || name[2] != 't' || name[3] != 's')
            continue;
        uint32_t hook = hook_named(name);
        uintptr_t slot = module->base + from->r_offset;
        if (hook != NO_HOOK && inside(module, slot, sizeof(uintptr_t)) && leads_here(module, *(const uintptr_t *)slot, name))
            table_add(&slots, slot, hook, type == R_X86_64_JUMP_SLOT);
    }
}

/* glibc has added the base to the addresses already, except where it could not write. */
static uintptr_t dynamic_address(const struct module *module, uintptr_t value)
{
    return value < module->base ? value + module->base : value;
}

/* Fills `slots`; false if there is nothing to do. */
static bool find_slots(const struct module *module)
{
    const ElfW(Dyn) *dynamic = NULL;
    for (unsigned i = 0; i < module->header_count; i++) {
        const ElfW(Phdr) *header = &module->headers[i];
        if (header->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(module->base + header->p_vaddr);
        if (header->p_type == PT_LOAD && (header->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
            return false;
    }
    uintptr_t plt = 0, all = 0, symbols = 0, names = 0;
    size_t plt_size = 0, all_size = 0, relative = 0;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_JMPREL: plt = dynamic_address(module, value); break;
        case DT_PLTRELSZ: plt_size = value; break;
        case DT_RELA: all = dynamic_address(module, value); break;
        case DT_RELASZ: all_size = value; break;
        case DT_RELACOUNT: relative = value; break;
        case DT_SYMTAB: symbols = dynamic_address(module, value); break;
        case DT_STRTAB: names = dynamic_address(module, value); break;
        case DT_TEXTREL: return false;
        case DT_FLAGS:
            if (value & DF_TEXTREL)
                return false;
            break;
        }
    }
    table_clear(&slots);
    if (!inside(module, symbols, 1) || !inside(module, names, 1))
        return false;
    if (plt && inside(module, plt, plt_size))
        find_slots_of(module, (const ElfW(Rela) *)plt, plt_size / sizeof(ElfW(Rela)), (const ElfW(Sym) *)symbols, (const char *)names);
    relative *= sizeof(ElfW(Rela));
    if (all && relative <= all_size && inside(module, all, all_size))
        find_slots_of(module, (const ElfW(Rela) *)(all + relative), (all_size - relative) / sizeof(ElfW(Rela)),
                      (const ElfW(Sym) *)symbols, (const char *)names);
    return slots.count > 0;
}

static int32_t displacement(const uint8_t *at)
{
    int32_t value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}

/* A jump through a hook's slot at `at`: a call to it, or to the prefixes before it, reaches the hook. */
static void found_jump(const uint8_t *begin, const uint8_t *at)
{
    const struct entry *slot = table_find(&slots, (uintptr_t)at + 6 + (uintptr_t)(intptr_t)displacement(at + 2));
    if (!slot)
        return;
    static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
    for (unsigned bnd = 0; bnd < 2; bnd++) {
        if (bnd && (at == begin || *--at != 0xf2))
            break;
        table_add(&stubs, (uintptr_t)at, slot->hook, false);
        if (at - begin >= 4 && __builtin_memcmp(at - 4, endbr64, 4) == 0)
            table_add(&stubs, (uintptr_t)at - 4, slot->hook, false);
    }
}

/* Looks for `jmp *slot(%rip)` at every byte. One that is found inside another instruction does no harm: nothing calls it. */
static void find_stubs(const uint8_t *begin, const uint8_t *end)
{
    const __m128i jump = _mm_set1_epi8((char)0xff), rip = _mm_set1_epi8(0x25);
    const uint8_t *at = begin;
    for (; end - at >= 17 + 6; at += 16) {
        __m128i first = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)at), jump);
        __m128i second = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + 1)), rip);
        for (int hits = _mm_movemask_epi8(_mm_and_si128(first, second)); hits; hits &= hits - 1)
            found_jump(begin, at + __builtin_ctz((unsigned)hits));
    }
    for (; end - at >= 6; at++)
        if (at[0] == 0xff && at[1] == 0x25)
            found_jump(begin, at);
}

/* -- the copies ----------------------------------------------------------------------------------------------------------------- */

static size_t block_size(void)
{
    return ((size_t)(rf_near_end - rf_near_begin) + PAGE - 1) & ~(PAGE - 1);
}

/* Puts the constants of this process into a copy of the templates. */
static void fill_block(uint8_t *to)
{
    size_t size = (size_t)(rf_near_end - rf_near_begin);
    __builtin_memcpy(to, rf_near_begin, size);
    uint32_t offset = (uint32_t)((uintptr_t)&rf_hot - (uintptr_t)__builtin_thread_pointer());
    for (size_t i = 0; i + 4 <= size; i++) {
        uint64_t word = 0;
        __builtin_memcpy(&word, to + i, i + 8 <= size ? 8 : 4);
        if (word == RF_PUT_SLOW) {
            word = (uintptr_t)&rf_slow_access;
            __builtin_memcpy(to + i, &word, 8);
            i += 7;
        } else if ((uint32_t)word - RF_PUT_TLS < sizeof(struct rf_hot)) {
            uint32_t half = (uint32_t)word - RF_PUT_TLS + offset;
            __builtin_memcpy(to + i, &half, 4);
            i += 3;
        }
    }
    if (rf_tap)
        rf_tap_hooks(to);
}

static bool reaches(uintptr_t at, uintptr_t low, uintptr_t high)
{
    return (at >= high ? at + block_size() - low : high - at) < REACH;
}

static struct block *make_block(uintptr_t at)
{
    size_t size = block_size();
    if (at >= (uintptr_t)1 << 47 || rf_planes_overlap(at, size))
        return NULL;
    long got = RF_SYSCALL(SYS_mmap, at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if ((uintptr_t)got != at) {
        if (got > 0) /* a kernel that knows no MAP_FIXED_NOREPLACE */
            RF_SYSCALL(SYS_munmap, got, size);
        return NULL;
    }
    fill_block((uint8_t *)at);
    if (RF_SYSCALL(SYS_mprotect, at, size, PROT_READ | PROT_EXEC) != 0) {
        RF_SYSCALL(SYS_munmap, at, size);
        return NULL;
    }
    struct block *block = rf_take(sizeof *block);
    *block = (struct block){ at, blocks };
    return blocks = block;
}

/* Copies that all code from low to high can call. New ones lie below the module if possible: the heap grows above a program. */
static struct block *block_near(uintptr_t low, uintptr_t high)
{
    for (struct block *block = blocks; block; block = block->next)
        if (reaches(block->at, low, high))
            return block;
    low &= ~(PAGE - 1);
    high = (high + PAGE - 1) & ~(PAGE - 1);
    for (uintptr_t away = block_size(); low > away && reaches(low - away, low, high); away += away) {
        struct block *block = make_block(low - away);
        if (block)
            return block;
    }
    for (uintptr_t away = 0x40000000; away >= PAGE; away /= 2) {
        struct block *block = reaches(high + away, low, high) ? make_block(high + away) : NULL;
        if (block)
            return block;
    }
    return NULL;
}

/* -- changing code -------------------------------------------------------------------------------------------------------------- */

/* Changes are gathered: `bytes` is what shall stand from `begin` on, `length` of them so far. */
static struct {
    uint8_t bytes[16 * 4096];
    const uint8_t *begin;
    size_t length;
    int fd; /* /proc/self/mem; -1: not opened */
    bool failed;
} change;

static bool write_through_pages(const uint8_t *at, const uint8_t *bytes, size_t length)
{
    if (!__libc_single_threaded)
        return false;
    uintptr_t low = (uintptr_t)at & ~(PAGE - 1), high = ((uintptr_t)at + length + PAGE - 1) & ~(PAGE - 1);
    uint64_t all = ~(uint64_t)0, before;
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all); /* a handler might run what is not executable */
    bool done = RF_SYSCALL(SYS_mprotect, low, high - low, PROT_READ | PROT_WRITE) == 0;
    if (done)
        __builtin_memcpy((uint8_t *)(uintptr_t)at, bytes, length);
    if (RF_SYSCALL(SYS_mprotect, low, high - low, PROT_READ | PROT_EXEC) != 0)
        rf_die("the kernel does not let code be executable again; use patch_calls=0");
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    return done;
}

static void change_write(void)
{
    if (!change.length || change.failed)
        return;
    if (change.fd < 0)
        change.fd = (int)RF_SYSCALL(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (change.fd < 0 || RF_SYSCALL(SYS_pwrite64, change.fd, change.bytes, change.length, change.begin) != (long)change.length)
        change.failed = !write_through_pages(change.begin, change.bytes, change.length);
    change.length = 0;
}

/* Places come in ascending order. One write serves neighbouring pages, but no page without a change is written. */
static void change_add(const uint8_t *at, const uint8_t *bytes, size_t length)
{
    if (change.length) {
        const uint8_t *last = change.begin + change.length - 1;
        if ((size_t)(at + length - change.begin) > sizeof change.bytes || ((uintptr_t)at & ~(PAGE - 1)) > ((uintptr_t)last & ~(PAGE - 1)) + PAGE)
            change_write();
    }
    if (!change.length)
        change.begin = at;
    size_t offset = (size_t)(at - change.begin);
    __builtin_memcpy(change.bytes + change.length, change.begin + change.length, offset - change.length);
    __builtin_memcpy(change.bytes + offset, bytes, length);
    change.length = offset + length;
}

/* Where functions begin, from the sorted table of the unwind information: pairs (function, description), relative to it. */
struct starts {
    uintptr_t origin;
    const int32_t *at, *end;
};

static struct starts function_starts(const struct module *module)
{
    for (unsigned i = 0; i < module->header_count; i++) {
        const ElfW(Phdr) *header = &module->headers[i];
        uintptr_t origin = module->base + header->p_vaddr;
        if (header->p_type != PT_GNU_EH_FRAME || header->p_memsz < 12 || !inside(module, origin, header->p_memsz))
            continue;
        /* version, then the forms of: a pointer (4 bytes), the count (4 bytes, unsigned), the table (4 bytes, relative) */
        const uint8_t *form = (const uint8_t *)origin;
        uint32_t count = (uint32_t)displacement(form + 8);
        if (form[0] != 1 || (form[1] & 15) != 11 || form[2] != 3 || form[3] != 0x3b || count > (header->p_memsz - 12) / 8)
            continue;
        return (struct starts){ origin, (const int32_t *)(origin + 12), (const int32_t *)(origin + 12) + 2 * (size_t)count };
    }
    return (struct starts){ 0, NULL, NULL };
}

/* The changed form of the call or jump with its opcode at `at`, if it leads to a hook; returns its length, 0 if it does not. */
static size_t changed_form(const uint8_t *at, const struct block *block, uint8_t *to)
{
    bool direct = *at != 0xff, jump = !direct && at[1] == 0x25;
    const uint8_t *next = at + (direct ? 5 : 6);
    uintptr_t target = (uintptr_t)next + (uintptr_t)(intptr_t)displacement(next - 4);
    const struct entry *found = table_find(direct ? &stubs : &slots, target);
    if (!found || (jump && found->lazy)) /* that is the PLT */
        return 0;
    /* The direct form is a byte shorter: a prefix without meaning goes before a call, so that it returns to where it did. */
    int32_t distance = (int32_t)(block->at + found->hook - (uintptr_t)(jump ? next - 1 : next));
    to[0] = direct ? *at : jump ? 0xe9 : 0x67;
    to[1] = 0xe8;
    to[5] = 0x90;
    __builtin_memcpy(direct || jump ? to + 1 : to + 2, &distance, sizeof distance);
    return (size_t)(next - at);
}

/* Whether a move, a sum or a comparison with a prefix for wide registers ends at `end`. If `end` lay inside an instruction, such a
 * one would have to be made of parts of others, by chance, and lead to a hook by chance too. */
static bool follows_common(const uint8_t *begin, const uint8_t *end)
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
struct walk {
    const uint8_t *begin, *end;
    const uint8_t *sure; /* an instruction begins here; what is before was looked at */
    struct starts starts;
    const struct block *block;
    unsigned changed;
};

/* Whether the walk comes upon an instruction with its opcode at `at`. */
static bool walk_to(struct walk *walk, const uint8_t *at)
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
static void walk_consider(struct walk *walk, const uint8_t *at)
{
    /* A segment's last page can be read whole, but nothing behind it; the look at an instruction may take 15 bytes. */
    const uint8_t *readable = (const uint8_t *)(((uintptr_t)walk->end + PAGE - 1) & ~(PAGE - 1));
    if (at < walk->sure || (*at == 0xff && at[1] != 0x15 && at[1] != 0x25) || readable - at < 16)
        return;
    uint8_t form[6];
    size_t length = changed_form(at, walk->block, form);
    if (!length || (!follows_common(walk->begin, at) && !walk_to(walk, at)))
        return;
    walk->sure = at + length;
    change_add(at, form, length);
    walk->changed++;
}

static unsigned change_calls(const uint8_t *begin, const uint8_t *end, struct starts starts, const struct block *block)
{
    struct walk walk = { begin, end, begin, starts, block, 0 };
    const __m128i last_bit = _mm_set1_epi8(1), call_or_jump = _mm_set1_epi8((char)0xe9), indirect = _mm_set1_epi8((char)0xff);
    bool indirect_too = false;
    for (unsigned i = 0; i < TABLE; i++)
        indirect_too |= slots.entries[i].at && !slots.entries[i].lazy;
    const uint8_t *at = begin;
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        __m128i found = _mm_cmpeq_epi8(_mm_or_si128(bytes, last_bit), call_or_jump);
        if (indirect_too)
            found = _mm_or_si128(found, _mm_cmpeq_epi8(bytes, indirect));
        for (int hits = _mm_movemask_epi8(found); hits; hits &= hits - 1)
            walk_consider(&walk, at + __builtin_ctz((unsigned)hits));
    }
    for (; at < end; at++)
        if ((*at & 0xfe) == 0xe8 || *at == 0xff)
            walk_consider(&walk, at);
    return walk.changed;
}

/* False if the module was left as it is, or some of it. */
static bool change_module(const struct module *module)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    table_clear(&stubs);
    for (unsigned i = 0; i < module->header_count; i++) {
        const ElfW(Phdr) *header = &module->headers[i];
        if (header->p_type != PT_LOAD || (header->p_flags & (PF_R | PF_W | PF_X)) != (PF_R | PF_X))
            continue;
        uintptr_t begin = module->base + header->p_vaddr, end = begin + header->p_filesz;
        find_stubs((const uint8_t *)begin, (const uint8_t *)end);
        low = begin < low ? begin : low;
        high = end > high ? end : high;
    }
    struct block *block = low < high ? block_near(low, high) : NULL;
    if (!block)
        return false;
    unsigned changed = 0;
    change.failed = false;
    for (unsigned i = 0; i < module->header_count; i++) {
        const ElfW(Phdr) *header = &module->headers[i];
        if (header->p_type != PT_LOAD || (header->p_flags & (PF_R | PF_W | PF_X)) != (PF_R | PF_X))
            continue;
        uintptr_t begin = module->base + header->p_vaddr;
        changed += change_calls((const uint8_t *)begin, (const uint8_t *)begin + header->p_filesz, function_starts(module), block);
        change_write();
    }
    if (rf_options.verbosity)
        rf_say("%u calls of hooks in the module at 0x%zx reach copies at 0x%zx%s", changed, (size_t)module->base, (size_t)block->at,
               change.failed ? ", except some that could not be changed" : "");
    return !change.failed;
}

/* -- modules -------------------------------------------------------------------------------------------------------------------- */

static bool is_known(uintptr_t address)
{
    for (unsigned i = 0; i < known_count; i++)
        if (inside(&known[i], address, 1))
            return true;
    return false;
}

static void remember(const struct module *module)
{
    if (known_count == known_room) {
        unsigned room = known_room ? 2 * known_room : 32;
        struct module *longer = rf_take(room * sizeof *longer);
        for (unsigned i = 0; i < known_count; i++)
            longer[i] = known[i];
        if (known_room)
            rf_give(known, known_room * sizeof *known);
        known = longer;
        known_room = room;
    }
    known[known_count++] = *module;
}

static void forget(void)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < known_count; i++)
        if (known[i].left)
            known[kept++] = known[i];
    known_count = kept;
}

/* Remembers the modules that are new, from *first on. */
static int gather(struct dl_phdr_info *info, size_t size, void *first)
{
    (void)size;
    if (info->dlpi_subs != seen_unloads) {
        forget();
        *(unsigned *)first = known_count;
        seen_unloads = info->dlpi_subs;
    }
    __atomic_store_n(&seen_loads, info->dlpi_adds, __ATOMIC_RELAXED);
    struct module module = { info->dlpi_addr, UINTPTR_MAX, 0, info->dlpi_phdr, info->dlpi_phnum, false };
    for (unsigned i = 0; i < module.header_count; i++) {
        const ElfW(Phdr) *header = &module.headers[i];
        if (header->p_type != PT_LOAD)
            continue;
        uintptr_t begin = module.base + header->p_vaddr, end = begin + header->p_memsz;
        module.low = begin < module.low ? begin : module.low;
        module.high = end > module.high ? end : module.high;
    }
    if (module.high <= module.low)
        return 0;
    if (inside(&module, (uintptr_t)rf_near_begin, 1))
        ours = module;
    if (!is_known(module.low))
        remember(&module);
    return 0;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

static int each_module(int (*visit)(struct dl_phdr_info *, size_t, void *), void *argument)
{
    static int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (!iterate)
        *(void **)&iterate = rf_find_real("dl_iterate_phdr");
    return iterate(visit, argument);
}

/* The loader's lock, under which it shows its list, is not held for long. It is safe to use what it showed afterwards: either there is
 * no other thread that could unload it, or we are in a constructor, which keeps others from loading and unloading. */
static void look(void)
{
    uint32_t here = (uint32_t)RF_SYSCALL(SYS_getpid, 0);
    for (uint32_t holder = 0; !__atomic_compare_exchange_n(&lock, &holder, here, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);)
        if (holder == here) {
            rf_yield();
            holder = 0;
        }
    unsigned first = known_count;
    each_module(gather, &first);
    change.fd = -1;
    for (; first < known_count; first++)
        if (find_slots(&known[first]))
            known[first].left = !change_module(&known[first]);
    if (change.fd >= 0)
        RF_SYSCALL(SYS_close, change.fd);
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void rf_module_loaded(void)
{
    if (rf_tap)
        rf_tap->modules();
    if (rf_options.patch_calls && __libc_single_threaded)
        look();
}

void rf_module_begins(void)
{
    unsigned long long loads;
    if (!rf_options.patch_calls)
        return;
    each_module(count_loads, &loads);
    if (loads != __atomic_load_n(&seen_loads, __ATOMIC_RELAXED))
        look();
}
