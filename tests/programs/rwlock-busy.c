// expect: none
// runs: 10
// Many readers, some writers.
#include "tests/programs/order.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int a, b;

static void *work(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        if (i % 10 == 0) {
            pthread_rwlock_wrlock(&lock);
            a++;
            b++;
        } else {
            pthread_rwlock_rdlock(&lock);
            MUST(a == b);
        }
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    MUST(a == 1200 && b == 1200);
    return 0;
}
