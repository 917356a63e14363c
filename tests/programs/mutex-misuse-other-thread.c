// expect: race
// runs: 10
// kind: unlock of an unlocked mutex (or by a wrong thread)
// race-at: misuse
// A mutex is unlocked by a thread that does not hold it.
#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void *misuse(void *unused)
{
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, misuse, NULL);
    pthread_join(thread, NULL);
    return 0;
}
