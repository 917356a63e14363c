// expect: none
// runs: 10
// Only the last unlock of a recursive mutex lets others in.
#include "tests/programs/order.h"

static pthread_mutex_t mutex;
static int counter;

static void *work(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_lock(&mutex);
        MUST(pthread_mutex_trylock(&mutex) == 0);
        pthread_mutex_unlock(&mutex);
        pthread_mutex_unlock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    run_both(work, work);
    MUST(counter == 4000);
    pthread_mutex_destroy(&mutex);
    return 0;
}
