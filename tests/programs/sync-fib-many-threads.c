// expect: none
// options: sync=fib
// Two thousand threads, two hundred at a time, that hand words around: owners end, their names are used again, and nobody waits for ever.
#include "tests/programs/order.h"

enum { WAVES = 10, AT_ONCE = 200, WORDS = 16 };
static pthread_mutex_t locks[WORDS];
static long words[WORDS], constant[WORDS];

static void *run(void *argument)
{
    long number = (long)argument;
    for (long i = 0; i < 20; i++) {
        long word = (number * 7 + i) % WORDS;
        pthread_mutex_lock(&locks[word]);
        words[word] += 1 + constant[(word + i) % WORDS];
        pthread_mutex_unlock(&locks[word]);
    }
    return NULL;
}

int main(void)
{
    for (int i = 0; i < WORDS; i++)
        pthread_mutex_init(&locks[i], NULL);
    for (int wave = 0; wave < WAVES; wave++) {
        pthread_t threads[AT_ONCE];
        for (long i = 0; i < AT_ONCE; i++)
            MUST(!pthread_create(&threads[i], NULL, run, (void *)i));
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < WORDS; i++) /* the maps of their readers are written over: their readers have ended */
            constant[i] = 0;
    }
    long sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += words[i];
    MUST(sum == WAVES * AT_ONCE * 20);
    return 0;
}
