// expect: none
// runs: 10
// Unaligned accesses that touch but do not overlap.
#include "tests/programs/order.h"

char shared[40] __attribute__((aligned(8)));
struct unaligned {
    long value;
} __attribute__((packed));

NOINLINE void first(void)
{
    ((struct unaligned *)(shared + 3))->value = 1;
    ((struct unaligned *)(shared + 19))->value = 1;
}

NOINLINE void second(void)
{
    shared[2] = 2;
    ((struct unaligned *)(shared + 11))->value = 2;
    shared[27] = 2;
}

static void *one(void *unused)
{
    first();
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    second();
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
