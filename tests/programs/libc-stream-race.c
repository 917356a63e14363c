// expect: race
// runs: 10
// race-at: fills
// fread and getline write what they read.
#define _GNU_SOURCE
#include "tests/programs/order.h"

static char buffer[32];

static NOINLINE void *fills(void *unused)
{
    FILE *f = tmpfile();
    MUST(f && fwrite("a line\n", 1, 7, f) == 7);
    rewind(f);
    MUST(fread(buffer, 1, sizeof buffer, f) == 7);
    fclose(f);
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(buffer[6] == '\n');
    return unused;
}

int main(void)
{
    run_both(fills, reads);
    return 0;
}
