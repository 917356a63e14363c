// expect: none
// runs: 10
// Whoever returns from pthread_once sees what was done in it.
#include "tests/programs/order.h"

static pthread_once_t once[100];
static int made[100], index_of_next;

static void make(void)
{
    made[index_of_next] = 1;
}

static void *use(void *unused)
{
    (void)unused;
    pthread_once(&once[0], make);
    MUST(made[0] == 1);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 100; i++)
        once[i] = (pthread_once_t)PTHREAD_ONCE_INIT;
    run_both(use, use);
    pthread_once(&once[0], make);
    for (index_of_next = 1; index_of_next < 100; index_of_next++) {
        pthread_once(&once[index_of_next], make);
        pthread_once(&once[index_of_next], make);
        MUST(made[index_of_next]);
    }
    return 0;
}
