// expect: none
// runs: 10
// There is no largest descriptor, and objects come and go.
#include "tests/programs/order.h"

#include <sys/resource.h>
#include <unistd.h>

static int data, fds[2];

static NOINLINE void *writes(void *unused)
{
    data = 1;
    MUST(write(fds[1], "x", 1) == 1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    char c;
    MUST(read(fds[0], &c, 1) == 1);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int high = limit.rlim_cur > 200000 ? 199999 : (int)limit.rlim_cur - 1;
    for (int i = 0; i < 5000; i++) {
        int p[2];
        MUST(pipe(p) == 0);
        close(p[0]);
        close(p[1]);
    }
    MUST(pipe(fds) == 0 && dup2(fds[1], high) == high);
    close(fds[1]);
    fds[1] = high;
    run_both(writes, reads);
    return 0;
}
