// expect: race
// runs: 10
// race-at: waiter waker
// The waker writes before it locks, the waiter reads before it locks: a condition does not help.
#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;
int shared, copy;

NOINLINE void waker(void)
{
    shared = 1;
}

NOINLINE void waiter(void)
{
    copy = shared;
}

static void *wait_for_it(void *unused)
{
    waiter();
    reach(1);
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *wake(void *unused)
{
    await(1);
    waker();
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    run_both(wait_for_it, wake);
    return 0;
}
