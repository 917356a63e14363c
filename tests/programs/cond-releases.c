// expect: none
// runs: 10
// A wait lets go of the mutex: who changes the data meanwhile is ordered on both sides.
#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, data;

static void play(int me)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 500; i++) {
        while (turn != me)
            pthread_cond_wait(&changed, &mutex);
        data++;
        turn = !me;
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&mutex);
}

static void *even(void *unused)
{
    play(0);
    return unused;
}

static void *odd(void *unused)
{
    play(1);
    return unused;
}

int main(void)
{
    run_both(even, odd);
    MUST(data == 1000);
    return 0;
}
