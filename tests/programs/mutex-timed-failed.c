// expect: race
// runs: 10
// race-at: first second
// A timed lock that times out orders nothing.
#include <errno.h>
#include <time.h>

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
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 2000000;
    if (soon.tv_nsec >= 1000000000)
        soon.tv_sec++, soon.tv_nsec -= 1000000000;
    MUST(pthread_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
    second();
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
