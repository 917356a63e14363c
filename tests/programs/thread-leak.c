// expect: race
// runs: 10
// kind: thread leak
// race-at: start_it
// A thread that was neither joined nor detached when the program ended.
#include "tests/programs/order.h"

NOINLINE void *work(void *unused)
{
    reach(hidden_tid());
    return unused;
}

NOINLINE void start_it(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
}

int main(void)
{
    start_it();
    await(1);
    await_end(present_stage());
    return 0;
}
