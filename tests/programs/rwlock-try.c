// expect: none
// runs: 10
// A try that succeeds orders.
#include "tests/programs/order.h"

int shared;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE void first(void)
{
    MUST(pthread_rwlock_trywrlock(&lock) == 0);
    shared = 1;
    pthread_rwlock_unlock(&lock);
}

NOINLINE void second(void)
{
    MUST(pthread_rwlock_tryrdlock(&lock) == 0);
    MUST(shared == 1);
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
