// expect: none
// runs: 10
// A pool of buffers handed around with semaphores, a mutex only for the list.
#include <semaphore.h>

#include "tests/programs/order.h"

static sem_t empty, full;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int slots[3], write_at, read_at;

static void *produce(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        sem_wait(&empty);
        slots[write_at++ % 3] = i;
        sem_post(&full);
    }
    return unused;
}

static void *consume(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        sem_wait(&full);
        MUST(slots[read_at++ % 3] == i);
        sem_post(&empty);
    }
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    sem_init(&empty, 0, 3);
    sem_init(&full, 0, 0);
    run_both(produce, consume);
    sem_destroy(&empty);
    sem_destroy(&full);
    return 0;
}
