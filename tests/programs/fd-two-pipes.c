// expect: race
// runs: 10
// race-at: writes reads
// Two pipes are two objects.
#include "tests/programs/order.h"

#include <unistd.h>

static int one[2], two[2], data;

static NOINLINE void *writes(void *unused)
{
    data = 42;
    MUST(write(one[1], "x", 1) == 1);
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    char c;
    await(1);
    MUST(read(two[0], &c, 1) == 1);
    MUST(data == 42);
    return unused;
}

int main(void)
{
    MUST(pipe(one) == 0 && pipe(two) == 0 && write(two[1], "y", 1) == 1);
    run_both(writes, reads);
    return 0;
}
