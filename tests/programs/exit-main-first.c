// expect: none
// runs: 10
// stock: hangs
// The main thread ends by pthread_exit; the last thread ends the process.
#include "tests/programs/order.h"

static int data;

static void *work(void *unused)
{
    await(1);
    hidden_sleep(20);
    MUST(data == 3);
    return unused;
}

int main(void)
{
    pthread_t thread;
    data = 3;
    pthread_create(&thread, NULL, work, NULL);
    pthread_detach(thread);
    reach(1);
    pthread_exit(NULL);
}
