// expect: race
// runs: 10
// race-at: first second
// Once orders its routine with the callers, not one caller with the next.
#include "tests/programs/order.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
int shared;

static void make(void)
{
}

NOINLINE void first(void)
{
    pthread_once(&once, make);
    shared = 1;
}

NOINLINE void second(void)
{
    pthread_once(&once, make);
    shared = 2;
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
