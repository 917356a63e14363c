// expect: none
// runs: 10
// stock: delays signals until the next call of libc
// A thread that only computes gets its signals at once.
#include "tests/programs/order.h"

#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t rang;

static void handler(int sig)
{
    rang = sig;
}

int main(void)
{
    struct itimerval once = { { 0, 0 }, { 0, 20000 } };
    unsigned long turns = 0;
    signal(SIGALRM, handler);
    MUST(setitimer(ITIMER_REAL, &once, NULL) == 0);
    while (!rang)
        turns++;
    MUST(turns > 0);
    return 0;
}
