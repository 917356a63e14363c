// expect: none
// runs: 10
// A timed lock that succeeds orders.
#include <time.h>

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
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 30;
    if (soon.tv_nsec >= 1000000000)
        soon.tv_sec++, soon.tv_nsec -= 1000000000;
    MUST(pthread_mutex_timedlock(&mutex, &soon) == 0);
    shared = 2;
    pthread_mutex_unlock(&mutex);
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
