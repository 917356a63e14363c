// expect: none
// runs: 10
// options: detect_deadlocks=0
// The kind can be switched off.
#include "tests/programs/order.h"

static pthread_mutex_t x = PTHREAD_MUTEX_INITIALIZER, y = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;

static void *one(void *unused)
{
    (void)gate;
    pthread_mutex_lock(&x);
    pthread_mutex_lock(&y);
    pthread_mutex_unlock(&y);
    pthread_mutex_unlock(&x);
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    pthread_mutex_lock(&y);
    pthread_mutex_lock(&x);
    pthread_mutex_unlock(&x);
    pthread_mutex_unlock(&y);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
