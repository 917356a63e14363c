// expect: race
// runs: 10
// race-at: pads strncpy
// strncpy writes all of its target, with zeros behind the string.
#include "tests/programs/order.h"

#include <string.h>

static char to[64];
char *(*volatile copy)(char *, const char *, size_t) = strncpy;

static NOINLINE void *pads(void *unused)
{
    copy(to, "x", sizeof to);
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(to[60] == 0);
    return unused;
}

int main(void)
{
    run_both(pads, reads);
    return 0;
}
