// expect: race
// kind: signal-unsafe call inside of a signal
// race-at: handler
// malloc in a handler that interrupted anything.
#include "tests/programs/order.h"

#include <signal.h>
#include <unistd.h>

static void *volatile block;

static NOINLINE void handler(int sig)
{
    block = malloc((size_t)sig);
}

int main(void)
{
    signal(SIGPROF, handler);
    MUST(kill(getpid(), SIGPROF) == 0);
    while (!block)
        usleep(1000);
    return 0;
}
