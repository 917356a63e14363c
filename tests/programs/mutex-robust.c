// expect: none
// runs: 10
// stock: the death of an owner orders nothing
// The owner of a robust mutex dies; who gets EOWNERDEAD is ordered after it.
#include <errno.h>

#include "tests/programs/order.h"

static pthread_mutex_t mutex;
static int shared;

static void *dies(void *unused)
{
    pthread_mutex_lock(&mutex);
    shared = 1;
    reach(1);
    return unused;
}

static void *goes_on(void *unused)
{
    await(1);
    MUST(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    MUST(shared == 1);
    shared = 2;
    pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
    MUST(pthread_mutex_lock(&mutex) == 0);
    shared = 3;
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    run_both(dies, goes_on);
    pthread_mutex_lock(&mutex);
    MUST(shared == 3);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
    return 0;
}
