/* See guest/origins.h. */
#include "guest/origins.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "guest/memory.h"
#include "guest/system.h"
#include "guest/text.h"

#define MOST_MODULES 256u
#define ORIGINS ((size_t)1 << 14) /* a power of two; what does not fit is written each time */

bool rf_origins_on;

/* Each entry is written once, its last member last; read by all. */
static struct {
    uintptr_t low, high, base;
    const char *id;
} modules[MOST_MODULES];
static unsigned module_count;
static bool unknown_modules; /* there were more */

/* By the place behind the call. Atomic: who finds first that a place's blocks escape writes it to the file; everybody else goes on, as if
 * the block had come later by the time that takes. A block's note is the number of its place here, from 1 on. */
static struct {
    uintptr_t pc;
    bool escapes;
    bool told; /* it is in the file, or was when the list was made */
    bool ours; /* written by this process */
} origins[ORIGINS];

static const char *path;
static char letter;

void rf_origins_begin(const char *file, bool sleepers)
{
    path = file;
    letter = sleepers ? '!' : 'a';
    rf_origins_on = true;
}

void rf_origins_module(const struct rf_image *image, const char *id)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    size_t length = 1;
    for (unsigned i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t begin = image->base + header->p_vaddr;
        if (!rf_scan_is_code(header))
            continue;
        low = begin < low ? begin : low;
        high = begin + header->p_memsz > high ? begin + header->p_memsz : high;
    }
    for (unsigned i = 0; i < module_count; i++)
        if (modules[i].low == low && modules[i].high == high && rf_text_same(modules[i].id, id))
            return; /* told again after another was unloaded */
    if (module_count == MOST_MODULES) {
        __atomic_store_n(&unknown_modules, true, __ATOMIC_RELEASE);
        return;
    }
    while (id[length - 1])
        length++;
    char *copy = rf_take(length);
    __builtin_memcpy(copy, id, length);
    modules[module_count].low = low;
    modules[module_count].high = high;
    modules[module_count].base = image->base;
    modules[module_count].id = copy;
    __atomic_store_n(&module_count, module_count + 1, __ATOMIC_RELEASE);
}

/* The newest first: an older one may have been unloaded. */
static int module_of(uintptr_t pc)
{
    for (int i = (int)__atomic_load_n(&module_count, __ATOMIC_ACQUIRE) - 1; i >= 0; i--)
        if (pc - modules[i].low < modules[i].high - modules[i].low)
            return i;
    return -1;
}

/* The place's entry, ORIGINS if there is no room. */
static size_t entry_of(uintptr_t pc)
{
    size_t at = (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (ORIGINS - 1);
    for (unsigned looked = 0; looked < 64; looked++, at = (at + 1) & (ORIGINS - 1)) {
        uintptr_t there = __atomic_load_n(&origins[at].pc, __ATOMIC_RELAXED);
        if (there == pc || (!there && (__atomic_compare_exchange_n(&origins[at].pc, &there, pc, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                                       there == pc)))
            return at;
    }
    return ORIGINS;
}

uint32_t rf_origins_note(uintptr_t pc)
{
    size_t at = entry_of(pc);
    return at < ORIGINS ? (uint32_t)at + 1 : 0;
}

void rf_origins_known(uintptr_t pc)
{
    size_t at = entry_of(pc);
    if (at < ORIGINS)
        origins[at].escapes = origins[at].told = true;
}

static bool append(uintptr_t pc)
{
    char line[600];
    size_t length;
    if (pc == RF_ORIGIN_STACK || pc == RF_ORIGIN_ANY) {
        length = rf_format(line, sizeof line, "%c %s\n", letter, pc == RF_ORIGIN_STACK ? "stack" : "?");
    } else {
        int module = module_of(pc);
        if (module < 0)
            return true;
        length = rf_format(line, sizeof line, "%c %s+0x%zx\n", letter, modules[module].id,
                           (size_t)(pc - 1 - modules[module].base));
    }
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool good = fd >= 0 && RF_SYSCALL(SYS_write, fd, line, length) == (long)length;
    if (fd >= 0)
        RF_SYSCALL(SYS_close, fd);
    return good;
}

void rf_origins_escape(uintptr_t pc)
{
    if (pc != RF_ORIGIN_STACK && pc != RF_ORIGIN_ANY && module_of(pc) < 0) {
        if (!__atomic_load_n(&unknown_modules, __ATOMIC_ACQUIRE))
            return; /* a library */
        pc = RF_ORIGIN_ANY;
    }
    size_t at = entry_of(pc);
    if (at == ORIGINS) {
        append(pc);
        return;
    }
    if (__atomic_load_n(&origins[at].escapes, __ATOMIC_RELAXED) || __atomic_exchange_n(&origins[at].escapes, true, __ATOMIC_RELAXED))
        return;
    bool good = append(pc);
    origins[at].ours = true;
    __atomic_store_n(&origins[at].told, good, __ATOMIC_RELEASE);
}

void rf_origins_escape_note(uint32_t note)
{
    rf_origins_escape(note ? __atomic_load_n(&origins[note - 1].pc, __ATOMIC_RELAXED) : RF_ORIGIN_ANY);
}

void rf_origins_finish(bool lost)
{
    bool good = true;
    for (size_t at = 0; rf_origins_on && at < ORIGINS; at++)
        if (origins[at].escapes && (!origins[at].told || (lost && origins[at].ours)))
            good &= append(origins[at].pc);
    if (!good)
        rf_say("%s: could still not be written: what has escaped is not kept", path);
}
