/* examples/counter.c with its race repaired: every access to both variables is under the mutex, or after the joins. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int total;
static int calls;

static void add(int amount)
{
    pthread_mutex_lock(&mutex);
    calls++;
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
