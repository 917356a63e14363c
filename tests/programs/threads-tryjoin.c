// expect: none
// runs: 10
// A join that says busy or times out fails; the one that succeeds orders.
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>

#include "tests/programs/order.h"

static int shared;

static void *work(void *unused)
{
    await(1);
    shared = 1;
    return unused;
}

int main(void)
{
    pthread_t thread;
    struct timespec soon;
    pthread_create(&thread, NULL, work, NULL);
    MUST(pthread_tryjoin_np(thread, NULL) == EBUSY);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 1000000;
    if (soon.tv_nsec >= 1000000000)
        soon.tv_sec++, soon.tv_nsec -= 1000000000;
    MUST(pthread_timedjoin_np(thread, NULL, &soon) == ETIMEDOUT);
    reach(1);
    soon.tv_sec += 30;
    MUST(pthread_timedjoin_np(thread, NULL, &soon) == 0);
    MUST(shared == 1);
    pthread_create(&thread, NULL, work, NULL);
    while (pthread_tryjoin_np(thread, NULL) == EBUSY)
        hidden_yield();
    shared = 2;
    return 0;
}
