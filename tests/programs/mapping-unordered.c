// expect: race
// runs: 10
// race-at: maps uses mmap
// Mapping memory is a write to it: who uses it must come after.
#include "tests/programs/order.h"

#include <sys/mman.h>

static char *place;

static NOINLINE void *maps(void *unused)
{
    char *p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __asm__ volatile("mov %1, %0" : "=m"(place) : "r"(p));
    reach(1);
    return unused;
}

static NOINLINE void *uses(void *unused)
{
    char *p;
    await(1);
    __asm__ volatile("mov %1, %0" : "=r"(p) : "m"(place));
    p[10] = 1;
    return unused;
}

int main(void)
{
    run_both(maps, uses);
    return 0;
}
