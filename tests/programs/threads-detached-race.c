// expect: race
// runs: 10
// race-at: writer reader
// A thread created detached is a thread like others.
#include "tests/programs/order.h"

int shared, copy;

NOINLINE void writer(void)
{
    shared = 1;
}

NOINLINE void reader(void)
{
    copy = shared;
}

static void *work(void *unused)
{
    writer();
    reach(1);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    MUST(pthread_create(&thread, &attributes, work, NULL) == 0);
    await(1);
    reader();
    return 0;
}
