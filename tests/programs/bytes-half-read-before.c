// expect: race
// runs: 10
// That one half of a word was read in this epoch says nothing of the other half, which another thread has written since.
#include "tests/programs/order.h"

union {
    long whole;
    int half[2];
} shared;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void)
{
    shared.whole = 5;
}

NOINLINE int look(int which)
{
    return shared.half[which];
}

static void *one(void *unused)
{
    pthread_mutex_lock(&lock);
    shared.half[0] = 1;
    pthread_mutex_unlock(&lock);
    MUST(look(1) == 0);
    MUST(look(1) == 0);
    reach(1);
    await(2);
    MUST(look(0) == 2);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    pthread_mutex_lock(&lock); /* after the other's write */
    pthread_mutex_unlock(&lock);
    shared.half[0] = 2;
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
