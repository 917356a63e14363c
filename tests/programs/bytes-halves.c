// expect: none
// runs: 10
// So are the halves of a word, whatever was done with the whole before.
#include "tests/programs/order.h"

union {
    long whole;
    int half[2];
    short quarter[4];
} shared;

__attribute__((constructor)) static void start(void)
{
    shared.whole = 5;
}

NOINLINE void first(void)
{
    shared.half[0] = 1;
}

NOINLINE void second(void)
{
    shared.quarter[2] = 2;
    shared.quarter[3] = 3;
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
