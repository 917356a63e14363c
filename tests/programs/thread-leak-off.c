// expect: none
// runs: 10
// options: report_thread_leaks=0
// The kind can be switched off.
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
