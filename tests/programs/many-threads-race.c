// expect: race
// seconds: 120
// race-at: first second
// stock: has 256 slots for threads
// The first and the last of many threads that live at once race.
#include "tests/programs/order.h"

#define THREADS 600

int shared;

NOINLINE void first(void)
{
    shared = 1;
}

NOINLINE void second(void)
{
    shared = 2;
}

static void *work(void *number)
{
    if ((long)number == 0)
        first();
    arrive();
    await(THREADS);
    if ((long)number == THREADS - 1)
        second();
    return NULL;
}

int main(void)
{
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    for (long i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], &attributes, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
