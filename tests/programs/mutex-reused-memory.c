// expect: none
// runs: 10
// A mutex that is destroyed and made anew at the same place is another one.
#include "tests/programs/order.h"

static void *work(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        pthread_mutex_t *mutex = malloc(sizeof *mutex);
        pthread_mutex_init(mutex, NULL);
        pthread_create(&thread, NULL, work, mutex);
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
        pthread_join(thread, NULL);
        pthread_mutex_destroy(mutex);
        free(mutex);
    }
    return 0;
}
