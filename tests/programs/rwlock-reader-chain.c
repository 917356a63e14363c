// expect: race
// runs: 10
// race-at: first second
// Nor do they order what was done before the read lock.
#include "tests/programs/order.h"

int shared;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE void first(void)
{
    shared = 1;
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_unlock(&lock);
}

NOINLINE void second(void)
{
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_unlock(&lock);
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
