// expect: none
// runs: 10
// options: report_mutex_bugs=0
// An error-checking mutex answers EDEADLK and EPERM, and a failed lock or unlock changes nothing.
#include <errno.h>

#include "tests/programs/order.h"

static pthread_mutex_t mutex;
static int counter;

static void *work(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        MUST(pthread_mutex_lock(&mutex) == 0);
        MUST(pthread_mutex_lock(&mutex) == EDEADLK);
        counter++;
        MUST(pthread_mutex_unlock(&mutex) == 0);
        MUST(pthread_mutex_unlock(&mutex) == EPERM);
    }
    return unused;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    run_both(work, work);
    MUST(counter == 2000);
    return 0;
}
