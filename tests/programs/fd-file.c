// expect: none
// runs: 10
// A file that is opened twice is one object.
#include "tests/programs/order.h"

#include <fcntl.h>
#include <unistd.h>

static char path[] = "/tmp/redflag-file-XXXXXX";
static int data;

static NOINLINE void *writes(void *unused)
{
    int fd = open(path, O_WRONLY);
    data = 1;
    MUST(write(fd, "x", 1) == 1);
    close(fd);
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    char c;
    await(1);
    int fd = open(path, O_RDONLY);
    MUST(read(fd, &c, 1) == 1 && c == 'x');
    MUST(data == 1);
    close(fd);
    return unused;
}

int main(void)
{
    int fd = mkstemp(path);
    MUST(fd >= 0);
    close(fd);
    run_both(writes, reads);
    unlink(path);
    return 0;
}
