// expect: race
// runs: 10
// race-at: sum writer
// Three threads read the same vectors again and again; a writer of the second half of one is ordered after all of them but one.
#include "tests/programs/order.h"

typedef double vector __attribute__((vector_size(16), aligned(8)));

double shared[8];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE double sum(const double *from)
{
    vector all = { 0, 0 };
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 8; i += 2)
            all += *(const vector *)(from + i);
    return all[0] + all[1];
}

NOINLINE void writer(void)
{
    shared[5] = 1;
}

/* All but the first tell the writer through the mutex. */
static void *read_it(void *number)
{
    for (int i = 0; i < 3; i++)
        MUST(sum(shared) == 0);
    if ((long)number != 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    arrive();
    return number;
}

static void *write_it(void *unused)
{
    await(3);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    writer();
    return unused;
}

int main(void)
{
    pthread_t readers[3], last;
    for (long i = 0; i < 3; i++)
        pthread_create(&readers[i], NULL, read_it, (void *)i);
    pthread_create(&last, NULL, write_it, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    pthread_join(last, NULL);
    return 0;
}
