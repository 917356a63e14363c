/* See guest/quiet.h. */
#include "guest/quiet.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "guest/maps.h"
#include "guest/memory.h"
#include "guest/patch.h"
#include "guest/system.h"

#define PAGE ((uintptr_t)4096)
#define LEAST_CALL 5u

struct site {
    uint32_t offset; /* from where the code begins */
    int32_t target;  /* from the same place: all are within reach */
    uint8_t length, jump;
};

struct code {
    uintptr_t begin, end;
    struct site *sites;
    size_t count, room; /* room in bytes */
    struct code *next;
};

static struct code *codes; /* the last one first */

static struct rf_mapping mapping; /* one thread at a time is here: it is large */

/* May this code be run, and not be changed, all of it alike? It is of one file; the kernel may have several mappings of that, if something
 * was said of a part (madvise(), mlock()). Then `mapping` is the one at its beginning. */
static bool is_plain(uintptr_t low, uintptr_t high)
{
    uint64_t inode = 0, from = 0;
    for (uintptr_t at = low; at < high; at = mapping.end) {
        if (!rf_mapping_at(at, &mapping) || __builtin_memcmp(mapping.access, "r-xp", sizeof mapping.access) != 0)
            return false;
        if (at == low) {
            inode = mapping.inode;
            from = mapping.offset - mapping.begin;
        }
        if (mapping.inode != inode || (inode && mapping.offset - mapping.begin != from))
            return false;
    }
    return mapping.begin <= low || rf_mapping_at(low, &mapping);
}

static uintptr_t page_below(uintptr_t at)
{
    return at & ~(PAGE - 1);
}

static uintptr_t page_above(uintptr_t at)
{
    return (at + PAGE - 1) & ~(PAGE - 1);
}

void rf_quiet_code(uintptr_t begin, uintptr_t end)
{
    if (!is_plain(page_below(begin), page_above(end)))
        return;
    size_t room = ((end - begin) / LEAST_CALL + 1) * sizeof(struct site);
    struct site *sites = end - begin < UINT32_MAX / 2 ? rf_reserve(room) : NULL; /* few of its pages will be touched */
    if (!sites)
        return;
    struct code *code = rf_take(sizeof *code);
    *code = (struct code){ .begin = begin, .end = end, .sites = sites, .room = room, .next = codes };
    codes = code;
}

bool rf_quiet_takes(const struct rf_hook_call *call, uintptr_t target)
{
    uintptr_t at = (uintptr_t)call->at;
    for (struct code *code = codes; code; code = code->next)
        if (at >= code->begin && at < code->end) {
            code->sites[code->count++] =
                (struct site){ (uint32_t)(at - code->begin), (int32_t)(target - code->begin), call->length, call->jump };
            return true;
        }
    return false;
}

/* -- the code with all its calls ------------------------------------------------------------------------------------------------- */

static bool is_same_file(long fd)
{
    struct stat stat;
    return RF_SYSCALL(SYS_fstat, fd, &stat) == 0 && stat.st_ino == mapping.inode && major(stat.st_dev) == mapping.major &&
           minor(stat.st_dev) == mapping.minor;
}

/* Pages of the file that is mapped at `low`; what is not positive if it is not to be had. */
static long pages_of_file(uintptr_t low, size_t size)
{
    long at = -1, fd = mapping.path[0] == '/' ? RF_SYSCALL(SYS_openat, AT_FDCWD, mapping.path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    if (is_same_file(fd))
        at = RF_SYSCALL(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, mapping.offset + (low - mapping.begin));
    RF_SYSCALL(SYS_close, fd);
    return at;
}

/* Pages for what is at `low`, not executable yet; NULL if there are none. What they hold may be anything. If the kernel does not say any
 * more what is there, as in a jail without /proc, it is still what it was at the start. */
static uint8_t *pages_for(uintptr_t low, uintptr_t high)
{
    bool known = rf_mapping_at(low, &mapping);
    if (known && !is_plain(low, high))
        return NULL; /* somebody has changed what may be done there */
    long at = known ? pages_of_file(low, high - low) : -1;
    if (at <= 0)
        at = RF_SYSCALL(SYS_mmap, 0, high - low, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at > 0 ? (uint8_t *)at : NULL;
}

/* Writes the code with its calls. A page that is equal already need not be written, and stays the file's. */
static void fill(const struct code *code, uintptr_t low, size_t size, uint8_t *to)
{
    for (size_t at = 0; at < size; at += PAGE)
        if (__builtin_memcmp(to + at, (const void *)(low + at), PAGE) != 0)
            __builtin_memcpy(to + at, (const void *)(low + at), PAGE);
    for (size_t i = 0; i < code->count; i++) {
        const struct site *site = &code->sites[i];
        const uint8_t *from = (const uint8_t *)(code->begin + site->offset);
        uint8_t form[6];
        rf_patch_nothing(site->length, site->jump, form);
        if (__builtin_memcmp(from, form, site->length) != 0)
            continue; /* somebody has put something else there */
        rf_patch_form(from, site->length, site->jump, code->begin + (uintptr_t)(intptr_t)site->target, form);
        __builtin_memcpy(to + ((uintptr_t)from - low), form, site->length);
    }
}

static bool make_loud(const struct code *code)
{
    uintptr_t low = page_below(code->begin), high = page_above(code->end);
    uint8_t *pages = code->count ? pages_for(low, high) : NULL;
    if (!pages)
        return !code->count;
    fill(code, low, high - low, pages);
    if (RF_SYSCALL(SYS_mprotect, pages, high - low, PROT_READ | PROT_EXEC) == 0 &&
        (uintptr_t)RF_SYSCALL(SYS_mremap, pages, high - low, high - low, MREMAP_MAYMOVE | MREMAP_FIXED, low) == low)
        return true;
    RF_SYSCALL(SYS_munmap, pages, high - low);
    return false;
}

void rf_quiet_end(void)
{
    while (codes) {
        struct code *code = codes;
        if (!make_loud(code))
            rf_say(
                "accesses in the code from 0x%zx to 0x%zx are not looked at: the kernel does not let it be changed; use patch_calls=0",
                (size_t)code->begin, (size_t)code->end);
        codes = code->next;
        RF_SYSCALL(SYS_munmap, code->sites, code->room);
        rf_give(code, sizeof *code);
    }
}
