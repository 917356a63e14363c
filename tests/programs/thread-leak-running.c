// expect: none
// runs: 10
// A detached thread that still runs at the end is none.
#include "tests/programs/order.h"

static void *work(void *unused)
{
    reach(1);
    for (;;)
        hidden_yield();
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_detach(thread);
    await(1);
    return 0;
}
