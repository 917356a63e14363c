// expect: race
// runs: 10
// kind: lock-order-inversion (potential deadlock)
// options: detect_deadlocks=1
// A circle of three threads and three mutexes.
#include "tests/programs/order.h"

static pthread_mutex_t mutexes[3] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

static void *work(void *number)
{
    long me = (long)number;
    await((int)me);
    pthread_mutex_lock(&mutexes[me]);
    pthread_mutex_lock(&mutexes[(me + 1) % 3]);
    pthread_mutex_unlock(&mutexes[(me + 1) % 3]);
    pthread_mutex_unlock(&mutexes[me]);
    reach((int)me + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
