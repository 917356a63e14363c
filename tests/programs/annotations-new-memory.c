// expect: none
// runs: 10
// stock: has no such memory
// New memory of an allocator of the program has no past.
#include "tests/programs/order.h"

void AnnotateNewMemory(const char *file, int line, const volatile void *addr, unsigned long size);

static long pool[8];

static NOINLINE void *first(void *unused)
{
    pool[3] = 1;
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    AnnotateNewMemory(__FILE__, __LINE__, pool, sizeof pool);
    pool[3] = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
