// expect: none
// runs: 10
// stock: shows flags of its own
// What the program asks of its handlers is what it set, and what it set is what happens.
#define _GNU_SOURCE
#include "tests/programs/order.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static volatile int runs, depth, deepest;

static void plain(int sig)
{
    runs += sig == SIGUSR1;
}

static void full(int sig, siginfo_t *info, void *context)
{
    runs += info && context && info->si_signo == sig && info->si_pid == getpid();
}

static void nested(int sig)
{
    if (++depth > deepest)
        deepest = depth;
    if (deepest < 3)
        raise(sig);
    depth--;
}

int main(void)
{
    struct sigaction act = { .sa_handler = plain, .sa_flags = SA_RESTART }, old;
    MUST(signal(SIGUSR1, plain) == SIG_DFL);
    MUST(signal(SIGUSR1, SIG_IGN) == plain);
    MUST(raise(SIGUSR1) == 0 && runs == 0);
    MUST(signal(SIGUSR1, plain) == SIG_IGN);
    MUST(raise(SIGUSR1) == 0 && runs == 1);
    MUST(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == plain && !(old.sa_flags & SA_SIGINFO) && (old.sa_flags & SA_RESTART));
    sigaddset(&act.sa_mask, SIGUSR2);
    MUST(sigaction(SIGUSR1, &act, &old) == 0 && old.sa_handler == plain);
    MUST(sigaction(SIGUSR1, NULL, &old) == 0 && sigismember(&old.sa_mask, SIGUSR2) && !sigismember(&old.sa_mask, SIGTERM));
    act.sa_sigaction = full;
    act.sa_flags = SA_SIGINFO | SA_RESETHAND;
    MUST(sigaction(SIGUSR1, &act, &old) == 0 && old.sa_handler == plain);
    MUST(raise(SIGUSR1) == 0 && runs == 2);
    MUST(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    act.sa_handler = nested;
    act.sa_flags = SA_NODEFER;
    MUST(sigaction(SIGUSR1, &act, NULL) == 0);
    MUST(raise(SIGUSR1) == 0 && deepest == 3 && depth == 0);
    MUST(sigaction(SIGKILL, &act, NULL) == -1 && errno == EINVAL);
    MUST(sigaction(1000, &act, NULL) == -1 && errno == EINVAL);
    MUST(signal(SIGUSR2, SIG_ERR) == SIG_ERR && errno == EINVAL);
    return 0;
}
