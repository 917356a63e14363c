// expect: none
// runs: 10
// A handler that restores errno; and what a call returns with is not disturbed by the runtime.
#include "tests/programs/order.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int done;

static NOINLINE void handler(int sig)
{
    int saved = errno;
    errno = sig + 1000;
    close(-1);
    done++;
    errno = saved;
}

int main(void)
{
    char c;
    int fds[2];
    struct sigaction act = { .sa_handler = handler };
    struct itimerval every = { { 0, 3000 }, { 0, 3000 } };
    MUST(pipe(fds) == 0 && sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &every, NULL) == 0);
    for (int i = 0; i < 10; i++) {
        errno = 0;
        MUST(read(fds[0], &c, 1) == -1 && errno == EINTR);
        MUST(strtol("99999999999999999999999", NULL, 10) != 0 && errno == ERANGE);
        MUST(open("/nonexistent/file", 0) == -1 && errno == ENOENT);
    }
    MUST(done >= 10);
    return 0;
}
