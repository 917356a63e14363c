// expect: none
// runs: 10
// options: strict_semaphores=1
// With tokens counted a wait is still ordered after the post whose token it took.
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
    sem_post(&semaphore);
}

NOINLINE void second(void)
{
    sem_wait(&semaphore);
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
