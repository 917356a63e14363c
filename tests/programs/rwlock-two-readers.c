// expect: race
// runs: 10
// race-at: first second
// Readers do not order each other: what is written under a read lock races.
#include "tests/programs/order.h"

int shared;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE void first(void)
{
    pthread_rwlock_rdlock(&lock);
    shared = 1;
    pthread_rwlock_unlock(&lock);
}

NOINLINE void second(void)
{
    pthread_rwlock_rdlock(&lock);
    shared = 2;
    pthread_rwlock_unlock(&lock);
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
