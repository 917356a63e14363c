// expect: race
// runs: 10
// race-at: closes uses
// A descriptor that one thread closes and another uses, without order.
#include "tests/programs/order.h"

#include <fcntl.h>
#include <unistd.h>

static int fd;

static NOINLINE void *uses(void *unused)
{
    MUST(write(fd, "x", 1) == 1);
    reach(1);
    return unused;
}

static NOINLINE void *closes(void *unused)
{
    await(1);
    close(fd);
    return unused;
}

int main(void)
{
    fd = open("/dev/null", O_WRONLY);
    run_both(uses, closes);
    return 0;
}
