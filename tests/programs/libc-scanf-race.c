// expect: race
// runs: 10
// race-at: scans
// sscanf writes through the arguments of the conversions it has made.
#include "tests/programs/order.h"

static int number;
static char word[16];

static NOINLINE void *scans(void *unused)
{
    long skipped;
    MUST(sscanf("12 skip word 7", "%ld %*s %15[a-z] %d", &skipped, word, &number) == 3);
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(number == 7);
    return unused;
}

int main(void)
{
    run_both(scans, reads);
    return 0;
}
