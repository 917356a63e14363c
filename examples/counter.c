/* A counter that two threads share without a lock, and a total that they share with one. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int total;
static int calls;

static void add(int amount)
{
    calls++; /* the race */
    pthread_mutex_lock(&mutex);
    total += amount;
    pthread_mutex_unlock(&mutex);
}

static void *work(void *unused)
{
    for (int i = 0; i < 1000; i++)
        add(1);
    return unused;
}

int main(void)
{
    pthread_t one, other;
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&other, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    printf("%d calls, %d in total\n", calls, total);
    return 0;
}
