// expect: race
// runs: 10
// kind: unlock of an unlocked mutex (or by a wrong thread)
// race-at: misuse
// stock: does not look
// A read-write lock is unlocked that nobody holds.
#include "tests/programs/order.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE void misuse(void)
{
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_unlock(&lock);
}

int main(void)
{
    misuse();
    return 0;
}
