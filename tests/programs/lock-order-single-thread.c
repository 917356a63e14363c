// expect: none
// runs: 10
// options: detect_deadlocks=1
// stock: warns of one thread that cannot block itself
// One thread alone uses both orders.
#include "tests/programs/order.h"

static pthread_mutex_t x = PTHREAD_MUTEX_INITIALIZER, y = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
    pthread_mutex_lock(&x);
    pthread_mutex_lock(&y);
    pthread_mutex_unlock(&y);
    pthread_mutex_unlock(&x);
    pthread_mutex_lock(&y);
    pthread_mutex_lock(&x);
    pthread_mutex_unlock(&x);
    pthread_mutex_unlock(&y);
    return 0;
}
