// expect: race
// runs: 10
// That both granules of an unaligned access were read in this epoch says nothing of a write.
#include "tests/programs/order.h"

static union {
    long whole[2];
    char bytes[16];
} shared;

struct anywhere {
    int value;
} __attribute__((packed));

NOINLINE int get(volatile struct anywhere *at)
{
    return at->value;
}

NOINLINE void put(volatile struct anywhere *at)
{
    at->value = 3;
}

static void *one(void *unused)
{
    for (int i = 0; i < 4; i++) {
        get((void *)(shared.bytes + 6));
        if (i > 1)
            put((void *)(shared.bytes + 6));
    }
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    (void)*(volatile char *)(shared.bytes + 8);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
