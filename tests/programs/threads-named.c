// expect: race
// runs: 10
// text: first-worker
// text: second-worker
// Reports give the names that threads have.
#define _GNU_SOURCE
#include "tests/programs/order.h"

int shared;

static void *one(void *unused)
{
    pthread_setname_np(pthread_self(), "first-worker");
    shared = 1;
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    pthread_setname_np(pthread_self(), "second-worker");
    await(1);
    shared = 2;
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
