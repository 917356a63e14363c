// expect: none
// runs: 10
// Blocks are allocated by one thread and freed by another, handed over under a mutex.
#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int *waiting[64], count, produced;

static void *produce(void *unused)
{
    for (int i = 0; i < 3000;) {
        int *block = malloc(16 + (size_t)i % 500);
        *block = i;
        pthread_mutex_lock(&mutex);
        if (count < 64) {
            waiting[count++] = block;
            block = NULL;
            i++;
        }
        pthread_mutex_unlock(&mutex);
        free(block);
    }
    pthread_mutex_lock(&mutex);
    produced = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *consume(void *unused)
{
    for (int done = 0; !done;) {
        int *block = NULL;
        pthread_mutex_lock(&mutex);
        if (count)
            block = waiting[--count];
        else
            done = produced;
        pthread_mutex_unlock(&mutex);
        if (block)
            MUST(*block >= 0);
        free(block);
    }
    return unused;
}

int main(void)
{
    run_both(produce, consume);
    return 0;
}
