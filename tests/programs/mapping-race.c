// expect: race
// runs: 10
// race-at: first second
// Mapped memory is looked at like all other.
#include "tests/programs/order.h"

#include <sys/mman.h>

static int *p;

static NOINLINE void *first(void *unused)
{
    p[1000] = 1;
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    p[1000] = 2;
    return unused;
}

int main(void)
{
    p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    run_both(first, second);
    return 0;
}
