// expect: none
// options: sync=fib
// Handlers access memory while their threads wait for a lock, for a pipe, or for the answer of another thread; and the process forks.
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

enum { THREADS = 4, ROUNDS = 2000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long shared;
static _Thread_local volatile long handled;
static int pipes[2];

static void handler(int signal)
{
    (void)signal;
    handled++;
}

static void *run(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        shared++;
        pthread_mutex_unlock(&lock);
        char byte = 1;
        if (i % 16 == 0) {
            MUST(write(pipes[1], &byte, 1) == 1);
            while (read(pipes[0], &byte, 1) != 1)
                MUST(errno == EINTR);
        }
    }
    return unused;
}

int main(void)
{
    struct itimerval often = { { 0, 500 }, { 0, 500 } };
    signal(SIGALRM, handler);
    MUST(!pipe(pipes));
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_create(&threads[i], NULL, run, NULL));
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (!child) { /* owners that are not here any more: their words are free to take */
            long *word = &shared;
            *word += 1;
            _exit(0);
        }
        int status = -1;
        while (waitpid(child, &status, 0) < 0)
            MUST(errno == EINTR);
        MUST(status == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MUST(shared == THREADS * ROUNDS);
    return 0;
}
