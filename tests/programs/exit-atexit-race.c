// expect: race
// runs: 10
// race-at: last worker
// A function of atexit races with a thread that still runs.
#include "tests/programs/order.h"

int shared;

NOINLINE void last(void)
{
    shared = 1;
}

NOINLINE void worker(void)
{
    shared = 2;
}

static void *work(void *unused)
{
    worker();
    reach(1);
    for (;;)
        hidden_yield();
    return unused;
}

int main(void)
{
    pthread_t thread;
    atexit(last);
    pthread_create(&thread, NULL, work, NULL);
    pthread_detach(thread);
    await(1);
    return 0;
}
