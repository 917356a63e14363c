// expect: none
// seconds: 120
// Many threads and all kinds of synchronisation: what one knows of the others comes by every way.
#include <semaphore.h>
#include <stdatomic.h>

#include "tests/programs/order.h"

enum { THREADS = 30, ROUNDS = 256, PLACES = 8, KINDS = 7, MEET = 64 };

static struct place {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    sem_t semaphore;
    atomic_int flag;
    long by_mutex, by_rwlock, by_semaphore, by_flag;
} places[PLACES];
static pthread_barrier_t barrier;
static long own[THREADS];

static void *leaf(void *sum)
{
    ++*(long *)sum;
    pthread_mutex_lock(&places[0].mutex);
    places[0].by_mutex++;
    pthread_mutex_unlock(&places[0].mutex);
    return NULL;
}

static void by_child(void)
{
    pthread_t child;
    long sum = 0;
    MUST(pthread_create(&child, NULL, leaf, &sum) == 0);
    pthread_join(child, NULL);
    MUST(sum == 1);
}

/* Taken if it is free. */
static void by_flag(struct place *place)
{
    int free = 0;
    if (!atomic_compare_exchange_strong(&place->flag, &free, 1))
        return;
    place->by_flag++;
    atomic_store_explicit(&place->flag, 0, memory_order_release);
}

static void by_fences(struct place *place)
{
    int free = 0;
    if (!atomic_compare_exchange_strong_explicit(&place->flag, &free, 1, memory_order_relaxed, memory_order_relaxed))
        return;
    atomic_thread_fence(memory_order_acquire);
    place->by_flag++;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&place->flag, 0, memory_order_relaxed);
}

static void step(struct place *place, unsigned kind, int round)
{
    switch (kind) {
    case 0:
        pthread_mutex_lock(&place->mutex);
        place->by_mutex++;
        pthread_mutex_unlock(&place->mutex);
        break;
    case 1:
        pthread_rwlock_rdlock(&place->rwlock);
        MUST(place->by_rwlock >= 0);
        pthread_rwlock_unlock(&place->rwlock);
        break;
    case 2:
        pthread_rwlock_wrlock(&place->rwlock);
        place->by_rwlock++;
        pthread_rwlock_unlock(&place->rwlock);
        break;
    case 3:
        sem_wait(&place->semaphore);
        place->by_semaphore++;
        sem_post(&place->semaphore);
        break;
    case 4:
        by_flag(place);
        break;
    case 5:
        by_fences(place);
        break;
    default:
        if (round % 16 == 0)
            by_child();
    }
}

static void *work(void *number)
{
    long me = (long)number;
    unsigned seed = (unsigned)me * 7919 + 1;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned random = (unsigned)rand_r(&seed);
        step(&places[random % PLACES], random / PLACES % KINDS, round);
        if (round % MEET != MEET - 1)
            continue;
        own[me]++;
        pthread_barrier_wait(&barrier);
        MUST(own[(me + 1) % THREADS] == round / MEET + 1);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < PLACES; i++) {
        pthread_mutex_init(&places[i].mutex, NULL);
        pthread_rwlock_init(&places[i].rwlock, NULL);
        sem_init(&places[i].semaphore, 0, 1);
    }
    for (long i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
