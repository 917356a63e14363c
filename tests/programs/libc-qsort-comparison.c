// expect: race
// runs: 10
// race-at: counts
// What a comparison does is looked at.
#include "tests/programs/order.h"

static int calls;

static NOINLINE int counts(const void *a, const void *b)
{
    calls++;
    return *(const int *)a - *(const int *)b;
}

static NOINLINE void *sorts(void *unused)
{
    int list[6] = { 5, 3, 1, 4, 2, 0 };
    await(1);
    qsort(list, 6, sizeof *list, counts);
    MUST(list[0] == 0 && list[5] == 5);
    return unused;
}

static NOINLINE void *writes(void *unused)
{
    calls = 0;
    reach(1);
    return unused;
}

int main(void)
{
    run_both(sorts, writes);
    return 0;
}
