// expect: race
// runs: 5
// race-at: increment
// Wood, Figure 4.1, upper left: two threads increment o.n without synchronisation; between the two the world is stopped for a
// collection, with a lock, a condition and a barrier of the runtime system. The race is there all the same.
#include "tests/programs/order.h"

#include <redflag.h>

static struct {
    long n;
} o;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t stopped;
static int safepoints;

static NOINLINE void increment(void)
{
    o.n++;
}

static void stop_the_world(void)
{
    redflag_system_begin();
    pthread_barrier_wait(&stopped);
    pthread_mutex_lock(&mutex);
    safepoints++;
    pthread_mutex_unlock(&mutex);
    __atomic_fetch_add(&safepoints, 1, __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&stopped);
    redflag_system_end();
}

static void *first(void *unused)
{
    increment();
    stop_the_world();
    return unused;
}

static void *second(void *unused)
{
    stop_the_world();
    increment();
    return unused;
}

int main(void)
{
    pthread_barrier_init(&stopped, NULL, 2);
    run_both(first, second);
    return 0;
}
