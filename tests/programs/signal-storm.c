// expect: none
// seconds: 60
// stock: delays signals
// A timer interrupts threads that access memory, lock, allocate and print, all the time; each signal is delivered, none is lost.
#include "tests/programs/order.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int arrived, own;
static volatile int stop;
static int shared;

static NOINLINE void handler(int sig)
{
    char local[64];
    memset(local, sig, sizeof local);
    atomic_fetch_add(&arrived, local[5] == sig);
    atomic_fetch_add_explicit(&own, 1, memory_order_acq_rel);
}

static NOINLINE void *work(void *unused)
{
    char line[64], copy[64];
    for (int i = 0; i < 3000 || atomic_load(&arrived) < 300; i++) {
        pthread_mutex_lock(&lock);
        shared++;
        pthread_mutex_unlock(&lock);
        char *block = malloc((size_t)(i % 500 + 1));
        block[0] = 1;
        snprintf(line, sizeof line, "%d %p", i, (void *)block);
        memcpy(copy, line, sizeof copy);
        free(block);
    }
    return unused;
}

int main(void)
{
    struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };
    MUST(sigaction(SIGPROF, &act, NULL) == 0 && sigaction(SIGALRM, &act, NULL) == 0);
    MUST(setitimer(ITIMER_REAL, &every, NULL) == 0);
    MUST(setitimer(ITIMER_PROF, &every, NULL) == 0);
    run_both(work, work);
    MUST(setitimer(ITIMER_REAL, &never, NULL) == 0 && setitimer(ITIMER_PROF, &never, NULL) == 0);
    MUST(atomic_load(&arrived) == atomic_load(&own));
    return 0;
}
