// expect: none
// seconds: 120
// More threads alive at once than fit in eight bits.
#include "tests/programs/order.h"

#define THREADS 600

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter, own[THREADS];

static void *work(void *number)
{
    own[(long)number] = 1;
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
    arrive();
    await(THREADS);
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(void)
{
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    for (long i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], &attributes, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        MUST(own[i] == 1);
    }
    MUST(counter == 2 * THREADS);
    return 0;
}
