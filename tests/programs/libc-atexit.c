// expect: none
// runs: 10
// text: handler saw 7
// Registering an exit handler comes before its run.
#include "tests/programs/order.h"

#include <unistd.h>

static int data;

static NOINLINE void handler(void)
{
    printf("handler saw %d\n", data);
}

static NOINLINE void *registers(void *unused)
{
    data = 7;
    MUST(atexit(handler) == 0);
    reach(1);
    return unused;
}

int main(void)
{
    pthread_t t;
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
    MUST(pthread_create(&t, &a, registers, NULL) == 0);
    await(1);
    return 0;
}
