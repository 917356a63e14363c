// expect: race
// runs: 10
// race-at: first second
// A spin trylock that fails orders nothing.
#include <errno.h>

#include "tests/programs/order.h"

int shared;
static pthread_spinlock_t lock;

__attribute__((constructor)) static void start(void)
{
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
}

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
    pthread_spin_lock(&lock);
    reach(1);
    await(2);
    pthread_spin_unlock(&lock);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    MUST(pthread_spin_trylock(&lock) == EBUSY);
    second();
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
