// expect: none
// runs: 10
// options: report_destroy_locked=0
// The kind can be switched off.
#include "tests/programs/order.h"

static pthread_mutex_t mutex;

NOINLINE void misuse(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_destroy(&mutex);
}

int main(void)
{
    pthread_mutex_init(&mutex, NULL);
    misuse();
    return 0;
}
