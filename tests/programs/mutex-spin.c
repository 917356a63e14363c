// expect: none
// runs: 10
// Spin locks order as mutexes.
#include "tests/programs/order.h"

int shared;
static pthread_spinlock_t lock;

__attribute__((constructor)) static void start(void)
{
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
}

NOINLINE void first(void)
{
    pthread_spin_lock(&lock);
    shared = 1;
    pthread_spin_unlock(&lock);
}

NOINLINE void second(void)
{
    MUST(pthread_spin_trylock(&lock) == 0);
    shared = 2;
    pthread_spin_unlock(&lock);
    pthread_spin_lock(&lock);
    shared = 3;
    pthread_spin_unlock(&lock);
}

static void *one(void *unused)
{
    first();
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    second();
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
