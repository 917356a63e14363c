// expect: none
// runs: 10
// A mapping over another one is new memory; so are what mremap adds and where it moves to.
#define _GNU_SOURCE
#include "tests/programs/order.h"

#include <string.h>
#include <sys/mman.h>

enum { SIZE = 1 << 16 };
static char *p;

static NOINLINE void *first(void *unused)
{
    memset(p, 1, SIZE);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
    MUST(p[100] == 0);
    memset(p, 2, SIZE);
    char *moved = mremap(p, SIZE, SIZE * 64, MREMAP_MAYMOVE);
    MUST(moved != MAP_FAILED && moved[100] == 2 && moved[SIZE * 64 - 1] == 0);
    MUST(munmap(moved, SIZE * 64) == 0);
    return unused;
}

int main(void)
{
    p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    run_both(first, second);
    return 0;
}
