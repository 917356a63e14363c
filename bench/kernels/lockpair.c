/* lockpair: prints the nanoseconds of processor time that one lock and unlock of a free mutex takes, best of some rounds. No other
 * is held. A second thread exists, so that libc does not take the way of programs with one. */
#include <time.h>
#include <unistd.h>

#include "bench/kernels/kernel.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int gate[2];

static void *wait_at_gate(void *argument)
{
    char byte;
    return read(gate[0], &byte, 1) == 1 ? argument : NULL;
}

int main(void)
{
    enum { PAIRS = 1000000 };
    pthread_t other;
    if (pipe(gate))
        return 1;
    pthread_create(&other, NULL, wait_at_gate, NULL);
    double best = 1e9;
    for (int round = 0; round < 7; round++) {
        struct timespec start, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        for (int i = 0; i < PAIRS; i++) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        double time = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / PAIRS;
        best = time < best ? time : best;
    }
    if (write(gate[1], "", 1) != 1)
        return 1;
    pthread_join(other, NULL);
    printf("%.1f\n", best);
}
