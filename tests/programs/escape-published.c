// expect: race
// runs: 5
// race-at: after second
// options: escape=1
// no-text: before
// A block is private until a pointer to it is stored in a global. What its thread does with it afterwards is looked at, though the
// pointer itself was handed over in order.
#include "tests/programs/order.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long *published;

NOINLINE void before(long *block)
{
    for (int i = 0; i < 8; i++)
        block[i] = i;
}

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
    before(block);
    pthread_mutex_lock(&lock);
    published = block;
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
    long *block = published;
    published = NULL; /* nobody who looks later finds the pointer there */
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
