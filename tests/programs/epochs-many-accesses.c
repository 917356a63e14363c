// expect: race
// race-at: second
// race-at: first
// stock: its history ends, or the write is forgotten
// Among a million variables that one thread wrote in many epochs, the one that another writes too is found.
#include "tests/programs/order.h"

#define COUNT 1000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int shared[COUNT];

NOINLINE void first(int i)
{
    shared[i] = 1;
}

NOINLINE void second(int i)
{
    shared[i] = 2;
}

static void *one(void *unused)
{
    for (int i = 0; i < COUNT; i++) {
        first(i);
        if (i % 10 == 0) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
    }
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    second(COUNT / 2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
