// expect: race
// runs: 10
// race-at: reads strlen
// strlen reads the string and its end.
#include "tests/programs/order.h"

#include <string.h>

static char text[32] = "four";
size_t (*volatile length)(const char *) = strlen;

static NOINLINE void *writes(void *unused)
{
    text[4] = 0;
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(length(text) == 4);
    return unused;
}

int main(void)
{
    run_both(writes, reads);
    return 0;
}
