// expect: race
// runs: 10
// race-at: reader writer
// stock: keeps four accesses and forgets the fifth
// Many readers, then a writer that is ordered after all of them but one.
#include "tests/programs/order.h"

#define READERS 6

int shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE int reader(void)
{
    return shared;
}

NOINLINE void writer(void)
{
    shared = 1;
}

/* All but the first tell the writer through the mutex. */
static void *read_it(void *number)
{
    MUST(reader() == 0);
    if ((long)number != 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    arrive();
    return number;
}

static void *write_it(void *unused)
{
    await(READERS);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    writer();
    return unused;
}

int main(void)
{
    pthread_t readers[READERS], last;
    for (long i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, read_it, (void *)i);
    pthread_create(&last, NULL, write_it, NULL);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    pthread_join(last, NULL);
    return 0;
}
