// expect: race
// runs: 10
// race-at: first second
// text: (mutexes: write M2, write M3)
// text: (mutexes: write M4)
// Locks are taken and given back again and again, in the order of a stack and in others: what is held at the end is known.
#include "tests/programs/order.h"

#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, c = PTHREAD_MUTEX_INITIALIZER;
static int data, under_a, under_b, under_c;

static void turns(void)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&a);
        under_a++;
        pthread_mutex_lock(&b);
        under_b++;
        pthread_mutex_unlock(&a);
        pthread_mutex_lock(&c);
        under_c++;
        pthread_mutex_unlock(&b);
        pthread_mutex_unlock(&c);
        pthread_mutex_lock(&a);
        pthread_mutex_lock(&b);
        under_a++;
        under_b++;
        pthread_mutex_unlock(&b);
        pthread_mutex_unlock(&a);
    }
}

static NOINLINE void *first(void *unused)
{
    turns();
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    data++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    pthread_mutex_lock(&c);
    data++;
    pthread_mutex_unlock(&c);
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(data == 2 && under_a == 200 && under_b == 200 && under_c == 100);
    return 0;
}
