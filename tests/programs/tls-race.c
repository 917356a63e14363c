// expect: race
// runs: 10
// race-at: first second
// A pointer to a thread-local variable is given to another thread.
#include "tests/programs/order.h"

static __thread int local;
static int *place;

NOINLINE void first(void)
{
    local = 1;
}

NOINLINE void second(void)
{
    *place = 2;
}

static void *work(void *unused)
{
    await(1);
    second();
    return unused;
}

int main(void)
{
    pthread_t thread;
    place = &local;
    pthread_create(&thread, NULL, work, NULL);
    first();
    reach(1);
    pthread_join(thread, NULL);
    return 0;
}
