// expect: race
// runs: 10
// race-at: closes uses
// stock: forgets a descriptor when it is closed
// The same the other way round: the use comes after the close, and finds nothing.
#include "tests/programs/order.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int fd;

static NOINLINE void *closes(void *unused)
{
    close(fd);
    reach(1);
    return unused;
}

static NOINLINE void *uses(void *unused)
{
    await(1);
    MUST(write(fd, "x", 1) == -1 && errno == EBADF);
    return unused;
}

int main(void)
{
    fd = open("/dev/null", O_WRONLY);
    run_both(closes, uses);
    return 0;
}
