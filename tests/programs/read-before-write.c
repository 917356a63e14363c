// expect: race
// race-at: add show
// A read that its own write follows races with nothing that the write does not race with: one hook says so for both.
#include "tests/programs/order.h"

static long sum;

static NOINLINE void add(long *to)
{
    *to += 3;
}

static NOINLINE long show(const long *from)
{
    return *from;
}

static void *other(void *unused)
{
    (void)unused;
    await(1);
    return (void *)show(&sum);
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    add(&sum);
    reach(1);
    pthread_join(thread, NULL);
}
