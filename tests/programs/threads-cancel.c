// expect: none
// runs: 10
// A thread is cancelled while it waits; its cleanup runs with the mutex held, and the join orders.
#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int waiting, cleaned;

static void clean(void *unused)
{
    (void)unused;
    cleaned++;
    pthread_mutex_unlock(&mutex);
}

static void *work(void *unused)
{
    pthread_mutex_lock(&mutex);
    waiting = 1;
    pthread_cleanup_push(clean, NULL);
    for (;;)
        pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(0);
    return unused;
}

int main(void)
{
    for (int i = 1; i <= 10; i++) {
        pthread_t thread;
        void *result;
        pthread_mutex_lock(&mutex);
        waiting = 0;
        pthread_mutex_unlock(&mutex);
        pthread_create(&thread, NULL, work, NULL);
        for (int there = 0; !there;) {
            pthread_mutex_lock(&mutex);
            there = waiting;
            pthread_mutex_unlock(&mutex);
        }
        pthread_cancel(thread);
        pthread_join(thread, &result);
        MUST(result == PTHREAD_CANCELED && cleaned == i);
        pthread_mutex_lock(&mutex);
        cleaned = i;
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
