// expect: none
// runs: 10
// options: detect_deadlocks=1
// stock: does not know gate locks
// A third mutex, held by both, makes the deadlock impossible.
#include "tests/programs/order.h"

static pthread_mutex_t x = PTHREAD_MUTEX_INITIALIZER, y = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;

static void *one(void *unused)
{
    (void)gate;
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&x);
    pthread_mutex_lock(&y);
    pthread_mutex_unlock(&y);
    pthread_mutex_unlock(&x);
    pthread_mutex_unlock(&gate);
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&y);
    pthread_mutex_lock(&x);
    pthread_mutex_unlock(&x);
    pthread_mutex_unlock(&y);
    pthread_mutex_unlock(&gate);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
