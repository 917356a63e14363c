// expect: race
// runs: 10
// race-at: first second
// Nor does a timed wait that times out.
#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "tests/programs/order.h"

static sem_t semaphore;
int shared;

__attribute__((constructor)) static void start(void)
{
    sem_init(&semaphore, 0, 0);
}

NOINLINE void first(void)
{
    shared = 1;
}

NOINLINE void second(void)
{
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 2000000;
    if (soon.tv_nsec >= 1000000000)
        soon.tv_sec++, soon.tv_nsec -= 1000000000;
    MUST(sem_timedwait(&semaphore, &soon) == -1 && errno == ETIMEDOUT);
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
