// expect: race
// runs: 10
// race-at: closes
// A stream that one thread closes and another uses, without order.
#define _GNU_SOURCE
#include "tests/programs/order.h"

static FILE *f;

static NOINLINE void *uses(void *unused)
{
    fputs("text", f);
    reach(1);
    return unused;
}

static NOINLINE void *closes(void *unused)
{
    await(1);
    fclose(f);
    return unused;
}

int main(void)
{
    f = tmpfile();
    MUST(f);
    run_both(uses, closes);
    return 0;
}
