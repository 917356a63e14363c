// expect: race
// runs: 10
// stock: crashes on thrd_create
// race-at: first second
// A trylock of C11 that says busy orders nothing.
#include <threads.h>

#include "tests/programs/order.h"

static mtx_t mutex;
int shared;

NOINLINE void first(void)
{
    shared = 1;
}

NOINLINE void second(void)
{
    shared = 2;
}

static int one(void *unused)
{
    (void)unused;
    first();
    mtx_lock(&mutex);
    reach(1);
    await(2);
    mtx_unlock(&mutex);
    return 0;
}

int main(void)
{
    thrd_t thread;
    mtx_init(&mutex, mtx_plain);
    thrd_create(&thread, one, NULL);
    await(1);
    MUST(mtx_trylock(&mutex) == thrd_busy);
    second();
    reach(2);
    thrd_join(thread, NULL);
    return 0;
}
