#include "guest/planes.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest/system.h"

#define MAPPED_AT_ONCE ((uintptr_t)1 << 16)

uint8_t rf_districts[RF_DISTRICTS];
static bool lazy;

bool rf_planes_lazy(void)
{
    return lazy;
}

static long map_fixed(uintptr_t at, size_t size)
{
    long result = RF_SYSCALL(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (result > 0 && result != (long)at) { /* a kernel that does not know NOREPLACE took it for a hint */
        RF_SYSCALL(SYS_munmap, result, size);
        return -17; /* EEXIST */
    }
    return result;
}

bool rf_planes_begin(void)
{
    uintptr_t size = RF_PLANES_END - RF_PATCHES;
    long result = map_fixed(RF_PATCHES, size);
    if (result > 0) {
        /* A huge page for one word would multiply the memory; nor are these of use in a core file. */
        RF_SYSCALL(SYS_madvise, RF_PATCHES, size, MADV_NOHUGEPAGE);
        RF_SYSCALL(SYS_madvise, RF_PATCHES, size, MADV_DONTDUMP);
        return true;
    }
    lazy = true;
    return result != -17;
}

bool rf_planes_overlap(uintptr_t addr, size_t size)
{
    return addr < RF_PLANES_END && addr + size > RF_PATCHES;
}

bool rf_planes_fault(uintptr_t addr)
{
    if (!lazy || addr < RF_PATCHES || addr >= RF_PLANES_END)
        return false;
    long result = map_fixed(addr & ~(MAPPED_AT_ONCE - 1), MAPPED_AT_ONCE);
    if (result == -17) /* another thread was faster */
        return true;
    if (result < 0)
        rf_die("out of memory: the kernel refuses %zu bytes for histories", (size_t)MAPPED_AT_ONCE);
    RF_SYSCALL(SYS_madvise, result, MAPPED_AT_ONCE, MADV_NOHUGEPAGE);
    return true;
}
