// expect: race
// runs: 10
// kind: destroy of a locked mutex
// race-at: misuse
// A mutex is destroyed while it is locked.
#include "tests/programs/order.h"

static pthread_mutex_t mutex;

NOINLINE void misuse(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_destroy(&mutex);
}

int main(void)
{
    pthread_mutex_init(&mutex, NULL);
    misuse();
    return 0;
}
