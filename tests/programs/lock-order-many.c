// expect: none
// options: detect_deadlocks=1
// stock: ends with 64 locks held at once
// Hundreds of mutexes held at once, always in one order.
#include "tests/programs/order.h"

#define COUNT 300
static pthread_mutex_t mutexes[COUNT];

static void *work(void *unused)
{
    for (int i = 0; i < COUNT; i++)
        pthread_mutex_lock(&mutexes[i]);
    for (int i = COUNT; i-- > 0;)
        pthread_mutex_unlock(&mutexes[i]);
    return unused;
}

int main(void)
{
    for (int i = 0; i < COUNT; i++)
        pthread_mutex_init(&mutexes[i], NULL);
    run_both(work, work);
    return 0;
}
