// expect: race
// runs: 10
// race-at: first second
// A try that fails orders nothing.
#include <errno.h>

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
    pthread_rwlock_wrlock(&lock);
    reach(1);
    await(2);
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    MUST(pthread_rwlock_tryrdlock(&lock) == EBUSY && pthread_rwlock_trywrlock(&lock) == EBUSY);
    second();
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
