// expect: race
// options: on_race=abort
// exit: 134
// no-text: not refused
#include "tests/programs/order.h"

int x; /* not static, so that its writes stay */

static void *first(void *unused)
{
    x = 1;
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    x = 2;
    fprintf(stderr, "not refused\n");
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
