// expect: race
// options: on_race=signal:race_signal=12
// reports: 1
/* SIGUSR2 comes before the access, although it is blocked, and tells the address. A handler that returns lets the access happen. */
#include <redflag.h>
#include <semaphore.h>
#include <signal.h>

#include "tests/programs/order.h"

static int x;
static sem_t nobody;
static volatile int before, times;
static sigjmp_buf away;

static void handle(int signal, siginfo_t *info, void *context)
{
    (void)context;
    const struct redflag_race *race = info->si_value.sival_ptr;
    MUST(signal == SIGUSR2 && info->si_addr == &x && race->address == &x && race->now.kind == REDFLAG_WRITE);
    __asm__ volatile("movl %1, %0" : "=r"(before) : "m"(x));
    if (times++)
        siglongjmp(away, 1);
}

static void *first(void *unused)
{
    x = 1;
    reach(1);
    await(3);
    sem_post(&nobody); /* djit and multilock look at an access of each epoch, and leave those out that repeat it */
    if (!sigsetjmp(away, 1)) {
        x = 4;
        exit(98);
    }
    MUST(times == 2 && before == 2);
    return unused;
}

static void *second(void *unused)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    await(1);
    x = 2;
    MUST(times == 1 && before == 1 && x == 2);
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    MUST(sigismember(&set, SIGUSR2) == 1);
    reach(3);
    return unused;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
    MUST(sigaction(SIGUSR2, &action, NULL) == 0 && sem_init(&nobody, 0, 0) == 0);
    run_both(first, second);
    return 0;
}
