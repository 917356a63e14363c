// expect: none
// runs: 10
// Each round of a barrier orders all before it with all after it.
#include "tests/programs/order.h"

#define THREADS 3
static pthread_barrier_t barrier;
static int cells[THREADS];

static void *work(void *number)
{
    long me = (long)number;
    for (int round = 1; round <= 200; round++) {
        cells[me] = round;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < THREADS; i++)
            MUST(cells[i] == round);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    return 0;
}
