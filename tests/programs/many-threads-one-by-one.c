// expect: none
// seconds: 120
// Twenty thousand threads, one after the other, in one counter.
#include "tests/programs/order.h"

static int counter;

static void *work(void *unused)
{
    counter++;
    return unused;
}

int main(void)
{
    for (int i = 0; i < 20000; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, work, NULL) == 0);
        pthread_join(thread, NULL);
    }
    MUST(counter == 20000);
    return 0;
}
