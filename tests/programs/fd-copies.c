// expect: none
// runs: 10
// stock: does not know fcntl(F_DUPFD)
// Duplicates of a descriptor are one object, by whatever call they were made; vectors and messages count as well.
#define _GNU_SOURCE
#include "tests/programs/order.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int fds[2], data[5], in[5], out[5];

static NOINLINE void *writes(void *unused)
{
    for (int i = 0; i < 5; i++) {
        char c = (char)i;
        struct iovec v = { &c, 1 };
        struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
        data[i] = i + 1;
        if (i == 3)
            MUST(writev(in[i], &v, 1) == 1);
        else if (i == 4)
            MUST(sendmsg(in[i], &m, 0) == 1);
        else
            MUST(write(in[i], &c, 1) == 1);
    }
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    for (int i = 0; i < 5; i++) {
        char c = 0;
        struct iovec v = { &c, 1 };
        struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
        if (i == 3)
            MUST(readv(out[i], &v, 1) == 1);
        else if (i == 4)
            MUST(recvmsg(out[i], &m, 0) == 1);
        else
            MUST(read(out[i], &c, 1) == 1);
        MUST(c == i && data[i] == i + 1);
    }
    return unused;
}

int main(void)
{
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    in[0] = fds[1];
    in[1] = dup(fds[1]);
    in[2] = dup2(fds[1], 77);
    in[3] = dup3(fds[1], 78, O_CLOEXEC);
    in[4] = fcntl(fds[1], F_DUPFD, 100);
    out[0] = dup(fds[0]);
    out[1] = fcntl(fds[0], F_DUPFD_CLOEXEC, 200);
    out[2] = dup2(fds[0], 5000 % 1000);
    out[3] = out[4] = fds[0];
    close(fds[1] + 1000);
    run_both(writes, reads);
    return 0;
}
