// expect: race
// seconds: 240
// race-at: first second
// stock: its history ends, or the write is forgotten
// A write is still known after two million releases of its thread.
#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
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
    first();
    for (int i = 0; i < 2000000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    second();
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
