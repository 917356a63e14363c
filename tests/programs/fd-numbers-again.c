// expect: none
// runs: 10
// A number that was closed by one thread is another descriptor when another thread opens it: by open, or behind our back.
#define _GNU_SOURCE
#include "tests/programs/order.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static NOINLINE void *first(void *unused)
{
    int a = open("/dev/null", O_WRONLY), b = open("/dev/null", O_WRONLY);
    MUST(write(a, "x", 1) == 1 && write(b, "x", 1) == 1);
    close(a);
    close(b);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    int a = open("/dev/null", O_WRONLY), b = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY);
    MUST(write(a, "x", 1) == 1 && write(b, "x", 1) == 1);
    close(a);
    close(b);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
