// expect: race
// runs: 10
// race-at: first second
// stock: a thread that leaves a round late takes over what others did in the next
// Between two rounds nothing is ordered.
#include "tests/programs/order.h"

static pthread_barrier_t barrier;
int shared;

NOINLINE void first(void)
{
    shared = 1;
}

NOINLINE void second(void)
{
    shared = 2;
}

static void *one(void *unused)
{
    pthread_barrier_wait(&barrier);
    first();
    reach(1);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void *two(void *unused)
{
    pthread_barrier_wait(&barrier);
    await(1);
    second();
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    run_both(one, two);
    return 0;
}
