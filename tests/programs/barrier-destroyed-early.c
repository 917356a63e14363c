// expect: race
// runs: 10
// race-at: pthread_barrier_destroy
// Who comes first out of a barrier may not destroy it: the others may not have left.
#include "tests/programs/order.h"

static pthread_barrier_t barrier;

static NOINLINE void *meet(void *unused)
{
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        pthread_barrier_destroy(&barrier);
    return unused;
}

int main(void)
{
    pthread_t other;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&other, NULL, meet, NULL);
    meet(NULL);
    pthread_join(other, NULL);
    return 0;
}
