// expect: none
// runs: 10
// A bounded queue with two conditions.
#include "tests/programs/order.h"

#define SIZE 4
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int *queue[SIZE], head, count;

static void *produce(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        int *item = malloc(sizeof *item);
        *item = i;
        pthread_mutex_lock(&mutex);
        while (count == SIZE)
            pthread_cond_wait(&not_full, &mutex);
        queue[(head + count++) % SIZE] = item;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *consume(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        while (!count)
            pthread_cond_wait(&not_empty, &mutex);
        int *item = queue[head];
        head = (head + 1) % SIZE;
        count--;
        pthread_cond_broadcast(&not_full);
        pthread_mutex_unlock(&mutex);
        MUST(*item == i);
        free(item);
    }
    return unused;
}

int main(void)
{
    run_both(produce, consume);
    return 0;
}
