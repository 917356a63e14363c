// expect: none
// runs: 10
// A conversion that was not made has written nothing.
#include "tests/programs/order.h"

static int number;

static NOINLINE void *scans(void *unused)
{
    int first;
    MUST(sscanf("12 no", "%d %d", &first, &number) == 1 && first == 12);
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(number == 0);
    return unused;
}

int main(void)
{
    run_both(scans, reads);
    return 0;
}
