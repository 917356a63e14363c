/* A bounded queue between producers and consumers: a mutex and two conditions; what travels is a filled block. */
#include "bench/kernels/kernel.h"

enum { ROOM = 64, BLOCKS = SCALED(100000), WORDS = 512 };

static uint64_t *queue[ROOM];
static unsigned first, count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;

static void *consume(void *argument)
{
    uint64_t sum = 0;
    for (int i = 0; i < BLOCKS; i++) {
        pthread_mutex_lock(&lock);
        while (!count)
            pthread_cond_wait(&not_empty, &lock);
        uint64_t *block = queue[first];
        first = (first + 1) % ROOM;
        count--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
        for (int j = 0; j < WORDS; j++)
            sum += block[j];
        free(block);
    }
    *(uint64_t *)argument = sum;
    return NULL;
}

int main(void)
{
    uint64_t sum = 0, sent = 0, seed = 5;
    pthread_t consumer;
    pthread_create(&consumer, NULL, consume, &sum);
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t *block = malloc(WORDS * sizeof *block);
        for (int j = 0; j < WORDS; j++)
            sent += block[j] = random_next(&seed);
        pthread_mutex_lock(&lock);
        while (count == ROOM)
            pthread_cond_wait(&not_full, &lock);
        queue[(first + count++) % ROOM] = block;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    pthread_join(consumer, NULL);
    printf("%llu\n", (unsigned long long)sum);
    return sum != sent;
}
