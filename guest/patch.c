/* See guest/patch.h. */
#include "guest/patch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>

#include "guest/planes.h"
#include "guest/system.h"

#define PAGE ((uintptr_t)4096)
#define REACH ((uintptr_t)0x7fff0000)

/* -- changing code -------------------------------------------------------------------------------------------------------------- */

/* Changes are gathered: `bytes` is what shall stand from `begin` on, `length` of them so far. */
static struct {
    uint8_t bytes[16 * 4096];
    const uint8_t *begin;
    size_t length;
    long fd; /* of /proc/self/mem, plus 1; 0: not opened */
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
    if (change.fd <= 0)
        change.fd = RF_SYSCALL(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC) + 1;
    if (change.fd <= 0 || RF_SYSCALL(SYS_pwrite64, change.fd - 1, change.bytes, change.length, change.begin) != (long)change.length)
        change.failed = !write_through_pages(change.begin, change.bytes, change.length);
    change.length = 0;
}

/* One write serves neighbouring pages, but no page without a change is written. */
void rf_patch_add(const uint8_t *at, const uint8_t *bytes, size_t length)
{
    if (change.length) {
        const uint8_t *last = change.begin + change.length - 1;
        if ((size_t)(at + length - change.begin) > sizeof change.bytes ||
            ((uintptr_t)at & ~(PAGE - 1)) > ((uintptr_t)last & ~(PAGE - 1)) + PAGE)
            change_write();
    }
    if (!change.length)
        change.begin = at;
    size_t offset = (size_t)(at - change.begin);
    __builtin_memcpy(change.bytes + change.length, change.begin + change.length, offset - change.length);
    __builtin_memcpy(change.bytes + offset, bytes, length);
    change.length = offset + length;
}

bool rf_patch_write(void)
{
    change_write();
    bool done = !change.failed;
    change.failed = false;
    return done;
}

void rf_patch_end(void)
{
    if (change.fd > 0)
        RF_SYSCALL(SYS_close, change.fd - 1);
    change.fd = 0;
}

void rf_patch_form(const uint8_t *at, size_t length, bool jump, uintptr_t target, uint8_t *to)
{
    /* The direct form is a byte shorter: a prefix without meaning goes before a call, so that it returns to where it did. */
    bool direct = length == 5;
    int32_t distance = (int32_t)(target - (uintptr_t)(at + (direct || !jump ? length : length - 1)));
    to[0] = jump ? 0xe9 : direct ? 0xe8 : 0x67;
    to[1] = 0xe8;
    to[5] = 0x90;
    __builtin_memcpy(direct || jump ? to + 1 : to + 2, &distance, sizeof distance);
}

void rf_patch_nothing(size_t length, bool jump, uint8_t *to)
{
    static const uint8_t nothing5[] = { 0x0f, 0x1f, 0x44, 0, 0 }, nothing6[] = { 0x66, 0x0f, 0x1f, 0x44, 0, 0 };
    static const uint8_t end[] = { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };
    __builtin_memcpy(to, jump ? end : length == 5 ? nothing5 : nothing6, length);
}

/* -- new code ------------------------------------------------------------------------------------------------------------------- */

bool rf_patch_reaches(uintptr_t at, size_t size, uintptr_t low, uintptr_t high)
{
    return (at >= high ? at + size - low : high - at) < REACH;
}

static bool make_at(uintptr_t at, size_t size, void (*fill)(uint8_t *, void *), void *context)
{
    if (at >= (uintptr_t)1 << 47 || rf_planes_overlap(at, size))
        return false;
    long got = RF_SYSCALL(SYS_mmap, at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if ((uintptr_t)got != at) {
        if (got > 0) /* a kernel that knows no MAP_FIXED_NOREPLACE */
            RF_SYSCALL(SYS_munmap, got, size);
        return false;
    }
    fill((uint8_t *)at, context);
    if (RF_SYSCALL(SYS_mprotect, at, size, PROT_READ | PROT_EXEC) != 0) {
        RF_SYSCALL(SYS_munmap, at, size);
        return false;
    }
    return true;
}

/* Below the module if possible: the heap grows above a program. */
uintptr_t rf_patch_make(uintptr_t low, uintptr_t high, size_t size, void (*fill)(uint8_t *to, void *context), void *context)
{
    low &= ~(PAGE - 1);
    high = (high + PAGE - 1) & ~(PAGE - 1);
    for (uintptr_t away = size; low > away && rf_patch_reaches(low - away, size, low, high); away += away)
        if (make_at(low - away, size, fill, context))
            return low - away;
    for (uintptr_t away = 0x40000000; away >= PAGE; away /= 2)
        if (rf_patch_reaches(high + away, size, low, high) && make_at(high + away, size, fill, context))
            return high + away;
    return 0;
}
