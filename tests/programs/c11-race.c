// expect: race
// runs: 10
// stock: crashes on thrd_create
// race-at: first second
// Threads of C11 race like others.
#include <threads.h>

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

static int one(void *unused)
{
    (void)unused;
    first();
    reach(1);
    return 0;
}

static int two(void *unused)
{
    (void)unused;
    await(1);
    second();
    return 0;
}

int main(void)
{
    thrd_t a, b;
    thrd_create(&a, one, NULL);
    thrd_create(&b, two, NULL);
    thrd_join(a, NULL);
    thrd_join(b, NULL);
    return 0;
}
