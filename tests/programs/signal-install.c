// expect: none
// runs: 10
// stock: reports a race here
// Installing a handler comes before its runs, and so does sending the signal.
#include "tests/programs/order.h"

#include <signal.h>

static int before_install, before_send, seen;
static pthread_t target;

static NOINLINE void handler(int sig)
{
    seen = before_install + before_send + (sig == SIGUSR1);
}

static NOINLINE void *receives(void *unused)
{
    reach(1);
    while (!__atomic_load_n(&seen, __ATOMIC_RELAXED))
        hidden_yield();
    return unused;
}

static NOINLINE void *sends(void *unused)
{
    struct sigaction act = { .sa_handler = handler };
    await(1);
    before_install = 1;
    MUST(sigaction(SIGUSR1, &act, NULL) == 0);
    before_send = 1;
    MUST(pthread_kill(target, SIGUSR1) == 0);
    return unused;
}

int main(void)
{
    pthread_t other;
    MUST(pthread_create(&target, NULL, receives, NULL) == 0);
    MUST(pthread_create(&other, NULL, sends, NULL) == 0);
    MUST(pthread_join(target, NULL) == 0 && pthread_join(other, NULL) == 0);
    MUST(seen == 3);
    return 0;
}
