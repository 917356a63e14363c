// expect: race
// runs: 10
// kind: lock-order-inversion (potential deadlock)
// options: detect_deadlocks=1
// Read-write locks count, too.
#include "tests/programs/order.h"

static pthread_mutex_t x = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t y = PTHREAD_RWLOCK_INITIALIZER;

static void *one(void *unused)
{
    pthread_mutex_lock(&x);
    pthread_rwlock_wrlock(&y);
    pthread_rwlock_unlock(&y);
    pthread_mutex_unlock(&x);
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    pthread_rwlock_wrlock(&y);
    pthread_mutex_lock(&x);
    pthread_mutex_unlock(&x);
    pthread_rwlock_unlock(&y);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
