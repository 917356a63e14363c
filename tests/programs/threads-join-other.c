// expect: race
// runs: 10
// race-at: writer reader
// Joining one thread says nothing of another.
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

static void *idle(void *unused)
{
    return unused;
}

int main(void)
{
    pthread_t busy, other;
    pthread_create(&busy, NULL, work, NULL);
    pthread_create(&other, NULL, idle, NULL);
    pthread_join(other, NULL);
    await(1);
    reader();
    pthread_join(busy, NULL);
    return 0;
}
