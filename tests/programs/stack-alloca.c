// expect: none
// runs: 10
// Frames that come and go on one stack, alloca, and a signal stack of locals passed down.
#include <alloca.h>

#include "tests/programs/order.h"

NOINLINE int deep(int n, int *above)
{
    int local = *above + 1;
    volatile char *room = alloca((size_t)n * 3 + 1);
    room[n] = (char)n;
    return n ? deep(n - 1, &local) + room[n] - (char)n : local;
}

static void *work(void *unused)
{
    for (int i = 0; i < 50; i++) {
        int start = 0;
        MUST(deep(200, &start) == 201);
    }
    return unused;
}

int main(void)
{
    run_both(work, work);
    return 0;
}
