// expect: race
// options: on_race=exception
// race-at: last
// no-text: not refused
/* In the main thread it ends the program. */
#include "tests/programs/order.h"

int x; /* not static, so that its writes stay */

static void *work(void *unused)
{
    (void)unused;
    x = 1;
    reach(1);
    return NULL;
}

static NOINLINE void last(void)
{
    x = 2;
    fprintf(stderr, "not refused\n");
}

int main(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, work, NULL) == 0);
    await(1);
    last();
    return 0;
}
