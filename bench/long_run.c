/* A run without end and without races, for what a detector's memory does in time: four threads that lock, hand blocks over by atomics, meet
 * at barriers, and allocate. `long_run SECONDS STEP [PAUSE]` prints the resident memory every STEP seconds, and how much work was done; after each
 * round it sleeps for PAUSE milliseconds. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, LOCKS = 16, ROUND = 500 };

static pthread_mutex_t locks[LOCKS];
static long guarded[LOCKS][64];
static _Atomic(long *) mailbox[THREADS];
static pthread_barrier_t barrier;
static atomic_int ending;
static atomic_long rounds;
static struct timespec pause_between;

static void one(unsigned *random, int me)
{
    *random = *random * 1103515245u + 12345u;
    unsigned at = *random >> 16 & (LOCKS - 1);
    pthread_mutex_lock(&locks[at]);
    for (int i = 0; i < 64; i++)
        guarded[at][i]++;
    pthread_mutex_unlock(&locks[at]);
    long *block = malloc(64 + at);
    block[0] = me;
    block[3] = (long)at;
    long *other = atomic_exchange(&mailbox[(me + 1) % THREADS], block);
    if (other && other[0] < 0)
        abort();
    free(other);
}

static void *run(void *argument)
{
    int me = (int)(long)argument;
    unsigned random = (unsigned)me * 77 + 1;
    for (;;) {
        for (int i = 0; i < ROUND; i++)
            one(&random, me);
        pthread_barrier_wait(&barrier);
        int stop = atomic_load(&ending); /* nobody changes it before the next barrier */
        pthread_barrier_wait(&barrier);
        if (me == 0)
            atomic_fetch_add(&rounds, 1);
        if (stop)
            return NULL;
        if (pause_between.tv_nsec)
            nanosleep(&pause_between, NULL);
    }
}

static long resident(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &kilobytes);
    if (file)
        fclose(file);
    return kilobytes;
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 60, step = argc > 2 ? atoi(argv[2]) : 10;
    pthread_t threads[THREADS];
    pause_between.tv_nsec = (argc > 3 ? atol(argv[3]) % 1000 : 0) * 1000000;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&locks[i], NULL);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int now = 0; now < seconds; now += step) {
        struct timespec pause = { .tv_sec = step };
        nanosleep(&pause, NULL);
        printf("%d seconds: %ld kilobytes, %ld rounds\n", now + step, resident(), atomic_load(&rounds));
        fflush(stdout);
    }
    atomic_store(&ending, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
