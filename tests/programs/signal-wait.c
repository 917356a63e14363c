// expect: none
// runs: 10
// stock: reports a race here
// A signal that is waited for, by sigwait or through a descriptor, was sent before.
#include "tests/programs/order.h"

#include <signal.h>
#include <unistd.h>

static int data;
static sigset_t set;

static NOINLINE void *sends(void *unused)
{
    data = 5;
    MUST(kill(getpid(), SIGUSR1) == 0);
    return unused;
}

static NOINLINE void *waits(void *unused)
{
    int sig;
    MUST(sigwait(&set, &sig) == 0 && sig == SIGUSR1);
    MUST(data == 5);
    return unused;
}

int main(void)
{
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    run_both(sends, waits);
    return 0;
}
