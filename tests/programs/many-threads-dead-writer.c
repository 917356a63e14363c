// expect: race
// seconds: 120
// race-at: first second
// stock: forgets threads that ended long ago
// The writer is long dead, and its place was taken by thousands of others, when the race comes.
#include "tests/programs/order.h"

int shared;

NOINLINE void first(void)
{
    shared = 1;
}

NOINLINE void second(void)
{
    shared = 2;
}

static void *writes(void *unused)
{
    first();
    reach(1);
    return unused;
}

static void *idle(void *unused)
{
    return unused;
}

static void *breeds(void *unused)
{
    await(1);
    for (int i = 0; i < 3000; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, idle, NULL) == 0);
        pthread_join(thread, NULL);
    }
    second();
    return unused;
}

int main(void)
{
    pthread_t writer, breeder;
    pthread_create(&breeder, NULL, breeds, NULL);
    pthread_create(&writer, NULL, writes, NULL);
    pthread_detach(writer);
    pthread_join(breeder, NULL);
    return 0;
}
