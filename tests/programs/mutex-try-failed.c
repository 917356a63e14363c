// expect: race
// runs: 10
// race-at: first second
// A trylock that fails orders nothing.
#include <errno.h>

#include "tests/programs/order.h"

int shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void first(void)
{
    shared = 1;
}

NOINLINE void second(void)
{
    shared = 2;
}

static void *one(void *unused)
{
    first();
    pthread_mutex_lock(&mutex);
    reach(1);
    await(2);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    MUST(pthread_mutex_trylock(&mutex) == EBUSY);
    second();
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
