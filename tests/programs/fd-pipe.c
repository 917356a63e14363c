// expect: none
// runs: 10
// What goes through a pipe comes out after it was written.
#include "tests/programs/order.h"

#include <unistd.h>

static int fds[2], data;

static NOINLINE void *writes(void *unused)
{
    data = 42;
    MUST(write(fds[1], "x", 1) == 1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    char c;
    MUST(read(fds[0], &c, 1) == 1);
    MUST(data == 42);
    return unused;
}

int main(void)
{
    MUST(pipe(fds) == 0);
    run_both(writes, reads);
    close(fds[0]);
    close(fds[1]);
    return 0;
}
