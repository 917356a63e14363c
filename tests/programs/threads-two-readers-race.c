// expect: race
// runs: 10
// reports: 1
// race-at: read_first writer
// no-text: read_second
// Two threads read the same; the writer comes after the second one only. The first one reads again what it has read, which changes nothing.
#include "tests/programs/order.h"

#define COUNT 64

long shared[COUNT];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE long read_first(int i)
{
    return shared[i];
}

NOINLINE long read_second(int i)
{
    return shared[i];
}

NOINLINE void writer(int i)
{
    shared[i] = 1;
}

static void *first(void *unused)
{
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < COUNT; i++)
            MUST(read_first(i) == 0);
        reach(turn ? 3 : 1);
        await(2);
    }
    return unused;
}

static void *second(void *unused)
{
    await(1);
    for (int i = 0; i < COUNT; i++)
        MUST(read_second(i) == 0);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    reach(2);
    return unused;
}

static void *third(void *unused)
{
    await(3);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < COUNT; i++)
        writer(i);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_create(&threads[2], NULL, third, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
