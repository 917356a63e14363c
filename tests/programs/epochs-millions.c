// expect: none
// seconds: 240
// Millions of releases: no clock may wrap into a false report.
#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter, old;

static void *work(void *unused)
{
    for (int i = 0; i < 1000000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    MUST(old == 1);
    return unused;
}

int main(void)
{
    old = 1;
    run_both(work, work);
    MUST(counter == 2000000);
    return 0;
}
