// expect: none
// runs: 10
// text: last words
// Functions of atexit run in the exiting thread, instrumented, and see all that came before.
#include "tests/programs/order.h"

static int data;

static void last(void)
{
    MUST(data == 2);
    data = 3;
    puts("last words");
}

static void *work(void *unused)
{
    data = 2;
    return unused;
}

int main(void)
{
    pthread_t thread;
    atexit(last);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
