// expect: race
// kind: signal handler spoils errno
// race-at: handler
// A handler that changes errno behind the back of the code it interrupts.
#include "tests/programs/order.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static volatile int done;

static NOINLINE void handler(int sig)
{
    errno = sig + 1000;
    done = 1;
}

static NOINLINE void *interrupted(void *unused)
{
    reach(1);
    while (!done)
        usleep(1000);
    return unused;
}

int main(void)
{
    pthread_t t;
    signal(SIGPROF, handler);
    MUST(pthread_create(&t, NULL, interrupted, NULL) == 0);
    await(1);
    MUST(pthread_kill(t, SIGPROF) == 0);
    MUST(pthread_join(t, NULL) == 0);
    return 0;
}
