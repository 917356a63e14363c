// expect: race
// runs: 5
// race-at: traverse program
// The same without a section: who looks at every access reports a race that is not the program's.
#include "tests/programs/order.h"

static long object[2];

static NOINLINE long traverse(void)
{
    long seen = 0;
    for (int i = 0; i < 2; i++)
        seen += object[i];
    return seen;
}

static void *collector(void *unused)
{
    MUST(traverse() == 0);
    reach(1);
    return unused;
}

static NOINLINE void *program(void *unused)
{
    await(1);
    object[1] = 5;
    return unused;
}

int main(void)
{
    run_both(collector, program);
    return 0;
}
