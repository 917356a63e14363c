// expect: race
// runs: 10
// kind: unlock of an unlocked mutex (or by a wrong thread)
// race-at: misuse
// A mutex is unlocked that nobody locked.
#include "tests/programs/order.h"

static pthread_mutex_t mutex;

NOINLINE void misuse(void)
{
    pthread_mutex_unlock(&mutex);
}

int main(void)
{
    pthread_mutex_init(&mutex, NULL);
    misuse();
    return 0;
}
