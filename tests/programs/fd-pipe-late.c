// expect: race
// runs: 10
// race-at: writes reads
// What is done after the write to a pipe is not ordered by it.
#include "tests/programs/order.h"

#include <unistd.h>

static int fds[2], data;

static NOINLINE void *writes(void *unused)
{
    MUST(write(fds[1], "x", 1) == 1);
    data = 42;
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    char c;
    MUST(read(fds[0], &c, 1) == 1);
    await(1);
    MUST(data == 42);
    return unused;
}

int main(void)
{
    MUST(pipe(fds) == 0);
    run_both(writes, reads);
    return 0;
}
