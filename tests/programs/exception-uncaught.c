// expect: race
// options: on_race=exception
// race-at: alone
// reports: 1
// text: T1 ends: nobody has caught its data race
// text: cleaned up
/* The thread ends as if it were cancelled, its clean-ups are run, and the rest of the program goes on. */
#include "tests/programs/order.h"

static int x;

static void clean(void *unused)
{
    (void)unused;
    fprintf(stderr, "cleaned up\n");
}

static NOINLINE void alone(void)
{
    x = 2;
    fprintf(stderr, "not refused\n");
    exit(98);
}

static void *work(void *unused)
{
    (void)unused;
    pthread_cleanup_push(clean, NULL);
    await(1);
    alone();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    void *result = NULL;
    MUST(pthread_create(&thread, NULL, work, NULL) == 0);
    x = 1;
    reach(1);
    MUST(pthread_join(thread, &result) == 0);
    MUST(result == PTHREAD_CANCELED && x == 1);
    return 0;
}
