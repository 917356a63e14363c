// expect: race
// runs: 10
// race-at: first second
// An unaligned access that reaches into the next word.
#include "tests/programs/order.h"

char shared[24] __attribute__((aligned(8)));
struct unaligned {
    long value;
} __attribute__((packed));

NOINLINE void first(void)
{
    ((struct unaligned *)(shared + 3))->value = 1;
}

NOINLINE void second(void)
{
    shared[10] = 2;
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
