// expect: race
// runs: 10
// race-at: first second
// A pointer to a local variable is given to another thread.
#include "tests/programs/order.h"

NOINLINE void first(int *place)
{
    *place = 1;
}

NOINLINE void second(int *place)
{
    *place = 2;
}

static void *work(void *place)
{
    first(place);
    reach(1);
    return NULL;
}

int main(void)
{
    int local = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, work, &local);
    await(1);
    second(&local);
    pthread_join(thread, NULL);
    MUST(local == 2);
    return 0;
}
