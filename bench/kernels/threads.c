/* threads: prints by how many bytes the resident set grows for each thread that has begun, called a function and waits. */
#include "bench/kernels/kernel.h"

enum { COUNT = 500 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER, go = PTHREAD_COND_INITIALIZER;
static int running, may_end;

static void *wait_for_all(void *argument)
{
    pthread_mutex_lock(&lock);
    running++;
    pthread_cond_signal(&begun);
    while (!may_end)
        pthread_cond_wait(&go, &lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

static long resident(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    return kilobytes;
}

static void start(pthread_t *threads, int from, int to)
{
    for (int i = from; i < to; i++)
        if (pthread_create(&threads[i], NULL, wait_for_all, NULL))
            exit(1);
    pthread_mutex_lock(&lock);
    while (running < to)
        pthread_cond_wait(&begun, &lock);
    pthread_mutex_unlock(&lock);
}

int main(void)
{
    static pthread_t threads[COUNT];
    start(threads, 0, 10); /* what the first ones take, all need */
    long before = resident();
    start(threads, 10, COUNT);
    long after = resident();
    pthread_mutex_lock(&lock);
    may_end = 1;
    pthread_cond_broadcast(&go);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < COUNT; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", (after - before) * 1024 / (COUNT - 10));
}
