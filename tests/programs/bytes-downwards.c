// expect: race
// options: detector=acculock
// A loop that runs downwards over bytes of which another thread wrote the first seven: the step on the eighth is not that of the others.
#include "tests/programs/order.h"

static _Alignas(16) volatile char bytes[16];

static void *first(void *unused)
{
    for (int i = 0; i < 7; i++)
        bytes[i] = 1;
    reach(1);
    await(2);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    for (int i = 15; i >= 0; i--)
        bytes[i] = 2;
    reach(2);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
