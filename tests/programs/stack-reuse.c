// expect: none
// runs: 10
// Stacks of threads that ended are used by new ones, which nothing orders after them.
#include "tests/programs/order.h"

static void *work(void *unused)
{
    volatile char local[5000];
    for (unsigned i = 0; i < sizeof local; i++)
        local[i] = (char)i;
    MUST(local[77] == 77);
    return unused;
}

static void *starts(void *unused)
{
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, work, NULL) == 0);
        pthread_join(thread, NULL);
    }
    return unused;
}

int main(void)
{
    run_both(starts, starts);
    return 0;
}
