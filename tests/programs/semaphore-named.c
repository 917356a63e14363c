// expect: none
// runs: 10
// A named semaphore orders as well.
#include <fcntl.h>
#include <semaphore.h>
#include <unistd.h>

#include "tests/programs/order.h"

static sem_t *semaphore;
int shared;

__attribute__((constructor)) static void start(void)
{
    char name[64];
    snprintf(name, sizeof name, "/redflag-test-%d", (int)getpid());
    semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    MUST(semaphore != SEM_FAILED);
    sem_unlink(name);
}

NOINLINE void first(void)
{
    shared = 1;
    sem_post(semaphore);
}

NOINLINE void second(void)
{
    sem_wait(semaphore);
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
