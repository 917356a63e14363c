// expect: race
// runs: 10
// race-at: first second
// Only one of them locks.
#include "tests/programs/order.h"

int shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void first(void)
{
    pthread_mutex_lock(&mutex);
    shared = 1;
    pthread_mutex_unlock(&mutex);
}

NOINLINE void second(void)
{
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
