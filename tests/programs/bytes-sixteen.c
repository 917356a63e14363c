// expect: race
// runs: 10
// race-at: first second
// An access of sixteen bytes races by its last one.
#include "tests/programs/order.h"

typedef float vector __attribute__((vector_size(16)));
union {
    vector whole;
    char byte[16];
} shared;
static vector value;

NOINLINE void first(void)
{
    shared.whole = value;
}

NOINLINE void second(void)
{
    shared.byte[15] = 2;
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
