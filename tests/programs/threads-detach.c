// expect: none
// runs: 10
// A detached thread that hands its result over through a mutex and a condition.
#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int done, results[20];

static void *work(void *place)
{
    pthread_detach(pthread_self());
    *(int *)place = 7;
    pthread_mutex_lock(&mutex);
    done++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        MUST(pthread_create(&thread, &attributes, work, &results[i]) == 0);
        pthread_attr_destroy(&attributes);
    }
    pthread_mutex_lock(&mutex);
    while (done < 20)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 20; i++)
        MUST(results[i] == 7);
    return 0;
}
