// expect: none
// runs: 10
// A mutex that one thread has all the time, and on whose address others say what they have done meanwhile.
#include "tests/programs/order.h"

#include <pthread.h>

void AnnotateHappensBefore(const char *file, int line, const volatile void *addr);
void AnnotateHappensAfter(const char *file, int line, const volatile void *addr);

enum { TURNS = 20000, SAID = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int data[SAID], held;

static void turn(void)
{
    pthread_mutex_lock(&mutex);
    held++;
    pthread_mutex_unlock(&mutex);
}

static NOINLINE void *use(void *unused)
{
    turn();
    turn();
    reach(1);
    for (int i = 0; i < TURNS; i++)
        turn();
    await(2);
    AnnotateHappensAfter(__FILE__, __LINE__, &mutex);
    for (int i = 0; i < SAID; i++)
        MUST(data[i] == i);
    return unused;
}

static NOINLINE void *say(void *unused)
{
    await(1);
    for (int i = 0; i < SAID; i++) {
        data[i] = i;
        AnnotateHappensBefore(__FILE__, __LINE__, &mutex);
    }
    reach(2);
    return unused;
}

int main(void)
{
    run_both(use, say);
    MUST(held == TURNS + 2);
    return 0;
}
