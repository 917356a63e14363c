// expect: race
// runs: 10
// race-at: parent child
// What the parent does after it created a thread is not ordered.
#include "tests/programs/order.h"

int shared;

NOINLINE void parent(void)
{
    shared = 1;
}

NOINLINE void child(void)
{
    shared = 2;
}

static void *work(void *unused)
{
    await(1);
    child();
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    parent();
    reach(1);
    pthread_join(thread, NULL);
    return 0;
}
