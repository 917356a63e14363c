// expect: race
// runs: 10
// race-at: sorts
// qsort writes the array; the comparison is the program's, and may race by itself.
#include "tests/programs/order.h"

static int list[6] = { 5, 3, 1, 4, 2, 0 };

static NOINLINE int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static NOINLINE void *sorts(void *unused)
{
    qsort(list, 6, sizeof *list, by_value);
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(list[5] == 5);
    return unused;
}

int main(void)
{
    run_both(sorts, reads);
    return 0;
}
