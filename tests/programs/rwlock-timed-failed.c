// expect: race
// runs: 10
// race-at: first second
// Nor does a timed one that times out.
#include <errno.h>
#include <time.h>

#include "tests/programs/order.h"

int shared;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

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
    pthread_rwlock_rdlock(&lock);
    reach(1);
    await(2);
    pthread_rwlock_unlock(&lock);
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
    MUST(pthread_rwlock_timedwrlock(&lock, &soon) == ETIMEDOUT);
    second();
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
