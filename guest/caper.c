/* See guest/caper.h. */
#include "guest/caper.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/caper.h"
#include "guest/escape.h"
#include "guest/memory.h"
#include "guest/pair.h"
#include "guest/system.h"
#include "guest/tap.h"
#include "guest/threads.h"

bool rf_caper_on;

/* By the address behind the call. Written under the lock of guest/modules.c, each entry once, its pc last; read by all. */
struct site {
    uintptr_t pc;
    char *mark; /* in the file */
};

static struct {
    char *file;
    size_t size;
    struct site *sites;
    size_t capacity, count; /* a power of two; never more than half of it */
} caper;

static size_t slot_of(uintptr_t pc)
{
    size_t at = (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 24) & (caper.capacity - 1);
    for (;; at = (at + 1) & (caper.capacity - 1)) {
        uintptr_t there = __atomic_load_n(&caper.sites[at].pc, __ATOMIC_ACQUIRE);
        if (!there || there == pc)
            return at;
    }
}

static char *mark_of(uintptr_t pc)
{
    struct site *site = &caper.sites[slot_of(pc)];
    return __atomic_load_n(&site->pc, __ATOMIC_ACQUIRE) ? site->mark : NULL;
}

static void escaped(uintptr_t pc)
{
    char *mark = mark_of(pc);
    if (mark && __atomic_load_n(mark, __ATOMIC_RELAXED) != '+')
        __atomic_store_n(mark, '+', __ATOMIC_RELAXED);
}

/* ---- listening ---- */

static void hear_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    if (size && !rf_escape_filters(self, addr, size) && !rf_escape_own_stack(self, addr))
        escaped(pc);
    rf_escape_stores(addr, size, flags);
}

static void hear_sync(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc)
{
    (void)who, (void)op, (void)key, (void)pc;
    rf_escape_flush(self);
}

static void hear_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc)
{
    (void)self, (void)op, (void)addr, (void)size, (void)pc;
}

static void hear_end(struct rf_self *self)
{
    (void)self;
}

static void nothing(void)
{
}

static const struct rf_tap listening = { .alone = true,
                                         .access = hear_access,
                                         .sync = hear_sync,
                                         .memory = hear_memory,
                                         .end = hear_end,
                                         .modules = nothing,
                                         .fork_child = nothing };

/* ---- modules ---- */

static char *next_line(char *at)
{
    while (at < caper.file + caper.size && *at != '\n')
        at++;
    return at < caper.file + caper.size ? at + 1 : at;
}

/* The offset, if the line is of this module; UINT64_MAX otherwise. The line ends within the file. */
static uint64_t offset_in(const char *line, const char *end, const char *id)
{
    uint64_t offset = 0;
    const char *at = line + 2;
    if (end - line < 3 || (line[0] != '-' && line[0] != '+'))
        return UINT64_MAX;
    while (*id && at < end && *at == *id)
        at++, id++;
    if (*id || end - at < 4 || at[0] != '+' || at[1] != '0' || at[2] != 'x')
        return UINT64_MAX;
    for (at += 3; at < end && *at != ' ' && *at != '\n'; at++) {
        char c = (char)(*at | 32);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return UINT64_MAX;
        offset = offset << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return offset;
}

/* A module that is loaded at ever new places may fill the table: then its sites count as escaped, since they would not be seen. */
static void add_site(uintptr_t pc, char *mark)
{
    struct site *site = &caper.sites[slot_of(pc)];
    if (site->pc)
        return;
    if (2 * (caper.count + 1) > caper.capacity) {
        __atomic_store_n(mark, '+', __ATOMIC_RELAXED);
        return;
    }
    site->mark = mark;
    __atomic_store_n(&site->pc, pc, __ATOMIC_RELEASE);
    caper.count++;
}

void rf_caper_module(const struct rf_image *image, const char *name)
{
    static struct rf_pair_module module; /* under the lock of guest/modules.c */
    rf_pair_module(&module, image, name);
    const char *id = module.id[0] == '/' ? module.id + 1 : module.id;
    for (char *line = caper.file; line < caper.file + caper.size;) {
        char *next = next_line(line);
        uint64_t offset = offset_in(line, next, id);
        if (offset != UINT64_MAX)
            add_site(image->base + offset + 1, line);
        line = next;
    }
}

bool rf_caper_needs(const struct rf_hook_call *call, const char *hook_name)
{
    struct rf_hook hook = rf_hook_named(hook_name);
    if (!rf_hook_removable(&hook) || (hook.write && hook.size >= sizeof(uintptr_t)) || hook.kind == RF_HOOK_RANGE)
        return true;
    if (hook.kind == RF_HOOK_FUNCTION || call->jump) /* a jump's site was marked when it was written down */
        return false;
    const char *mark = mark_of((uintptr_t)call->at + call->length);
    return mark && *mark != '+';
}

/* ---- the beginning ---- */

static const char *path_in(char **environment)
{
    for (; environment && *environment; environment++) {
        const char *text = *environment, *name = RF_CAPER_VARIABLE;
        while (*name && *text == *name)
            text++, name++;
        if (!*name && *text == '=')
            return text + 1;
    }
    return NULL;
}

void rf_caper_begin(char **environment)
{
    const char *path = path_in(environment);
    if (!path || !*path || rf_tap)
        return;
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    long size = fd < 0 ? fd : RF_SYSCALL(SYS_lseek, fd, 0, 2 /* SEEK_END */);
    if (size < 0)
        rf_die("%s: the sites of redflag caper cannot be read and written", path);
    size_t lines = 1;
    if (size) {
        caper.file = (char *)RF_SYSCALL(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if ((uintptr_t)caper.file > (uintptr_t)-4096)
            rf_die("%s: the sites of redflag caper cannot be mapped", path);
        caper.size = (size_t)size;
        for (size_t i = 0; i < caper.size; i++)
            lines += caper.file[i] == '\n';
    }
    RF_SYSCALL(SYS_close, fd);
    for (caper.capacity = 1024; caper.capacity < 4 * lines;)
        caper.capacity *= 2;
    caper.sites = rf_pages(caper.capacity * sizeof *caper.sites);
    rf_caper_on = true;
    rf_tap = &listening;
}
