// expect: race
// runs: 10
// race-at: first second
// A try that fails orders nothing.
#include <errno.h>
#include <semaphore.h>

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
    MUST(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
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
