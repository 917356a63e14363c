// expect: race
// runs: 10
// race-at: prints
// snprintf writes its target.
#include "tests/programs/order.h"

static char line[40];

static NOINLINE void *prints(void *unused)
{
    snprintf(line, sizeof line, "%d %s", 42, "and more");
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(line[4] == 'n');
    return unused;
}

int main(void)
{
    run_both(prints, reads);
    return 0;
}
