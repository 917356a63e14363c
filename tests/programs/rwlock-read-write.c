// expect: none
// runs: 10
// A writer comes after the readers.
#include "tests/programs/order.h"

int shared;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE void first(void)
{
    pthread_rwlock_rdlock(&lock);
    MUST(shared >= 0);
    pthread_rwlock_unlock(&lock);
}

NOINLINE void second(void)
{
    pthread_rwlock_wrlock(&lock);
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
