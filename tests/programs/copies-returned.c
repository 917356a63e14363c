// expect: none
// A structure that a call returns is written when the call has come back: what the call waited for comes before.
#include <pthread.h>

struct large {
    char text[64];
};

static struct large shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static int written;

static __attribute__((noinline)) struct large wait_and_give(void)
{
    struct large result = { { 1 } };
    pthread_mutex_lock(&mutex);
    while (!written)
        pthread_cond_wait(&told, &mutex);
    pthread_mutex_unlock(&mutex);
    return result;
}

static void *receive(void *unused)
{
    shared = wait_and_give();
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, receive, NULL);
    shared.text[3] = 2;
    pthread_mutex_lock(&mutex);
    written = 1;
    pthread_cond_signal(&told);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    return 0;
}
