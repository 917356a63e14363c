// expect: race
// runs: 5
// race-at: after second
// options: escape=0
// The same as escape-hidden.c without the analysis: the race is found.
#include "tests/programs/order.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
unsigned long published;

NOINLINE void after(long *block)
{
    block[5] = 50;
}

NOINLINE void second(long *block)
{
    block[5] = 51;
}

static void *one(void *unused)
{
    long *block = malloc(8 * sizeof *block);
    pthread_mutex_lock(&lock);
    published = ~(unsigned long)block;
    pthread_mutex_unlock(&lock);
    after(block);
    reach(1);
    await(2);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    pthread_mutex_lock(&lock);
    long *block = (long *)~published;
    pthread_mutex_unlock(&lock);
    second(block);
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
