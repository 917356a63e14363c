// expect: race
// runs: 10
// race-at: handler writes
// What a handler does is looked at: it races like the thread that it interrupts.
#include "tests/programs/order.h"

#include <signal.h>

int data;

static NOINLINE void handler(int sig)
{
    data = sig;
}

static NOINLINE void *writes(void *unused)
{
    data = 1;
    reach(1);
    return unused;
}

static NOINLINE void *raises(void *unused)
{
    await(1);
    MUST(raise(SIGUSR1) == 0);
    return unused;
}

int main(void)
{
    signal(SIGUSR1, handler);
    run_both(writes, raises);
    return 0;
}
