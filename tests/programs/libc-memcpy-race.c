// expect: race
// runs: 10
// race-at: copies_in memcpy
// A large memcpy is a call of libc: it writes all of its target.
#include "tests/programs/order.h"

#include <string.h>

static char from[4096], to[4096];

static NOINLINE void *copies_in(void *unused)
{
    memcpy(to, from, sizeof to);
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(to[4000] == 0);
    return unused;
}

int main(void)
{
    run_both(copies_in, reads);
    return 0;
}
