// expect: race
// runs: 10
// race-at: first second localtime
// localtime has one result for all.
#include "tests/programs/order.h"

#include <time.h>

static NOINLINE void *first(void *unused)
{
    time_t t = 1000;
    MUST(localtime(&t));
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    time_t t = 2000;
    await(1);
    MUST(localtime(&t));
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
