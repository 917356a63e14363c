// expect: race
// runs: 10
// race-at: prints
// The text of a %s is read, wherever it stands in the format.
#include "tests/programs/order.h"

static char text[16] = "text";

static NOINLINE void *writes(void *unused)
{
    text[1] = 'E';
    reach(1);
    return unused;
}

static NOINLINE void *prints(void *unused)
{
    char line[100];
    await(1);
    MUST(snprintf(line, sizeof line, "%-5d|%*.*f|%Lf|%s", 1, 8, 2, 2.5, 3.5L, text) > 0);
    return unused;
}

int main(void)
{
    run_both(writes, prints);
    return 0;
}
