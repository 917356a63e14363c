// expect: race
// runs: 10
// race-at: first second
// Each thread holds a mutex, but not the same one.
#include "tests/programs/order.h"

int shared;
static pthread_mutex_t one_mutex = PTHREAD_MUTEX_INITIALIZER, other_mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void first(void)
{
    pthread_mutex_lock(&one_mutex);
    shared = 1;
    pthread_mutex_unlock(&one_mutex);
}

NOINLINE void second(void)
{
    pthread_mutex_lock(&other_mutex);
    shared = 2;
    pthread_mutex_unlock(&other_mutex);
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
