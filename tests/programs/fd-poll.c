// expect: none
// runs: 10
// stock: does not know that poll orders
// poll and select that find something come after what was written.
#include "tests/programs/order.h"

#include <poll.h>
#include <sys/select.h>
#include <unistd.h>

static int a[2], b[2], data, more;

static NOINLINE void *writes(void *unused)
{
    data = 1;
    MUST(write(a[1], "x", 1) == 1);
    more = 2;
    MUST(write(b[1], "x", 1) == 1);
    return unused;
}

static NOINLINE void *waits(void *unused)
{
    struct pollfd p = { .fd = a[0], .events = POLLIN };
    fd_set set;
    MUST(poll(&p, 1, -1) == 1);
    MUST(data == 1);
    FD_ZERO(&set);
    FD_SET(b[0], &set);
    MUST(select(b[0] + 1, &set, NULL, NULL, NULL) == 1);
    MUST(more == 2);
    return unused;
}

int main(void)
{
    MUST(pipe(a) == 0 && pipe(b) == 0);
    run_both(writes, waits);
    return 0;
}
