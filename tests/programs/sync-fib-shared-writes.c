// expect: none
// options: sync=fib
// What eight running threads have read is written, again and again: each write needs a word from all of them, who are computing,
// waiting at a barrier, or asking for something themselves.
#include "tests/programs/order.h"

enum { THREADS = 8, ROUNDS = 60, WORDS = 64 };
static pthread_barrier_t barrier;
static long words[WORDS], halves[WORDS];
static long sums[THREADS];

static void *run(void *argument)
{
    long me = (long)argument, sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORDS; i++)
            sum += words[i] + (int)halves[i];
        pthread_barrier_wait(&barrier);
        for (int i = (int)me; i < WORDS; i += THREADS) {
            words[i] = round;
            *(int *)&halves[i] = round; /* a part: the map is divided */
        }
        pthread_barrier_wait(&barrier);
    }
    sums[me] = sum;
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        MUST(!pthread_create(&threads[i], NULL, run, (void *)i));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        MUST(sums[i] == sums[0]);
    return 0;
}
