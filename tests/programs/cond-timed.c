// expect: none
// runs: 10
// A timed wait, with both clocks, that times out holds the mutex again.
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>

#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never;
static int counter;

static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        struct timespec soon;
        pthread_mutex_lock(&mutex);
        clock_gettime(CLOCK_MONOTONIC, &soon);
        soon.tv_nsec += 1000000;
        if (soon.tv_nsec >= 1000000000)
            soon.tv_sec++, soon.tv_nsec -= 1000000000;
        MUST(pthread_cond_timedwait(&never, &mutex, &soon) == ETIMEDOUT);
        counter++;
        clock_gettime(CLOCK_REALTIME, &soon);
        MUST(pthread_cond_clockwait(&never, &mutex, CLOCK_REALTIME, &soon) == ETIMEDOUT);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&never, &attributes);
    pthread_condattr_destroy(&attributes);
    run_both(work, work);
    MUST(counter == 80);
    pthread_cond_destroy(&never);
    return 0;
}
